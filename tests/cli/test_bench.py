"""``grammarspec bench speculative``: its figures are those of the texts, and what cannot be measured is refused."""

from __future__ import annotations

import csv
import errno
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.cli import main  # noqa: E402
from grammarspec.decoding import Sampling  # noqa: E402
from grammarspec.decoding.alternation import Case, Interval, Measurement, Setting, alternate  # noqa: E402
from grammarspec.decoding.proposers import Eagle, Forced, Lookup  # noqa: E402
from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead  # noqa: E402

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


@pytest.mark.slow
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
    assert [row["gamma"] for row in rows[:9]] == ["", "2", "3", "4", "auto", "2", "3", "4", "auto"]
    assert [row["speed-up"] for row in rows if row["draft"] == "none"] == ["1.0", "1.0"]
    printed = [line for line in lines if line[:1] in (["0"], ["0.7"])]
    for row, line in zip(rows, printed, strict=True):
        interval = [float(row[name]) for name in ("speed-up", "speed-up low", "speed-up high")]
        assert interval[1] <= interval[0] <= interval[2]
        shown = [float(number.strip("[],")) for number in line[6:9]]
        assert shown == pytest.approx(interval, abs=0.006)
        assert line[2] == row["draft"] and (line[3] == "-") == (row["acceptance"] == "") == (row["draft"] == "none")
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
    batches, names = -(-len(cases) // batch), ["none", "fixed", "auto"]
    assert turns == [
        (turn, names[(turn + number + index) % 3])
        for turn in range(3)
        for number in range(batches)
        for index in range(3)
    ]
    for one in (plain, *drafting):
        assert [text.tokens for text in one.texts] == [text.tokens for text in plain.texts]
        assert list(map(len, one.seconds)) == [batches, batches]
        assert one.statistics.tokens == 2 * sum(len(text.tokens) for text in plain.texts)
        assert sum(one.phases.values()) * one.statistics.target_passes / 1e3 < sum(map(sum, one.seconds))
    assert plain.statistics.tokens_per_pass == 1
    assert drafting[0].statistics.tokens_per_pass > 1.5
    assert plain.statistics.target_passes == 2 * sum(
        max(len(text.tokens) for text in plain.texts[first : first + batch]) for first in range(0, 3, batch)
    )


@pytest.mark.slow
def test_speed_ups_have_intervals() -> None:
    turns = [[4.0, 6.0, 8.0], [4.0, 5.0, 9.0], [99.0, 9.0, 1.0]], [[2.0, 2.0, 8.0]]
    base, other = (Measurement(Setting("x"), list(seconds)) for seconds in turns)
    assert base.medians == [4.0, 6.0, 8.0]
    found = other.speedup(base)
    assert (found.value, found.low, found.high) == (1.5, 1.0, 3.0)
    assert str(found) == "1.50 [1.00, 3.00]"
    assert other.speedup(base) == found, "and always the same ones"
    generator = random.Random(1)
    covered = 0
    for _ in range(100):
        seconds = [generator.uniform(0.5, 1.5) for _ in range(60)]
        slower = [2 * each * generator.uniform(0.8, 1.2) for each in seconds]
        interval = Interval.of_ratio(slower, seconds)
        covered += interval.low <= 2 <= interval.high
    assert covered >= 85


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a call of the command is refused by; above it, transformers may have drawn progress bars."""
    assert main(["bench", "speculative", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    *bars, line = output.err.splitlines()
    assert not any("grammarspec" in bar for bar in bars)
    return line.removeprefix("grammarspec: error: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gamma", "0"], "--gamma must be a number from 1 to 256, a range such as 2..8, or auto, not '0'"),
        (["--gamma", "8..2"], "not '8..2'"),
        (["--gamma", "x"], "not 'x'"),
        (["--gamma", "1..1000000000"], "not '1..1000000000'"),
        (["--gamma", "9" * 5000], "--gamma must be a number from 1 to 256"),
        (["--gamma", "4", "--gamma", "257"], "not '257'"),
        (["--turns", "0"], "--turns must be at least 1, not 0"),
        (["--max-tokens", "0"], "--max-tokens must be at least 1"),
        (["--batch", "-1"], "--batch must be at least 1"),
        (["--temperature", "-1"], "temperature must be 0 or at least 1e-06 and at most 1e+30, not -1.0"),
        (["--temperature", "0", "--temperature", "nan"], "not nan"),
        (["--temperature", "inf"], "not inf"),
        (["--prompts", "missing.json"], "missing.json: No such file"),
        (["--prompts", "."], ".: Is a directory"),
        (["--draft", "forced,"], "--draft forced,: a name is empty"),
        (["--draft", "none,forced"], "'none' cannot stand beside others"),
        (["--draft", "none"], "--draft none: texts without drafts are measured in any case"),
        (["--draft", "eagle:"], "--draft eagle: names no file"),
        (["--draft", "eagle:missing"], "missing: No such file"),
        (["--draft", "eagle:."], ". is no file of weights"),
        (["--draft", "forced", "--draft", f"eagle:{__file__}"], "test_bench.py is no file of weights"),
        (["--draft", "no/such.gguf"], "no such file: no/such.gguf"),
        (["--csv", "."], ".: Is a directory"),
        (["--csv", "no/such/folder.csv"], "no/such/folder.csv: No such file"),
        (["--png", "no/such/folder.png"], "no/such/folder.png: No such file"),
        (["--csv", "new", "--png", "./new"], "--csv and --png name the same file, new"),
        (["--prompts", "{prompts}", "--csv", "{prompts}"], "--prompts and --csv name the same file"),
    ],
)
def test_refusals_before_the_model_is_loaded(
    arguments: list[str],
    message: str,
    prompts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("grammarspec.models.loading.load_model", lambda *_: pytest.fail("the model is loaded"))
    arguments = [argument.replace("{prompts}", prompts) for argument in arguments]
    assert message in refusal(capsys, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["prompts.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", " must hold a JSON list of prompts"),
        ("[]", " must hold a JSON list of prompts"),
        ("", ":1:1: Expecting value"),
        ('[{"prompt": "a"},\n {"prompt": }]', ":2:13: Expecting value"),
        ("[" * 100_000, ": the JSON is too deep"),
        (f"[{'9' * 5000}]", ": Exceeds the limit"),
        ('[{"prompt": "a"}, "b"]', ": entry 1 (counted from 0) must be a JSON object"),
        ('[{"schema": {}}]', ": entry 0 (counted from 0) has no text as its prompt"),
        ('[{"prompt": 1}]', ": entry 0 (counted from 0) has no text as its prompt"),
        ('[{"prompt": ""}]', ": entry 0 (counted from 0) has no text as its prompt"),
        ('[{"prompt": "a", "shema": {}}]', ": entry 0 (counted from 0) has the unknown key 'shema'"),
        ('[{"prompt": "a", "schema": "{}"}]', ": entry 0 (counted from 0) has a schema that is neither"),
        ('[{"prompt": "a"}, {"prompt": "a", "schema": null}]', ": entry 1 (counted from 0) has a schema that"),
        ('[{"prompt": "a", "schema": {"type": "strin"}}]', ": entry 0 (counted from 0): type must be one of"),
        ('[{"prompt": "a", "schema": false}]', ": entry 0 (counted from 0): no value satisfies the schema"),
        ('[{"prompt": "a", "schema": {"const": NaN}}]', ": entry 0 (counted from 0): nan is no JSON value"),
    ],
)
def test_files_that_hold_no_prompts(
    text: str, message: str, tiny_model_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prompts.json"
    file.write_text(text)
    assert refusal(capsys, "--model", str(tiny_model_directory), "--prompts", str(file)).startswith(f"{file}{message}")


@pytest.mark.parametrize(
    ("prompt", "message"),
    [("a" * 5000, "the prompt has 5001 tokens, the model's context only 256"), ("\ud800", "holds a lone surrogate")],
)
def test_prompts_that_the_model_cannot_read(
    prompt: str, message: str, tiny_model_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are refused before anything is measured."""
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps([{"prompt": "a"}, {"prompt": prompt}]))
    said = refusal(capsys, "--model", str(tiny_model_directory), "--prompts", str(file))
    assert said.startswith(f"{file}: entry 1 (counted from 0): ") and message in said


def test_heads_of_other_models(tiny_model_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "head.safetensors"
    tokens = torch.arange(200)
    arguments = ["--model", str(tiny_model_directory), "--draft", f"forced,eagle:{path}"]
    Eagle.save(path, EagleHead(EagleConfig(64, 16, 4, 2, 16)), tokens, {})
    assert refusal(capsys, *arguments).startswith(f"{path}: the head reads hidden states of 64 numbers, not of 32")
    Eagle.save(path, EagleHead(EagleConfig(32, 16, 4, 2, 8)), tokens + 100, {})
    assert refusal(capsys, *arguments).startswith(f"{path}: eagle drafts tokens from 100 to 299")


def test_files_stay_until_there_is_something_to_write(
    tiny_model_directory: Path, prompts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt while texts are generated takes nothing away."""
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("figures of yesterday")

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grammarspec.decoding.alternation.Batch.round", interrupted)
    arguments = ["bench", "speculative", "--model", str(tiny_model_directory), "--prompts", prompts, *SHORT]
    for path in (old, new):
        assert main([*arguments, "--csv", str(path)]) == 130
    assert old.read_text() == "figures of yesterday"
    assert not new.exists()


@pytest.mark.slow
def test_whatever_fails_at_the_end_the_rest_is_written(
    tiny_model_directory: Path,
    prompts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And the plot takes no name of a file for a formula."""

    def full(_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("csv.writer", full)
    head = tmp_path / "$a_{$.safetensors"
    Eagle.save(head, EagleHead(EagleConfig(32, 16, 4, 2, 8)), torch.arange(200), {})
    table, png = tmp_path / "table", tmp_path / "plot"
    arguments = ["--model", str(tiny_model_directory), "--prompts", prompts, "--draft", f"eagle:{head}", *SHORT]
    assert main(["bench", "speculative", *arguments, "--csv", str(table), "--png", str(png)]) == 2
    output = capsys.readouterr()
    assert output.err.endswith(f"grammarspec: error: {table}: No space left on device\n")
    assert "$a_{$.safetensors" in output.out
    assert png.read_bytes().startswith(b"\x89PNG")
