"""How a target writes text that is given: into which tokens it splits it.

Forced text can be split into tokens in many ways, and a model that is held to a grammar does not always choose its
tokenizer's. A draft that is split otherwise is refused. So the choices of targets are remembered, for as long as their
vocabulary is used: in front of the same text, behind the same token, a target mostly chooses the same token again.
"""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

from grammarspec.vocabulary import Vocabulary

__all__ = ["Spellings", "spellings_of"]

_CONTEXT = 4  # tokens before a text that may influence how it is tokenised
_AHEAD = 24  # bytes of the text that a choice may depend on
_KEPT = 10_000  # choices; those that were made longest ago are forgotten


class Spellings:
    """The tokens that the targets of a vocabulary prefer to those of its tokenizer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # batches of several threads may have one vocabulary
        # The token that was chosen behind a token, in front of a text.
        self._chosen: dict[tuple[int, bytes], int] = {}
        # For texts that are new: the shorter token that was chosen, by the kind of text before (see _kind) and the
        # tokenizer's token.
        self._splits: dict[tuple[int, int], int] = {}

    def spell(self, vocabulary: Vocabulary, text: bytes, before: list[int]) -> list[int]:
        """The tokens of a text as the target is likely to write it.

        Args:
            vocabulary: the vocabulary.
            text: the text, with the marks of special tokens.
            before: the tokens before it, at least the last four.

        Returns:
            tokens that spell the text, or, where no tokens do, a beginning of it.
        """
        context, last = vocabulary.decode(before[-_CONTEXT:]), before[-1] if before else -1
        tokens: list[int] = []
        while text:
            # Take the tokenizer's tokens up to the first that the target splits, and tokenise what follows anew.
            spelled = vocabulary.spell(text, before=context)
            if not spelled:
                break
            for usual in spelled:
                token = self._chosen.get((last, text[:_AHEAD]))
                if token is None:
                    token = self._splits.get((_kind(context), usual), usual)
                written = vocabulary.marked([token])
                tokens.append(token)
                context, text, last = context + written, text[len(written) :], token
                if token != usual:
                    break
        return tokens

    def learn(self, vocabulary: Vocabulary, text: bytes, before: list[int], chosen: int, refused: int | None) -> None:
        """Take into account what a target chose.

        Args:
            vocabulary: the vocabulary.
            text: the text that it had to write, with the marks of special tokens.
            before: the tokens before it, at least the last.
            chosen: the token that it chose.
            refused: the token that was drafted in its place, if any.
        """
        written = vocabulary.marked([chosen])
        if not before or not written or not text.startswith(written):
            return
        with self._lock:
            key = before[-1], text[:_AHEAD]
            self._chosen.pop(key, None)
            self._chosen[key] = chosen
            if len(self._chosen) > _KEPT:
                del self._chosen[next(iter(self._chosen))]
            if refused is None:
                return
            kind = _kind(vocabulary.decode(before[-1:]))
            if vocabulary.marked([refused]).startswith(written):
                self._splits[kind, refused] = chosen
            elif self._splits.get((kind, chosen)) == refused:
                del self._splits[kind, chosen]


_spellings: WeakKeyDictionary[Vocabulary, Spellings] = WeakKeyDictionary()


def spellings_of(vocabulary: Vocabulary) -> Spellings:
    """What this process knows of the targets of a vocabulary."""
    return _spellings.setdefault(vocabulary, Spellings())


def _kind(text: bytes) -> int:
    """The kind of text before a token, on which its split may depend: its last byte, with letters and digits as one."""
    last = text[-1:]
    return ord("a") if last.isalnum() else ord(" ") if last.isspace() else last[0] if last else 0
