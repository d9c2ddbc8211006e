"""Drafts of forced text: what every completion begins with, and what must follow behind optional whitespace."""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.decoding.proposers.whitespace import WHITESPACE, WhitespaceStyle
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.grammars import marks
from grammarspec.vocabulary import Vocabulary

__all__ = ["Forced"]

_LONGEST = 512  # bytes to look ahead
_OURS = ("forced", "preferred")
_CONTEXT = 4  # tokens before a text that may influence how it is tokenised


class Forced:
    """Drafts the text that the grammar forces: the bytes that every completion begins with.

    Where whitespace is optional but what follows it is forced, it drafts whitespace in the style of the text so far (at
    first none) and what follows. The tokens from such a guess on count as ``preferred`` in the statistics, the tokens
    before it as ``forced``.

    The text is tokenised as the tokenizer does it. If the target rejects a token and writes a shorter one that begins
    the same text, later drafts use the shorter one.

    Args:
        preferred: guess optional whitespace.
    """

    name = "forced"
    runs_model = False
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, *, preferred: bool = True) -> None:
        self._preferred = preferred
        self._batch: BatchView
        self._vocabulary: Vocabulary | None = None
        # The whitespace style of each row, and how many of the row's tokens it has read.
        self._styles: list[tuple[WhitespaceStyle, int]] = []
        # The shorter tokens that the target prefers, by the kind of text before (see _kind) and the tokenizer's token.
        self._splits: dict[tuple[int, int], int] = {}

    def start(self, batch: BatchView) -> None:
        if self._vocabulary is not batch.vocabulary:
            self._splits.clear()
        self._batch, self._vocabulary = batch, batch.vocabulary
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
        text, forced, ends = self._look_ahead(draft, row)
        tokens = self._tokenise(draft, row, text)
        length = 0
        for token in [*tokens, self._batch.end_token] if ends else tokens:
            length += len(self._batch.vocabulary.marked([token]))
            if not draft.extend(row, [token], self.name if length <= forced else "preferred"):
                break

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        vocabulary = self._batch.vocabulary
        for row, count in enumerate(accepted):
            ended = draft.sequences[row].finish_reason is not None
            if ended or count == len(draft.tokens[row]) or draft.sources[row][count] not in _OURS:
                continue
            # Learn from a rejected token: did the target choose a shorter one that begins the same text?
            proposed, chosen = draft.tokens[row][count], draft.sequences[row].tokens[-1]
            text = vocabulary.token_bytes(chosen)
            kind = _kind(vocabulary.decode(draft.sequences[row].tokens[-2:-1]))
            if text and (vocabulary.token_bytes(proposed) or b"").startswith(text):
                self._splits[kind, proposed] = chosen
            elif self._splits.get((kind, chosen)) == proposed:
                del self._splits[kind, chosen]

    def _look_ahead(self, draft: Draft, row: int) -> tuple[bytes, int, bool]:
        """The text to draft, how many of its bytes are forced without a guess, and whether the text ends behind it."""
        sequence = draft.sequences[row]
        matcher = sequence.matcher
        assert matcher is not None
        text = marks.whole(matcher.forced_bytes())  # the names of two special tokens may begin alike
        forced = len(text)
        following, ends = matcher.next_bytes(text)
        if not self._preferred or not set(following) & set(WHITESPACE):
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

    def _tokenise(self, draft: Draft, row: int, text: bytes) -> list[int]:
        """The tokens of a text as the target is likely to write it."""
        vocabulary = self._batch.vocabulary
        before = vocabulary.decode(draft.text(row)[-_CONTEXT:])
        tokens: list[int] = []
        while text:
            # Take the tokenizer's tokens up to the first that the target splits, and tokenise what follows anew.
            spelled = vocabulary.spell(text, before=before)
            if not spelled:
                break
            for token in spelled:
                shorter = self._splits.get((_kind(before), token))
                tokens.append(token if shorter is None else shorter)
                written = vocabulary.marked(tokens[-1:])
                before, text = before + written, text[len(written) :]
                if shorter is not None:
                    break
        return tokens

    def _style(self, sequence: SequenceState, row: int) -> WhitespaceStyle:
        """The whitespace style of a row, after all of its committed tokens."""
        style, read = self._styles[row]
        style.read(self._batch.vocabulary.decode(sequence.tokens[read:]))
        self._styles[row] = style, len(sequence.tokens)
        return style


def _kind(text: bytes) -> int:
    """The kind of text before a token, on which its split may depend: its last byte, with letters and digits as one."""
    last = text[-1:]
    return ord("a") if last.isalnum() else ord(" ") if last.isspace() else last[0] if last else 0


def _allowed(continuation: tuple[bytes, bool]) -> bool:
    """Whether a text is allowed, given what can follow it (``Matcher.next_bytes``): some byte, or the end."""
    following, ends = continuation
    return bool(following) or ends
