"""Rewards: what each gives for texts, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding.lookahead.rewards import (  # noqa: E402
    Classifier,
    Coverage,
    InGrammar,
    Keywords,
    Length,
    Mean,
    Reward,
    Searched,
    as_reward,
    inflections,
    scored,
)

DOGS = "Two dogs are running; one carried a frisbee."


@pytest.mark.parametrize(
    ("reward", "text", "value"),
    [
        (Coverage(["dog", "run", "frisbee"]), DOGS, 1.0),
        (Coverage(["dog", "carry", "cat"]), DOGS, 2 / 3),
        (Coverage(["dog", "carry", "cat"], hard=True), DOGS, 0.0),
        (Coverage(["dog", "carry"], hard=True), DOGS, 1.0),
        (Coverage([["cat", "dog"], "sea"]), DOGS, 0.5),
        (Coverage(["fris"]), DOGS, 0.0),
        (Coverage(["DOG"]), "", 0.0),
        (Keywords(["FRIS"], absent=["cat"]), DOGS, 1.0),
        (Keywords(["cat"], absent=["dog"]), DOGS, 0.0),
        (Keywords(absent=["cat", "dog"]), DOGS, 0.5),
        (Length(3, 8), DOGS, 1.0),
        (Length(16), DOGS, 0.5),
        (Length(most=3), "a b c d e f g", 0.5),
        (Length(1), "", 0.0),
        (Length(2, 4, "characters"), "abc", 1.0),
        (Searched(r"\bone\b"), DOGS, 1.0),
        (Searched("^ONE"), DOGS, 0.0),
        (Searched("two", re.IGNORECASE), DOGS, 1.0),
        (InGrammar(gs.regex("[a-z]+")), "abc", 1.0),
        (InGrammar(gs.regex("[a-z]+")), "abc1", 0.0),
        (Mean([Searched("a"), Searched("b")]), "a", 0.5),
        (Mean([Searched("a"), len], [3, 1]), "a", 1.0),
        (as_reward(len), "abc", 3.0),
    ],
)
def test_values(reward: Reward, text: str, value: float) -> None:
    assert scored(reward, [text, text]) == pytest.approx([value, value])


def test_inflections() -> None:
    for word, forms in {
        "carry": ["carry", "carries", "carried", "carrying"],
        "run": ["runs", "running"],
        "dance": ["dances", "danced", "dancing"],
        "watch": ["watches", "watched", "watching"],
        "play": ["plays", "played", "playing"],
    }.items():
        assert inflections(word).issuperset(forms)
    assert "plaied" not in inflections("play")


def test_a_classifier() -> None:
    class Tokens(dict[str, Any]):
        def to(self, device: Any) -> Tokens:
            return self

    class Judge:
        """Harmless are texts without an "x"."""

        config = type("Config", (), {"id2label": {0: "harmful", 1: "harmless"}})()
        device = torch.device("cpu")

        def eval(self) -> Judge:
            return self

        def __call__(self, texts: list[str]) -> Any:
            logits = torch.tensor([[0.0, -4.0 if "x" in text else 4.0] for text in texts])
            return type("Output", (), {"logits": logits})()

    def tokenizer(texts: list[str], **_: Any) -> Tokens:
        return Tokens(texts=texts)

    model: Any = Judge()
    good, bad, empty = scored(Classifier(model, tokenizer, "harmless", batch=2), ["a", "x", ""])  # type: ignore[arg-type]
    assert (bad < 0.1, good > 0.9, empty == good) == (True, True, True)
    with pytest.raises(ValueError, match="no label 'nice'"):
        Classifier(model, tokenizer, "nice")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch must be"):
        Classifier(model, tokenizer, 1, batch=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Coverage("dog"), TypeError),
        (lambda: Coverage([]), ValueError),
        (lambda: Coverage([[]]), ValueError),
        (lambda: Coverage([" "]), ValueError),
        (lambda: Keywords("dog"), TypeError),
        (Keywords, ValueError),
        (lambda: Keywords([""]), ValueError),
        (Length, ValueError),
        (lambda: Length(3, 2), ValueError),
        (lambda: Length(-1), ValueError),
        (lambda: Length(1, unit="lines"), ValueError),  # type: ignore[arg-type]
        (lambda: Searched("("), re.error),
        (lambda: InGrammar("a"), TypeError),  # type: ignore[arg-type]
        (lambda: Mean([]), ValueError),
        (lambda: Mean([len], [0]), ValueError),
        (lambda: Mean([len], [1, 1]), ValueError),
        (lambda: Mean([3]), TypeError),  # type: ignore[list-item]
        (lambda: as_reward(object()), TypeError),  # type: ignore[arg-type]
    ],
)
def test_refusals(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_a_reward_gives_as_many_numbers_as_there_are_texts() -> None:
    class Short:
        def score(self, texts: list[str]) -> list[float]:
            return [1.0]

    with pytest.raises(ValueError, match="1 values for 2 texts"):
        scored(Short(), ["a", "b"])  # type: ignore[arg-type]
