"""``grammarspec bench speculative``: its figures are those of the texts, and what cannot be measured is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import grammarspec as gs
from grammarspec.cli import main
from grammarspec.decoding import Sampling
from grammarspec.decoding.alternation import Case, Interval, Measurement, Setting, alternate
from grammarspec.decoding.proposers import Forced, Lookup

SHORT = ["--max-tokens", "12", "--turns", "2"]


@pytest.fixture
def model(tiny_model_directory: Path) -> gs.Model:
    return gs.Model.from_pretrained(tiny_model_directory)


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    file = tmp_path / "prompts.json"
    schema = {"properties": {"abc": {"type": "integer"}}, "required": ["abc"], "additionalProperties": False}
    file.write_text(json.dumps([{"prompt": "a", "schema": {"type": "object", **schema}}, {"prompt": "a b a b"}]))
    return str(file)


def test_tables_and_files(
    tiny_model_directory: Path, prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = tmp_path / "out.csv", tmp_path / "out.png"
    arguments = ["--model", str(tiny_model_directory), "--prompts", prompts, "--gamma", "2..4", "--gamma", "auto"]
    more = ["--draft", "forced", "--draft", "forced,lookup", "--temperature", "0", "--temperature", "0.7"]
    written = ["--csv", str(files[0]), "--png", str(files[1])]
    assert main(["bench", "speculative", *arguments, *more, *written, *SHORT]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert sum(line[:1] in (["0"], ["0.7"]) for line in lines) == 2 * (1 + 2 * 4)
    assert [line[:2] for line in lines[-4:]] == [
        ["yes", "none"], ["yes", "forced,lookup"], ["no", "none"], ["no", "forced,lookup"],
    ]  # fmt: skip
    rows = list(csv.DictReader(files[0].open()))
    assert [row["gamma"] for row in rows[:9]] == ["-", "2", "3", "4", "auto", "2", "3", "4", "auto"]
    assert [row["speed-up"] for row in rows if row["draft"] == "none"] == ["1.00", "1.00"]
    for row in rows:
        assert float(row["speed-up low"]) <= float(row["speed-up"]) <= float(row["speed-up high"])
        assert 1 <= float(row["tokens/pass"]) <= (1 + 4 if row["draft"] != "none" else 1)
    assert any(float(row["tokens/pass"]) > 1.1 for row in rows), "the schema forces text"
    assert files[1].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_texts_are_those_of_plain_decoding(model: gs.Model, batch: int) -> None:
    """And each turn counts once, the one before them not at all."""
    constraint = gs.compile(gs.regex("(abc){5}[0-9]{3}"), model.vocabulary)
    cases = [Case([1, 2, 3], constraint), Case([4, 5]), Case([6, 7, 8, 9], constraint)]
    sampling = Sampling(max_tokens=15)
    settings = [
        Setting("none", sampling=sampling),
        Setting("fixed", [Forced(), Lookup()], adaptive=False, sampling=sampling),
        Setting("auto", [Forced(), Lookup()], sampling=sampling),
    ]
    turns: list[tuple[int, str]] = []
    plain, *drafting = alternate(
        model.model, model.vocabulary, cases, settings, turns=2, batch=batch,
        on_turn=lambda turn, setting: turns.append((turn, setting.name)),
    )  # fmt: skip
    assert turns == [
        (0, "none"), (0, "fixed"), (0, "auto"), (1, "fixed"), (1, "auto"), (1, "none"), (2, "auto"), (2, "none"),
        (2, "fixed"),
    ]  # fmt: skip
    for one in (plain, *drafting):
        assert [text.tokens for text in one.texts] == [text.tokens for text in plain.texts]
        assert len(one.seconds) == 2
        assert one.statistics.tokens == 2 * sum(len(text.tokens) for text in plain.texts)
        assert sum(one.phases.values()) * one.statistics.target_passes / 1e3 < sum(one.seconds)
    assert plain.statistics.tokens_per_pass == 1
    assert drafting[0].statistics.tokens_per_pass > 1.5
    assert plain.statistics.target_passes == 2 * sum(
        max(len(text.tokens) for text in plain.texts[first : first + batch]) for first in range(0, 3, batch)
    )


def test_speed_ups_are_by_turn() -> None:
    base, other = (Measurement(Setting("x"), seconds) for seconds in ([4.0, 6.0, 8.0], [2.0, 2.0, 8.0]))
    assert other.speedup(base) == Interval(2.0, 1.0, 3.0)
    assert str(other.speedup(base)) == "2.00 [1.00, 3.00]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gamma", "0"], "--gamma must be a number from 1, a range such as 2..8, or auto, not '0'"),
        (["--gamma", "8..2"], "not '8..2'"),
        (["--gamma", "x"], "not 'x'"),
        (["--turns", "0"], "--turns must be at least 1, not 0"),
        (["--max-tokens", "0"], "--max-tokens must be at least 1"),
        (["--batch", "-1"], "--batch must be at least 1"),
        (["--prompts", "missing.json"], "missing.json: No such file"),
        (["--draft", "forced,"], "cannot stand beside others"),
    ],
)
def test_refusals(
    arguments: list[str], message: str, tiny_model_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "speculative", "--model", str(tiny_model_directory), *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("value", [{}, [], ["a"], [{"schema": {}}], [{"prompt": 1}]])
def test_files_that_hold_no_prompts(value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps(value))
    assert main(["bench", "speculative", "--prompts", str(file)]) == 2
    assert "prompts.json" in capsys.readouterr().err
