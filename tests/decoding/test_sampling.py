"""What :class:`Sampling` refuses, and texts that are cut short."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import grammarspec as gs

pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Sampling, generate
from grammarspec.decoding.proposers import Forced
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
        ({"logprobs": True, "top_logprobs": True}, "top_logprobs must be a whole number, not True"),
        ({"logit_bias": {"5": 1.0}}, "logit_bias gives tokens numbers, not '5' the value 1.0"),
        ({"logit_bias": {5: None}}, "logit_bias gives tokens numbers, not 5 the value None"),
    ],
)
def test_wrong_types(options: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Sampling(**options)


def test_log_probabilities_of_other_tokens() -> None:
    """They need those of the text, and are as many as there are tokens at most."""
    with pytest.raises(ValueError, match="top_logprobs=2 needs logprobs=True"):
        Sampling(top_logprobs=2)
    with pytest.raises(ValueError, match="top_logprobs must be at least 0, not -1"):
        Sampling(logprobs=True, top_logprobs=-1)
    vocabulary = gs.Vocabulary.bytes()
    model, constraint = NoiseModel(vocabulary.size), gs.compile(gs.regex("[ab]{3}"), vocabulary)
    for asked in (0, 3, 1000):
        sampling = Sampling(logprobs=True, top_logprobs=asked)
        found = generate(model, [1], constraint.matcher(), vocabulary, sampling=sampling)
        assert found.logprobs is not None
        assert [len(one.top) for one in found.logprobs] == [min(asked, vocabulary.size)] * 4
        for one in found.logprobs:
            values = [value for _, value in one.top]
            assert values == sorted(values, reverse=True) and all(one.raw <= value for value in values[:1])


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


@pytest.mark.parametrize(
    ("pattern", "budget", "text", "reason", "whole"),
    [
        ("[ab]{4}", 4, None, "stop", True),  # nothing but the end of the text could follow
        ("[ab]{4}", 5, None, "stop", True),
        ("[ab]{4}", 3, None, "length", False),
        ("[ab]+", 3, None, "length", True),
        ("(é)+", 3, "é", "length", True),  # half a character is no text
        ("é{9}", 3, "é\ufffd", "length", False),
    ],
)
def test_texts_that_are_whole_where_the_budget_ends(
    pattern: str, budget: int, text: str | None, reason: str, whole: bool
) -> None:
    vocabulary = gs.Vocabulary.bytes()
    model, constraint = NoiseModel(vocabulary.size), gs.compile(gs.regex(pattern), vocabulary)
    sampling = Sampling(max_tokens=budget, logit_bias={256: -100.0})
    for proposers in ([], [Forced()]):
        found = generate(model, [1], constraint.matcher(), vocabulary, sampling=sampling, proposers=proposers)
        assert (found.finish_reason, found.whole, found.error) == (reason, whole, None)
        assert text is None or found.text == text
        strict = replace(sampling, on_limit="raise")
        if reason == "stop":
            assert generate(model, [1], constraint.matcher(), vocabulary, sampling=strict).whole
        else:
            with pytest.raises(gs.Truncated):
                generate(model, [1], constraint.matcher(), vocabulary, sampling=strict)


def test_texts_that_are_whole_before_a_stop_text() -> None:
    longer = [b"bcd", None]
    vocabulary = gs.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), *longer], [257])
    model = NoiseModel(vocabulary.size)

    def whole(pattern: str, stop: str, favourite: int) -> bool:
        sampling = Sampling(stop=[stop], logit_bias={257: -100.0, favourite: 100.0})
        found = generate(model, [1], gs.compile(gs.regex(pattern), vocabulary).matcher(), vocabulary, sampling=sampling)
        assert (found.text, found.stop, found.finish_reason) == ("ab", stop, "stop")
        return found.whole

    for favourite in (0, 256):  # byte by byte, or with the stop text within a token
        assert whole("ab(cd)?", "cd", favourite)
        assert not whole("abcd", "cd", favourite)
    unmasked = generate(model, [1], None, vocabulary, sampling=Sampling(max_tokens=3, logit_bias={256: -100.0}))
    assert (unmasked.finish_reason, unmasked.whole) == ("length", False)
