"""vLLM itself with grammarspec inside: a server on this machine, asked with the openai client.

It needs an environment with vLLM, which ``python tests/integrations/vllm_environment.py`` makes in ``.cache/vllm``;
``GRAMMARSPEC_VLLM_ENVIRONMENT`` names another place of it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("GRAMMARSPEC_VLLM_ENVIRONMENT", ROOT / ".cache" / "vllm")) / "bin" / "python"


@pytest.mark.slow
@pytest.mark.property  # of the tier long: it takes minutes
@pytest.mark.skipif(not PYTHON.exists(), reason="needs vLLM: python tests/integrations/vllm_environment.py")
def test_a_server_answers_clients(smollm2_directory: Path, tmp_path: Path) -> None:
    command = [str(PYTHON), "-m", "tests.integrations.vllm_checks", str(smollm2_directory)]
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["plain"]["finished"] > 20 and report["drafts"]["finished"] > 10
    print(json.dumps(report, indent=2))
