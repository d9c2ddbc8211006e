"""The processor for engines of one sequence: as llama-cpp-python and MLX-LM call it, and with hostile tokens."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import grammarspec as gs
from grammarspec.integrations.logits import SequenceLogitsProcessor

VOCABULARY = gs.Vocabulary.bytes()
END, WIDTH = 256, 300


def processor(pattern: str = "ab+") -> SequenceLogitsProcessor:
    return SequenceLogitsProcessor(gs.compile(gs.regex(pattern), VOCABULARY), VOCABULARY)


class Array:
    """An array as MLX has it, which is no numpy's: made of one, it adds and has a shape, a dtype and ``astype``."""

    def __init__(self, values: Any, dtype: Any = None) -> None:
        self.values = np.array(values.values if isinstance(values, Array) else values, dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype)

    def __add__(self, other: Array) -> Array:
        assert isinstance(other, Array) and other.dtype == self.dtype
        return Array(self.values + other.values)

    def astype(self, dtype: Any) -> Array:
        return Array(self.values, dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> Any:
        return self.values.dtype


def allowed(scores: Any) -> list[int]:
    return np.flatnonzero(np.asarray(scores).ravel() > -np.inf).tolist()


def test_as_llama_cpp_calls_it() -> None:
    """One buffer of tokens, which grows, and logits that lie apart in memory."""
    mask = processor()
    tokens = np.zeros(10, np.intc)
    tokens[:2] = 7, 8
    table = np.zeros(WIDTH, np.dtype([("id", np.intc), ("logit", np.single), ("p", np.single)]))
    logits = np.recarray(WIDTH, table.dtype, buf=table).logit
    seen = []
    for length, token in enumerate(b"abb", 2):
        logits[:] = np.arange(WIDTH)
        masked = mask(tokens[:length], logits)
        assert logits[0] == 0 and masked.dtype == np.single and masked[token] == token
        seen.append(allowed(masked))
        tokens[length] = token
    assert seen == [[97], [98], [98, END]]
    tokens[5] = END
    mask(tokens[:5], logits)
    for _ in range(2):  # an engine that asks on behind the end gets the end again
        assert allowed(mask(tokens[:6], logits)) == [END]
    mask.check()


def test_as_mlx_lm_calls_it() -> None:
    """Arrays of another library, logits with a row, and drafts that are taken back."""
    mask = processor()
    prompt = [5]
    logits = Array(np.zeros((1, WIDTH), np.float16))
    for text, expected in ([b"", [97]], [b"a", [98]], [b"ab", [98, END]], [b"a", [98]], [b"ab", [98, END]]):
        masked = mask(Array([*prompt, *text], np.int32), logits)
        assert isinstance(masked, Array) and masked.shape == (1, WIDTH) and masked.dtype == np.float16
        assert allowed(masked) == expected
    assert (logits.values == 0).all()


@pytest.mark.parametrize("token", [-1, 99, 257, 1 << 40])
def test_a_token_that_is_not_allowed_ends_the_text(token: int) -> None:
    mask, scores = processor(), np.zeros(WIDTH, np.single)
    mask([1], scores)
    for _ in range(2):
        scores[:] = 0
        with pytest.raises(ValueError, match=f"token {token} is not allowed"):
            mask([1, token], scores)
        assert allowed(scores) == [END]
    with pytest.raises(ValueError, match="is not allowed"):
        mask.check()
    mask.reset()
    mask.check()
    assert allowed(mask([1, token], np.zeros(WIDTH))) == [97]


@pytest.mark.parametrize("tokens", [[2, 97], [1], [1, 97, 98, 98]])
def test_another_text_is_refused(tokens: list[int]) -> None:
    """Another prompt, a shorter one, and several tokens at once, as drafts of llama-cpp-python come."""
    mask = processor()
    mask([1, 5], np.zeros(WIDTH))
    with pytest.raises(ValueError, match="make a processor for each answer"):
        mask(tokens, np.zeros(WIDTH))


@pytest.mark.parametrize("tokens", [[None], [1.5], [[1]], "text", None])
def test_tokens_that_are_none(tokens: Any) -> None:
    mask = processor()
    with pytest.raises(TypeError, match="integers"):
        mask(tokens, np.zeros(WIDTH))
    with pytest.raises(TypeError):
        mask.check()


def test_wrong_arguments() -> None:
    constraint = gs.compile(gs.regex("a"), VOCABULARY)
    with pytest.raises(TypeError, match="Constraint"):
        SequenceLogitsProcessor("a", VOCABULARY)
    with pytest.raises(TypeError, match="Vocabulary"):
        SequenceLogitsProcessor(constraint, None)
    with pytest.raises(ValueError, match="another vocabulary"):
        SequenceLogitsProcessor(constraint, gs.Vocabulary.from_tokens([b"a", b"b"], [2]))


def test_limits_end_the_text() -> None:
    constraint = gs.compile(gs.regex("a{3}b"), VOCABULARY, limits=gs.Limits(max_states=3))
    mask, scores = SequenceLogitsProcessor(constraint, VOCABULARY), np.zeros(WIDTH)
    length = 0
    while mask.failure is None:
        with contextlib.suppress(gs.LimitExceeded):
            mask([1, *b"aaab"][: (length := length + 1)], scores)
    assert allowed(scores) == [END] and isinstance(mask.failure, gs.LimitExceeded)
    with pytest.raises(gs.LimitExceeded):
        mask.check()


def test_two_answers_of_one_constraint() -> None:
    constraint = gs.compile(gs.regex("ab|cd"), VOCABULARY)
    first, second = (SequenceLogitsProcessor(constraint, VOCABULARY) for _ in range(2))
    for mask in (first, second):
        assert allowed(mask([3], np.zeros(WIDTH))) == [97, 99]
    assert allowed(first([3, 97], np.zeros(WIDTH))) == [98]
    assert allowed(second([3, 99], np.zeros(WIDTH))) == [100]
