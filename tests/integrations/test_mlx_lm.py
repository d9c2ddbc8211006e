"""MLX-LM with a model: single answers, batches and draft models, under schemas, regular expressions and a grammar.

It needs a folder with MLX, which has a build for Linux without a GPU, and MLX-LM: ``python -m pip install --no-deps
--target .cache/mlx mlx mlx-cpu mlx-lm``; ``GRAMMARSPEC_TESTS_MLX`` names another place of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("GRAMMARSPEC_TESTS_MLX", ROOT / ".cache" / "mlx"))


@pytest.mark.slow
@pytest.mark.skipif(not (FOLDER / "mlx_lm").exists(), reason="needs MLX-LM in a folder: see the test's module")
def test_answers(smollm2_directory: Path) -> None:
    command = [sys.executable, "-m", "tests.integrations.mlx_lm_checks", str(smollm2_directory)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), str(ROOT)]), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report) == 9 and all(one["matches"] for one in report), report
    assert json.loads(report[0]["text"]) == json.loads(report[7]["text"])  # drafts change no greedy answer
