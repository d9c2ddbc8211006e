"""Drafts of forced text: what every completion begins with, and what must follow behind optional whitespace."""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.decoding.proposers.spellings import Spellings, spellings_of
from grammarspec.decoding.proposers.whitespace import WHITESPACE, WhitespaceStyle
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.grammars import marks

__all__ = ["Forced"]

_LONGEST = 512  # bytes to look ahead
_OURS = ("forced", "preferred")


class Forced:
    """Drafts the text that the grammar forces: the bytes that every completion begins with.

    Where whitespace is optional but what follows it is forced, it drafts whitespace in the style of the text so far (at
    first none) and what follows. The tokens from such a guess on count as ``preferred`` in the statistics, the tokens
    before it as ``forced``.

    The text is tokenised as the target wrote the same text before, in this process, else as the tokenizer does it.

    Args:
        preferred: guess optional whitespace; in the loop on the device, draft what was chosen in the same state before.

    Attributes:
        preferred: as given.
    """

    name = "forced"
    runs_model = False
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, *, preferred: bool = True) -> None:
        self.preferred = preferred
        self._batch: BatchView
        self._spellings: Spellings
        # The whitespace style of each row, and how many of the row's tokens it has read.
        self._styles: list[tuple[WhitespaceStyle, int]] = []
        # The texts that were drafted for each row in this round, and how many tokens its draft had before each.
        self._drafted: dict[int, list[tuple[int, bytes]]] = {}

    def start(self, batch: BatchView) -> None:
        self._batch, self._spellings = batch, spellings_of(batch.vocabulary)
        self._drafted = {}
        self._styles = [(WhitespaceStyle(), sequence.prompt_length) for sequence in batch.sequences]

    def select(self, rows: Sequence[int]) -> None:
        self._styles = [self._styles[row] for row in rows]

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        for row in rows:
            with draft.guard(row):
                self._propose(draft, row)

    def _propose(self, draft: Draft, row: int) -> None:
        if draft.sequences[row].matcher is None:
            return
        vocabulary = self._batch.vocabulary
        text, forced, ends = self._look_ahead(draft, row)
        if text:
            self._drafted.setdefault(row, []).append((len(draft.tokens[row]), text))
        tokens = self._spellings.spell(vocabulary, text, draft.text(row))
        length = 0
        for token in [*tokens, self._batch.end_token] if ends else tokens:
            length += len(vocabulary.marked([token]))
            if not draft.extend(row, [token], self.name if length <= forced else "preferred"):
                break

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        for row, texts in self._drafted.items():
            # The text that was being written where the draft ended, or was refused.
            begun = [(offset, text) for offset, text in texts if offset <= accepted[row]]
            if begun and draft.sequences[row].finish_reason is None:
                self._learn(draft, row, accepted[row], *begun[-1])
        self._drafted.clear()

    def _learn(self, draft: Draft, row: int, count: int, offset: int, text: bytes) -> None:
        """Learn from the token that the target chose behind the accepted part of a draft.

        Args:
            draft: the draft.
            row: its row.
            count: how many of its tokens were accepted.
            offset, text: the forced text that begins at or before that place, and where it begins in the draft.
        """
        vocabulary, proposed = self._batch.vocabulary, draft.tokens[row]
        written = vocabulary.marked(proposed[offset:count])
        if text.startswith(written):
            *before, chosen = draft.sequences[row].tokens
            ours = count < len(proposed) and draft.sources[row][count] in _OURS
            refused = proposed[count] if ours else None
            self._spellings.learn(vocabulary, text[len(written) :], before, chosen, refused)

    def _look_ahead(self, draft: Draft, row: int) -> tuple[bytes, int, bool]:
        """The text to draft, how many of its bytes are forced without a guess, and whether the text ends behind it."""
        sequence = draft.sequences[row]
        matcher = sequence.matcher
        assert matcher is not None
        text = marks.whole(matcher.forced_bytes())  # the names of two special tokens may begin alike
        forced = len(text)
        following, ends = matcher.next_bytes(text)
        if not self.preferred or not set(following) & set(WHITESPACE):
            return text, forced, ends and not following
        style = self._style(sequence, row).copy()
        style.read(self._batch.vocabulary.decode(draft.tokens[row]) + text)
        while not ends and not style.in_string and len(text) < _LONGEST and set(following) & set(WHITESPACE):
            solid = [byte for byte in following if byte not in WHITESPACE]
            guess = style.guess(solid[0] if len(solid) == 1 else None)
            more = guess + bytes(solid) if len(solid) == 1 else guess
            if not more or not _allowed(matcher.next_bytes(text + more)):
                break
            if len(solid) != 1:
                # More than one byte can follow the whitespace: nothing behind it is forced.
                text += more
                break
            more += marks.whole(matcher.forced_bytes(text + more))
            text += more
            style.read(more)
            following, ends = matcher.next_bytes(text)
        return text, forced, ends and not following

    def _style(self, sequence: SequenceState, row: int) -> WhitespaceStyle:
        """The whitespace style of a row, after all of its committed tokens."""
        style, read = self._styles[row]
        style.read(self._batch.vocabulary.decode(sequence.tokens[read:]))
        self._styles[row] = style, len(sequence.tokens)
        return style


def _allowed(continuation: tuple[bytes, bool]) -> bool:
    """Whether a text is allowed, given what can follow it (``Matcher.next_bytes``): some byte, or the end."""
    following, ends = continuation
    return bool(following) or ends
