"""llama-cpp-python with a model: answers that satisfy a schema, a regular expression and a grammar.

It needs an environment that has llama-cpp-python and lark (``python -m venv .cache/llama-cpp``, and ``.cache/llama-cpp/
bin/pip install llama-cpp-python lark``); ``GRAMMARSPEC_TESTS_LLAMA_CPP`` names another place of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import grammarspec as gs
from grammarspec.integrations.llama_cpp import vocabulary_of_llama

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("GRAMMARSPEC_TESTS_LLAMA_CPP", ROOT / ".cache" / "llama-cpp")) / "bin" / "python"


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="needs llama-cpp-python in an environment: see the test's module")
def test_answers(smollm2_gguf: Path) -> None:
    command = [str(PYTHON), "-m", "tests.integrations.llama_cpp_checks", str(smollm2_gguf)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report) == 4 and all(one["matches"] and one["why"] == "stop" for one in report), report
    assert json.loads(report[0]["text"]).keys() == {"name", "age"}


def test_without_llama_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(gs.MissingPackage, match=r"grammarspec\[llama-cpp\]"):
        vocabulary_of_llama(None)
    module = ModuleType("llama_cpp")
    module.Llama = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", module)
    with pytest.raises(TypeError, match="Llama"):
        vocabulary_of_llama(None)
