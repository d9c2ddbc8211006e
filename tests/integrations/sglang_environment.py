"""Make a folder with SGLang's files and the small packages that they import: ``python -m ... DIRECTORY``.

SGLang itself needs a GPU, and torch of a version of its own. Its modules for grammars need neither: they are imported
from its wheel here, which is not installed, beside the torch and transformers of this environment.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SGLANG = "0.5.23"
NEEDED = """
    aiohappyeyeballs aiohttp aiosignal anyio apache-tvm-ffi==0.1.11 asttokens attrs compressed_tensors decorator dill
    einops executing frozenlist idna IPython jedi loguru matplotlib-inline multidict openai orjson parso
    partial_json_parser pexpect prompt_toolkit propcache ptyprocess pure-eval pybase64 pygments pyzmq sniffio
    stack-data starlette torchvision traitlets wcwidth yarl
""".split()


def make(directory: Path) -> None:
    """Make the folder: ``sglang`` has the wheel's files, ``packages`` the rest."""
    for name, packages in (("sglang", [f"sglang=={SGLANG}"]), ("packages", NEEDED)):
        target = ["--target", str(directory / name), "--upgrade"]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *target, *packages]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    make(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / ".cache" / "sglang").resolve())
