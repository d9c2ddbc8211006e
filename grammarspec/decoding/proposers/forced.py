"""Text that the grammar forces, and text that it forces but for whitespace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grammarspec.decoding.whitespace import WHITESPACE, Spelling
from grammarspec.grammars import marks

if TYPE_CHECKING:
    from grammarspec.decoding.draft import Draft
    from grammarspec.decoding.lane import Lane
    from grammarspec.decoding.loop import Batch
    from grammarspec.vocabulary import Vocabulary

__all__ = ["Forced"]

_LONGEST = 512  # bytes to look ahead
_OURS = ("forced", "preferred")
_CONTEXT = 4  # tokens before a text that may decide how it is split


class Forced:
    """Proposes what every completion begins with.

    Where whitespace is free but what follows it is forced, it proposes the whitespace that the text has used at such
    places so far, at first none, and goes on behind it. These tokens count as ``preferred``, not ``forced``.

    The text is split as the tokenizer splits it, but for tokens in whose place the target has used a shorter one.

    Args:
        preferred: guess whitespace.
    """

    name = "forced"
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, *, preferred: bool = True) -> None:
        self._preferred = preferred
        self._batch: Batch
        self._vocabulary: Vocabulary | None = None
        self._spellings: list[tuple[Spelling, int]] = []
        # Tokens that the target splits behind some kind of text, and the token that it begins with.
        self._habits: dict[tuple[int, int], int] = {}

    def start(self, batch: Batch) -> None:
        if self._vocabulary is not batch.vocabulary:
            self._habits.clear()
        self._batch, self._vocabulary = batch, batch.vocabulary
        self._spellings = [(Spelling(), lane.prompt_length) for lane in batch.lanes]

    def select(self, rows: Sequence[int]) -> None:
        self._spellings = [self._spellings[row] for row in rows]

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        for row in rows:
            with draft.guard(row):
                self._propose(draft, row)

    def _propose(self, draft: Draft, row: int) -> None:
        if draft.lanes[row].matcher is None:
            return
        text, forced, ends = self._look_ahead(draft, row)
        tokens = self._spell(draft, row, text)
        said = 0
        for token in [*tokens, self._batch.end_token] if ends else tokens:
            said += len(self._batch.vocabulary.marked([token]))
            if not draft.extend(row, [token], self.name if said <= forced else "preferred"):
                break

    def settle(self, draft: Draft, accepted: Sequence[int]) -> None:
        vocabulary = self._batch.vocabulary
        for row, taken in enumerate(accepted):
            ended = draft.lanes[row].finish_reason is not None
            if ended or taken == len(draft.tokens[row]) or draft.sources[row][taken] not in _OURS:
                continue
            # A refused token whose text the target began to say by a shorter one is split so from now on.
            proposed, chosen = draft.tokens[row][taken], draft.lanes[row].tokens[-1]
            text = vocabulary.token_bytes(chosen)
            kind = _kind(vocabulary.decode(draft.lanes[row].tokens[-2:-1]))
            if text and (vocabulary.token_bytes(proposed) or b"").startswith(text):
                self._habits[kind, proposed] = chosen
            elif self._habits.get((kind, chosen)) == proposed:
                del self._habits[kind, chosen]

    def _look_ahead(self, draft: Draft, row: int) -> tuple[bytes, int, bool]:
        """What to draft, how much of it is forced without a guess, and whether it ends the text."""
        lane = draft.lanes[row]
        matcher = lane.matcher
        assert matcher is not None
        text = marks.whole(matcher.forced_bytes())  # names of two tokens may begin alike
        forced = len(text)
        following, ends = matcher.next_bytes(text)
        if not self._preferred or not set(following) & set(WHITESPACE):
            return text, forced, ends and not following
        spelling = self._spelling(lane, row).copy()
        spelling.read(self._batch.vocabulary.decode(draft.tokens[row]) + text)
        while not ends and not spelling.in_string and len(text) < _LONGEST and set(following) & set(WHITESPACE):
            solid = [byte for byte in following if byte not in WHITESPACE]
            guess = spelling.guess(solid[0] if len(solid) == 1 else None)
            more = guess + bytes(solid) if len(solid) == 1 else guess
            if not more or not _allowed(matcher.next_bytes(text + more)):
                break
            if len(solid) != 1:
                # What stands behind the whitespace is open.
                text += more
                break
            more += marks.whole(matcher.forced_bytes(text + more))
            text += more
            spelling.read(more)
            following, ends = matcher.next_bytes(text)
        return text, forced, ends and not following

    def _spell(self, draft: Draft, row: int, text: bytes) -> list[int]:
        """The text as the model is likely to split it."""
        vocabulary = self._batch.vocabulary
        before = vocabulary.decode(draft.text(row)[-_CONTEXT:])
        tokens: list[int] = []
        while text:
            # Up to the first token that the target splits; what follows it is then split anew.
            spelled = vocabulary.spell(text, before=before)
            if not spelled:
                break
            for token in spelled:
                habit = self._habits.get((_kind(before), token))
                tokens.append(token if habit is None else habit)
                said = vocabulary.marked(tokens[-1:])
                before, text = before + said, text[len(said) :]
                if habit is not None:
                    break
        return tokens

    def _spelling(self, lane: Lane, row: int) -> Spelling:
        spelling, read = self._spellings[row]
        spelling.read(self._batch.vocabulary.decode(lane.tokens[read:]))
        self._spellings[row] = spelling, len(lane.tokens)
        return spelling


def _kind(text: bytes) -> int:
    """What tells apart the places where a token may be split differently: the last byte, letters and digits alike."""
    last = text[-1:]
    return ord("a") if last.isalnum() else ord(" ") if last.isspace() else last[0] if last else 0


def _allowed(behind: tuple[bytes, bool]) -> bool:
    """Something may stand, or the text may end, behind a text that is allowed."""
    following, ends = behind
    return bool(following) or ends
