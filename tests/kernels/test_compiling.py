"""Every kernel compiles for CUDA devices, with Triton's own compiler, on a machine that has none."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

KERNELS = Path(__file__).parents[2] / "grammarspec" / "kernels"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Triton's compiler for CUDA is there on Linux")
def test_kernels_compile_for_devices(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.kernels.compiling", "80", "90"]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    written = {
        node.name
        for path in KERNELS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_kernel")
    }
    assert list(found) == ["80", "90"]
    for kernels in found.values():
        assert set(kernels) == written
        # The logits of eight tokens are read, and written, at once.
        for name in ("summary_kernel", "choose_kernel", "count_kernel", "weigh_kernel", "kept_kernel", "forbid_kernel"):
            assert "ld.global.v4.b32" in kernels[name], (name, kernels[name])
        assert "st.global.v4.b32" in kernels["forbid_kernel"]
