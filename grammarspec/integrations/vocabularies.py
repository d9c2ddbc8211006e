"""The vocabulary of an engine's tokenizer, made once for all that use it."""

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
    """The vocabulary of a tokenizer, made once.

    Args:
        tokenizer: as engines have it: one of transformers, or one of mistral-common with the engine's own wrapper.
        size: the number of logits.
        eos_token_ids: tokens that end a text, beside those that the tokenizer knows.

    Raises:
        UnsupportedTokenizer: its kind is not known, or the text of a token depends on its neighbours.
        ValueError: no token that ends a text is known.
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
