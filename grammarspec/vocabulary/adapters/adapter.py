"""What a vocabulary asks of a tokenizer, whichever library it is from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

__all__ = ["TokenizerAdapter"]


class TokenizerAdapter(ABC):
    """A tokenizer of one library, as vocabularies are made of it.

    Args:
        tokenizer: the library's own object, which :meth:`matches`.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    @staticmethod
    @abstractmethod
    def matches(tokenizer: Any) -> bool:
        """Whether an object is a tokenizer of this library. The library is not imported to find out."""

    @abstractmethod
    def tokens(self) -> list[bytes | None]:
        """The text of each token, in the order of ids; ``None``: it is no text (special, added, unknown, padding).

        Raises:
            UnsupportedTokenizer: a token's text depends on its neighbours.
        """

    @abstractmethod
    def special_tokens(self) -> Iterable[tuple[str, int]]:
        """The names and ids of the tokens that are no text. Of several with the same name, the first has it."""

    @abstractmethod
    def ends(self) -> Iterable[int | None]:
        """The tokens that end a text, as far as the tokenizer knows them. ``None`` and ids below 0 are no tokens."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """How the tokenizer splits plain text: no special token is read in it, none is added."""
