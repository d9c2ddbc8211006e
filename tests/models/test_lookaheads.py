"""Lookaheads through models and the command line: answers with rewards, and what is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs
from grammarspec.cli import main

pytest.importorskip("transformers")

from grammarspec.decoding.lookahead import Coverage

WORDS = gs.regex("[a-z]{1,4}( [a-z]{1,4}){2}")


def has_q(text: str) -> float:
    return float("q" in text)


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> gs.Model:
    return gs.Model.from_pretrained(tiny_model_directory)


def test_an_answer_with_a_reward(model: gs.Model) -> None:
    how = gs.Lookahead(d=3, k=26, draft=1, reward=1.0)
    found = model.run("Who?", WORDS, reward=has_q, lookahead=how)
    assert "q" in found.text
    assert WORDS.matches(found.text)
    assert found.reward == 1.0
    assert found.statistics.states.total() == found.statistics.rounds.total()
    assert found.timing.phases["reward"] > 0
    assert model.run("Who?", WORDS).reward is None


@pytest.mark.slow
def test_batches_streams_samples_and_retries(model: gs.Model) -> None:
    how = gs.Lookahead(method="cdlh", d=2, k=26)
    rewards = [lambda text: float("z" in text), Coverage(["q"]), has_q]
    together = model.batch(["a", "b", "c"], WORDS, reward=rewards, lookahead=how)
    alone = [
        model.run(prompt, WORDS, reward=reward, lookahead=how) for prompt, reward in zip("abc", rewards, strict=True)
    ]
    assert [one.text for one in together] == [one.text for one in alone]
    with model.stream("a", WORDS, reward=has_q, lookahead=how) as stream:
        assert "".join(stream) == model.run("a", WORDS, reward=has_q, lookahead=how).text
    drawn = gs.Lookahead(d=2, draft=1, verify="sampling")
    samples = model.samples("a", WORDS, 3, reward=has_q, lookahead=drawn, temperature=1.0, seed=1)
    assert len({one.text for one in samples}) > 1

    def never(text: str) -> str:
        raise ValueError("no")

    with pytest.raises(gs.ValidationFailed) as failed:
        model.run("a", WORDS.map(never), reward=has_q, lookahead=how, retries=1)
    assert failed.value.attempts == 2


def test_the_draft_of_the_model(tiny_model_directory: Path) -> None:
    drafting = gs.Model.from_pretrained(tiny_model_directory, draft=tiny_model_directory)
    found = drafting.run("a", WORDS, reward=has_q, lookahead=gs.Lookahead(reward=0, acceptance=1))
    assert set(found.statistics.states) == {"accepted"}
    assert found.text == drafting.run("a", WORDS).text


def test_refusals(model: gs.Model) -> None:
    def refused(error: type[Exception], message: str, **options: Any) -> None:
        with pytest.raises(error, match=message):
            model.run("a", WORDS, **options)

    how = gs.Lookahead(method="cdlh")
    refused(ValueError, "a reward is given, but no lookahead", reward=has_q)
    refused(ValueError, "a lookahead is given, but no reward", lookahead=how)
    refused(TypeError, "lookahead must be a gs.Lookahead", reward=has_q, lookahead=True)
    refused(TypeError, "a function of a text", reward=1, lookahead=how)
    refused(TypeError, "a function of a text", reward="dog", lookahead=how)
    refused(ValueError, "2 rewards are given for 1 prompts", reward=[has_q, has_q], lookahead=how)
    refused(ValueError, "there is no draft", reward=has_q, lookahead=gs.Lookahead())
    refused(ValueError, "would change nothing", reward=has_q, lookahead=how, temperature=1.0)
    with pytest.raises(ValueError, match="beside tools"):
        model.run("a", WORDS, reward=has_q, lookahead=how, tools=[has_q])
    thinks = gs.Model(model.model, copy.deepcopy(model.tokenizer))
    template = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}{{ '<think>\n' }}"
    thinks.tokenizer.chat_template = template
    with pytest.raises(gs.UnsupportedFeature, match="reasons before it answers"):
        thinks.run("a", WORDS, reward=has_q, lookahead=how)


def test_the_command(tiny_model_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "judge.py").write_text("def has_q(text):\n    return float('q' in text)\n")

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["generate", "--model", str(tiny_model_directory), "--regex", "[a-z]{1,4}( [a-z]{1,4}){2}", *words])
        return code, *capsys.readouterr()

    judge = f"python:{tmp_path / 'judge.py'}:has_q"
    looks = ["--lookahead", "2", "--candidates", "26"]
    code, out, _ = run("--reward", judge, *looks, "--draft", "layers:1", "--output", "json", "--stats", "a")
    found = json.loads(out)
    assert (code, found["reward"]) == (0, 1.0)
    assert "q" in found["text"]
    assert sum(found["statistics"]["states"].values()) > 0
    code, out, err = run("--reward", "has:q", "--reward", "words:3", "--method", "cdlh", *looks, "--stats", "a")
    assert code == 0
    assert "reward                  1" in err
    for kinds in (["covers:q"], ["covers-all:q"], ["lacks:q"], ["matches:q"], ["words:-3"]):
        assert run("--reward", *kinds, "--method", "cdlh", "--lookahead", "1", "--candidates", "2", "a")[0] == 0
    for words, message in (
        (["--lookahead", "2"], "give --reward"),
        (["--reward", "big"], "KIND:WORDS"),
        (["--reward", "words:few"], "10-20"),
        (["--reward", "python:rhyme"], "write FILE:FUNCTION"),
        (["--reward", judge + "x"], "there is no has_qx"),
        (["--reward", "has:q", "--forced", "feed"], "--forced feed"),
        (["--reward", "has:q", "--gamma", "4"], "--gamma is for drafts"),
        (["--reward", "has:q", "--method", "greedy", "--draft", "layers:1"], "no use for --draft"),
        (["--reward", "has:q"], "there is no draft"),
        (["--reward", "has:q", "--method", "cdlh", "--temperature", "1"], "would change nothing"),
        (["--reward", "has:q", "--draft", "layers:x"], "layers:8"),
    ):
        code, _, err = run(*words, "a")
        assert code == 2
        assert message in err
