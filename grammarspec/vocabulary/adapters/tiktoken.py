"""tiktoken's encodings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grammarspec.vocabulary.adapters.adapter import TokenizerAdapter

__all__ = ["Tiktoken"]


class Tiktoken(TokenizerAdapter):
    """A ``tiktoken.Encoding``."""

    @staticmethod
    def matches(tokenizer: Any) -> bool:
        return hasattr(tokenizer, "token_byte_values")

    def tokens(self) -> list[bytes | None]:
        tokens: list[bytes | None] = [None] * self.tokenizer.n_vocab
        for text in self.tokenizer.token_byte_values():
            tokens[self.tokenizer.encode_single_token(text)] = text
        return tokens

    def special_tokens(self) -> Iterable[tuple[str, int]]:
        return ((name, self.tokenizer.encode_single_token(name)) for name in self.tokenizer.special_tokens_set)

    def ends(self) -> Iterable[int | None]:
        try:
            return [self.tokenizer.eot_token]
        except KeyError:  # it has none
            return []

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode_ordinary(text))
