"""The experiments with lookaheads, laws and the triangle run to their end, and what judges their answers is right."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("matplotlib")

from benchmarks import conditional, lookahead, triangle
from benchmarks.extraction import right_fields
from benchmarks.extraction_cases import CASES
from benchmarks.triangle import Case


def case(number: int) -> Case:
    """The first case of a type."""
    target, texts = list(CASES.items())[number]
    text, expected = next(iter(texts.items()))
    return Case(target, text, expected)


# ---------------------------------------------------------------------- judges
def test_right_answers_are_valid_and_right() -> None:
    for number in range(len(CASES)):
        one = case(number)
        answer = json.dumps(one.expected)
        assert triangle.valid(one.target, answer)
        assert right_fields(triangle.read(one.target, answer), one.expected) == len(one.expected)
        assert not triangle.valid(one.target, f"Here it is: {answer}")
        found = triangle.read(one.target, f"Here it is:\n```\n{answer}\n```")
        assert right_fields(found, one.expected) == len(one.expected)


def test_what_is_no_answer_has_no_right_fields() -> None:
    one = case(0)  # Alice, 31, Paris
    for answer in ("", "Alice", '{"name": "Alice', "{}", "[1]"):
        assert right_fields(triangle.read(one.target, answer), one.expected) == 0
        assert not triangle.valid(one.target, answer)
    partly = triangle.read(one.target, '{"name": "alice", "age": "old", "place": [1]}')  # no Person
    assert right_fields(partly, one.expected) == 1
    assert right_fields({"ingredients": "eggs"}, {"ingredients": ["eggs"]}) == 0


def test_the_reward_is_about_values() -> None:
    one = case(0)
    assert one.found("") == one.found('{"name') == one.found('{"name": "Al') == 1
    assert one.found('{"name": "Alice", "age": 31, "city": "Rome"}') == pytest.approx(2 / 3)
    order = case(1)  # booleans are left out
    assert order.found('{"product": "lamps", "express": true}') == 1
    assert order.found('{"product": "cats", "express": true}') == 0


def test_intervals_hold_the_mean() -> None:
    values = [0.0, 1.0, 1.0, 0.5] * 5
    low, high = lookahead.spread(values)
    assert low < lookahead.mean(values) < high
    assert lookahead.spread([0.5] * 9) == (0.5, 0.5)
    assert lookahead.less([1.0, 2.0], [0.5, 1.5]) == "[+0.500, +0.500]"


# ---------------------------------------------------------------------- whole runs
@pytest.mark.slow
@pytest.mark.parametrize("part", list(lookahead.PARTS))
def test_lookaheads(part: str, tiny_model_directory: Path, tmp_path: Path) -> None:
    few = ["--sets", "3", "--tuning", "2", "--timed", "2", "--every", "9", "--layers", "1"]
    lookahead.main([part, "--model", str(tiny_model_directory), *few, "--eagle", "", "--out", str(tmp_path)])
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".md", ".png"}


@pytest.mark.slow
def test_laws(tiny_model_directory: Path, tmp_path: Path) -> None:
    few = ["--samples", "3", "--particles", "2", "--questions", "2"]
    conditional.main(["--model", str(tiny_model_directory), *few, "--out", str(tmp_path)])
    lines = list(csv.DictReader((tmp_path / "conditional.csv").open(encoding="utf-8")))
    assert len(lines) == len(conditional.TASKS) * 2 * 2
    assert (tmp_path / "conditional.png").exists()


@pytest.mark.slow
def test_the_triangle(tiny_model_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triangle, "instructions_for", lambda *_: "")  # the model's context is short
    few = ["--texts", "1", "--timed", "1", "--particles", "2", "--eagle", ""]
    triangle.main(["--model", str(tiny_model_directory), *few, "--out", str(tmp_path)])
    lines = list(csv.DictReader((tmp_path / "triangle.csv").open(encoding="utf-8")))
    assert len(lines) == 7 * len(CASES)
    # What has to end in time is valid whatever the model is.
    assert all(float(line["valid"]) for line in lines if line["way"] in ("constrained", "combined", "lookahead"))
