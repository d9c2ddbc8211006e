"""Tekken, the tokenizer of mistral-common, and the wrappings that it comes in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grammarspec.vocabulary.adapters.adapter import TokenizerAdapter

__all__ = ["Tekken", "unwrapped"]


def unwrapped(tokenizer: Any) -> Any:
    """The tokenizer inside mistral-common's chat tokenizer, and inside transformers' backend for that.

    Anything else is returned as it is.
    """
    if hasattr(getattr(tokenizer, "tokenizer", None), "instruct_tokenizer"):
        tokenizer = tokenizer.tokenizer
    return tokenizer.instruct_tokenizer.tokenizer if hasattr(tokenizer, "instruct_tokenizer") else tokenizer


class Tekken(TokenizerAdapter):
    """A ``mistral_common.tokens.tokenizers.tekken.Tekkenizer``."""

    @staticmethod
    def matches(tokenizer: Any) -> bool:
        return hasattr(tokenizer, "id_to_byte_piece")

    def tokens(self) -> list[bytes | None]:
        special = self.tokenizer.special_ids
        return [
            None if token in special else self.tokenizer.id_to_byte_piece(token)
            for token in range(self.tokenizer.n_words)
        ]

    def special_tokens(self) -> Iterable[tuple[str, int]]:
        return ((self.tokenizer.id_to_piece(token), token) for token in sorted(self.tokenizer.special_ids))

    def ends(self) -> Iterable[int | None]:
        return [self.tokenizer.eos_id]

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text, bos=False, eos=False))
