"""The vocabulary of an engine's tokenizer, made once for each tokenizer."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from grammarspec.errors import UnsupportedTokenizer
from grammarspec.vocabulary import Vocabulary, end_token_ids

__all__ = ["vocabulary_of"]

_vocabularies: Final[WeakKeyDictionary[Any, Vocabulary]] = WeakKeyDictionary()
_lock = Lock()


def vocabulary_of(tokenizer: Any, size: int, eos_token_ids: Iterable[int] = ()) -> Vocabulary:
    """The vocabulary of a tokenizer, which is made at the first call.

    Args:
        tokenizer: the engine's tokenizer: of transformers, or of mistral-common within the engine's wrapper.
        size: the number of logits.
        eos_token_ids: further end-of-text tokens, in addition to those that the tokenizer has.

    Raises:
        UnsupportedTokenizer: this type of tokenizer is not supported, or the text of a token depends on its neighbours.
        ValueError: no end-of-text token is known.
    """
    ends = frozenset(eos_token_ids)
    with _lock:
        known = _vocabularies.get(tokenizer)
        if known is None or known.size != size or not ends.issubset(known.eos_token_ids):
            known = _vocabularies[tokenizer] = _made(tokenizer, size, ends)
        return known


def _made(tokenizer: Any, size: int, given: Iterable[int]) -> Vocabulary:
    own = getattr(tokenizer, "eos_token_id", None)
    ends = [*sorted(given), *end_token_ids(tokenizer), *([own] if isinstance(own, int) else [])]
    try:
        return Vocabulary.from_tokenizer(tokenizer, eos_token_ids=ends, size=size)
    except UnsupportedTokenizer:
        inner = getattr(getattr(tokenizer, "instruct", None), "tokenizer", None)  # of mistral-common
        if inner is None:
            raise
        return Vocabulary.from_tokenizer(inner, eos_token_ids=ends, size=size)
