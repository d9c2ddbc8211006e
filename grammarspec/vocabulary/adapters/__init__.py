"""Tokenizers of other libraries: one module and one line of :data:`ADAPTERS` for each library.

A tokenizer object comes in; a :class:`~.adapter.TokenizerAdapter` goes out, which has the text of each token in bytes.
"""

from __future__ import annotations

from typing import Any

from grammarspec.errors import UnsupportedTokenizer
from grammarspec.vocabulary.adapters.adapter import TokenizerAdapter
from grammarspec.vocabulary.adapters.huggingface import Tokenizers, Transformers
from grammarspec.vocabulary.adapters.sentencepiece import SentencePiece
from grammarspec.vocabulary.adapters.tekken import Tekken, unwrapped
from grammarspec.vocabulary.adapters.tiktoken import Tiktoken

__all__ = ["ADAPTERS", "TokenizerAdapter", "adapter_of", "find_adapter"]

ADAPTERS: tuple[type[TokenizerAdapter], ...] = (Transformers, Tokenizers, Tiktoken, Tekken, SentencePiece)
"""All kinds of tokenizers that are known. Each is recognised by a method that only it has."""


def adapter_of(tokenizer: Any) -> TokenizerAdapter:
    """The adapter of a tokenizer.

    Raises:
        UnsupportedTokenizer: it is of no known kind.
    """
    adapter = find_adapter(tokenizer)
    if adapter is None:
        unknown = type(unwrapped(tokenizer))
        hint = "of transformers only the fast tokenizers; for others give the bytes to Vocabulary.from_tokens"
        raise UnsupportedTokenizer(f"a tokenizer of type {unknown.__module__}.{unknown.__qualname__}", hint=hint)
    return adapter


def find_adapter(tokenizer: Any) -> TokenizerAdapter | None:
    """The adapter of a tokenizer; ``None``: it is of no known kind."""
    tokenizer = unwrapped(tokenizer)
    return next((adapter(tokenizer) for adapter in ADAPTERS if adapter.matches(tokenizer)), None)
