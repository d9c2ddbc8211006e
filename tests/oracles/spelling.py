"""What tokens spell, by trying: an oracle for vocabularies that do not have every byte as a token of its own."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from grammarspec import Grammar
from grammarspec.grammars.engine import over_bytes

__all__ = ["Speller", "spells"]


def spells(tokens: Iterable[bytes], text: bytes) -> bool:
    """Whether a text is a sequence of tokens."""
    texts = set(tokens)
    reached = {0}
    for end in range(1, len(text) + 1):
        if any(text[begin:end] in texts for begin in reached):
            reached.add(end)
    return len(text) in reached


class Speller:
    """The texts of a grammar that are made of characters that tokens spell.

    The grammar is asked byte by byte, on the vocabulary of single bytes.
    """

    def __init__(self, grammar: Grammar[object], tokens: Iterable[bytes]) -> None:
        self.tokens = sorted(set(tokens))
        self._constraint = over_bytes(grammar.ir)
        self._matcher = self._constraint.matcher()
        self._spelled: dict[bytes, bool] = {}
        self._completes: dict[bytes, bool] = {}

    def accepts(self, text: bytes) -> bool:
        """Whether it is a whole text."""
        return self._goes_on(text) and self._matcher.is_accepting and not _cut_off(text)

    def completes(self, text: bytes, most: int) -> bool:
        """Whether at most so many tokens make it a whole text."""
        if not self._goes_on(text):
            return False
        if self.accepts(text):
            return True
        return most > 0 and any(self.completes(text + token, most - 1) for token in self.tokens)

    def _goes_on(self, text: bytes) -> bool:
        """Whether the grammar may go on behind it, and each character in it is one that tokens spell."""
        self._matcher.reset()
        return self._matcher.accept_tokens(list(text)) == len(text) and all(map(self.has, _characters(text)))

    def has(self, character: bytes) -> bool:
        """Whether tokens spell the character."""
        if character not in self._spelled:
            self._spelled[character] = spells(self.tokens, character)
        return self._spelled[character]


def _cut_off(text: bytes) -> bytes:
    """The character that a text ends in, as far as it goes."""
    whole = text.decode(errors="ignore").encode()
    return text[len(whole) :]


def _characters(text: bytes) -> list[bytes]:
    """The whole characters of a text, which is UTF-8 but for a last one that is cut off."""
    begins = [at for at, byte in enumerate(text) if byte & 0xC0 != 0x80]
    found = [text[begin:end] for begin, end in pairwise([*begins, len(text)])]
    return found[:-1] if _cut_off(text) else found
