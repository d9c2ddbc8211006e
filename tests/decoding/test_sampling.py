"""What :class:`Sampling` refuses, and texts that are cut short."""

from __future__ import annotations

from typing import Any

import pytest

import grammarspec as gs

pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Sampling, generate
from tests.oracles.noise_model import NoiseModel


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": "hot"}, "temperature must be a number, not 'hot'"),
        ({"temperature": None}, "temperature must be a number, not None"),
        ({"top_k": 2.5}, "top_k must be a whole number, not 2.5"),
        ({"max_tokens": None}, "max_tokens must be a whole number, not None"),
        ({"seed": True}, "seed must be a whole number, not True"),
        ({"stop": [1]}, "stop takes texts, not 1"),
        ({"logit_bias": {"5": 1.0}}, "logit_bias gives tokens numbers, not '5' the value 1.0"),
        ({"logit_bias": {5: None}}, "logit_bias gives tokens numbers, not 5 the value None"),
    ],
)
def test_wrong_types(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Sampling(**options)


def test_stop_texts_may_come_from_an_iterator() -> None:
    assert Sampling(stop=(text for text in ("a", "b"))) == Sampling(stop=["a", "b"])  # type: ignore[arg-type]


def test_texts_that_are_cut_short() -> None:
    vocabulary = gs.Vocabulary.bytes()
    model, constraint = NoiseModel(vocabulary.size), gs.compile(gs.regex("[ab]{9}"), vocabulary)
    cut = generate(model, [1], constraint.matcher(), vocabulary, sampling=Sampling(max_tokens=4))
    assert (len(cut.text), cut.finish_reason, cut.error) == (4, "length", None)
    with pytest.raises(gs.Truncated) as error:
        generate(model, [1], constraint.matcher(), vocabulary, sampling=Sampling(max_tokens=4, on_limit="raise"))
    assert len(error.value.partial) == 4
