"""SGLang's own files with grammarspec inside, as far as they run without a GPU.

They need a folder that ``python tests/integrations/sglang_environment.py`` makes in ``.cache/sglang``;
``GRAMMARSPEC_TESTS_SGLANG`` names another place of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("GRAMMARSPEC_TESTS_SGLANG", ROOT / ".cache" / "sglang"))


@pytest.mark.slow
@pytest.mark.skipif(
    not (FOLDER / "sglang").exists(), reason="needs SGLang's wheel: python tests/integrations/sglang_environment.py"
)
def test_code_of_sglang(smollm2_directory: Path) -> None:
    command = [sys.executable, "-m", "tests.integrations.sglang_checks", str(FOLDER), str(smollm2_directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-8000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["nodes"] > 40 and len(report["errors"]) == 5
    print(json.dumps(report, indent=2))
