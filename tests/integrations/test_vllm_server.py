"""vLLM itself with grammarspec inside: a server on this machine, asked with the openai client.

It needs an environment with vLLM, which ``python tests/integrations/vllm_environment.py`` makes in ``.cache/vllm``;
``GRAMMARSPEC_TESTS_VLLM`` names another place of it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("GRAMMARSPEC_TESTS_VLLM", ROOT / ".cache" / "vllm")) / "bin" / "python"


pytestmark = [
    pytest.mark.slow,
    pytest.mark.property,  # of the tier long: it takes minutes
    pytest.mark.skipif(not PYTHON.exists(), reason="needs vLLM: python tests/integrations/vllm_environment.py"),
]


def run(module: str, directory: Path, folder: Path, *arguments: str) -> Any:
    """The report of one of the scripts, run by the Python of vLLM's environment."""
    command = [str(PYTHON), "-m", f"tests.integrations.{module}", str(directory), *arguments]
    variables = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=5400, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(report, indent=2))
    return report


def test_its_own_code_takes_the_backend(smollm2_directory: Path, tmp_path: Path) -> None:
    report = run("vllm_parts", smollm2_directory, tmp_path)
    assert len(report["tool calls"]) >= 17 and set(report["tool calls"].values()) == {"enforced"}, report["tool calls"]


def test_a_server_answers_clients(smollm2_directory: Path, tmp_path: Path) -> None:
    report = run("vllm_checks", smollm2_directory, tmp_path)
    assert report["plain"]["finished"] > 20 and report["drafts"]["finished"] > 10
    assert report["reasoning"]["finished"] > 0


def test_a_busy_server_stays_well(smollm2_directory: Path, tmp_path: Path) -> None:
    report = run("vllm_soak", smollm2_directory, tmp_path, "120")
    assert report["finished"] > 20 and report["outcomes"]["json"] > 20
