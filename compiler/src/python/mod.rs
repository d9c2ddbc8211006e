//! The Python module `grammarspec._compiler`: conversions and error mapping, no logic.
//!
//! Signatures and docstrings are in `grammarspec/_compiler.pyi`, which `mypy.stubtest` compares with the module.

mod builder;
mod constraint;
mod detached;
mod errors;
mod grammar;
mod matcher;
mod memory;
mod shared;
mod vocabulary;

use pyo3::prelude::*;

use builder::IrBuilder;
use constraint::{CancelToken, Constraint, Pin};
use grammar::Grammar;
use matcher::Matcher;
use vocabulary::VocabularyIndex;

use crate::ir::numbers;

// Rows of a caller's array are written while the GIL is held, so that nothing else writes them then. All else has locks
// of its own.
#[pymodule(gil_used = true)]
fn _compiler(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<IrBuilder>()?;
    module.add_class::<Grammar>()?;
    module.add_class::<VocabularyIndex>()?;
    module.add_class::<CancelToken>()?;
    module.add_class::<Constraint>()?;
    module.add_class::<Pin>()?;
    module.add_class::<Matcher>()?;
    module.add_function(wrap_pyfunction!(constraint::compile, module)?)?;
    module.add_function(wrap_pyfunction!(matcher::fill_bitmasks, module)?)?;
    module.add_function(wrap_pyfunction!(matcher::fill_each, module)?)?;
    detached::register(module)?;
    for (name, number) in numbers() {
        module.add(name, number)?;
    }
    Ok(())
}
