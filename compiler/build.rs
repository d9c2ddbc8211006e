//! Gathers the shipped grammars in `OUT_DIR`, from where maturin takes them into the wheel (`include` in
//! `pyproject.toml`): they stand outside of the Python package, at the top of the repository.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let path = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let from = path("CARGO_MANIFEST_DIR").join("../grammars");
    let to = path("OUT_DIR").join("grammars");
    println!("cargo::rerun-if-changed={}", from.display());
    if !from.is_dir() {
        return Ok(()); // the crate alone
    }
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(from)? {
        let file = entry?.path();
        let name = file.file_name().expect("an entry of a folder");
        if name == "index.toml" || file.extension().is_some_and(|extension| extension == "lark") {
            fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}
