"""``benchmarks.gpu`` runs to its end with small models on the CPU, and its figures make a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import gpu, gpu_report


@pytest.mark.slow
def test_the_benchmark_runs_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "ROUNDS", 3)
    path = tmp_path / "gpu.json"
    assert gpu.main(["--toy", "--output", str(path)]) == 0
    results = json.loads(path.read_text())
    checks = [found for name, found in results.items() if name.startswith("check: ")]
    assert len(checks) == 8 and all(found["ok"] for found in checks)
    settings = results["rounds, toy"]["settings"]
    assert {each["setting"] for each in settings} == {
        "plain",
        "constrained",
        "plain (host)",
        "constrained (host)",
        "speculative",
        "both",
    }
    both, alone = (
        next(each for each in settings if each["setting"] == name and each["rows"] == 2)
        for name in ("both", "speculative")
    )
    # Draft tokens are accepted by the same random numbers, so that only the constraint differs.
    assert both["tokens_per_round"] == pytest.approx(alone["tokens_per_round"], abs=0.2)
    assert "| both | 2 | 2 |" in gpu_report.text_of(results)
    gpu_report.main([str(path)])
    assert (tmp_path / "gpu.md").exists()


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: False)
    assert gpu.main([]) == 1
    assert "no CUDA device" in capsys.readouterr().err
