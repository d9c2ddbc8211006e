"""Provides rows of a batch with states of constraints that do not freeze, through windows.

The rows whose state is missing on the device wait until the host has entered it into the window of their constraint.
While rounds run, the host computes states ahead: those that a text is likely to come to, where tokens that texts have
had often are taken to be likely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Final

from grammarspec._compiler import Matcher
from grammarspec.decoding.device.automaton import ArenaTensors
from grammarspec.decoding.device.forced import forced_token
from grammarspec.decoding.device.window import Window
from grammarspec.decoding.sequence_state import SequenceState
from grammarspec.errors import FAILURES
from grammarspec.frozen import FrozenArena
from grammarspec.vocabulary import Vocabulary

__all__ = ["Supply"]

_AHEAD: Final = 8  # the number of states that are computed ahead for each row and round
_MOST: Final = 32  # and for all rows together, unless the device has not come to an end of the round before
_VISITED: Final = 64  # the number of states that are looked at for this, known ones included, for each row
_LEAST: Final = 1e-4  # states that are less likely are not computed ahead
_SHARES: Final = (0.5, 0.125, 0.0)  # how many states stay in a window that is full: fewer, if these leave no room


class Supply:
    """The windows of a batch.

    Args:
        windows: for the ``id`` of each constraint that does not freeze, its window.
        arena: the arena of the windows.
        tensors: its arrays on the device.
        vocabulary: the tokens.
        end_token: the end-of-text token to draft where the end is forced.

    Attributes:
        waiting: the numbers of the texts whose state is missing on the device.
    """

    def __init__(
        self,
        windows: dict[int, Window],
        arena: FrozenArena,
        tensors: ArenaTensors,
        vocabulary: Vocabulary,
        end_token: int,
    ) -> None:
        self._windows, self._arena, self._tensors = windows, arena, tensors
        self._vocabulary, self._end_token = vocabulary, end_token
        self.waiting: set[int] = set()

    def window(self, matcher: Matcher | None) -> Window | None:
        """The window of a text's constraint, if it has one."""
        return None if matcher is None else self._windows.get(id(matcher.constraint))

    def follow(self, sequence: SequenceState, states: Sequence[int], tokens: Sequence[int]) -> None:
        """Note what a round has committed to a text.

        Args:
            sequence: the text.
            states: the state before the tokens, and that after each of them.
            tokens: the tokens.
        """
        window = self.window(sequence.matcher)
        if window is not None:
            window.touch(states)
            window.read(tokens)
            for before, token, behind in zip(states, tokens, states[1:], strict=False):
                window.learn(before, token, behind)

    def states(
        self, sequences: Sequence[SequenceState], drain: Callable[[], None]
    ) -> tuple[dict[int, int], dict[int, Exception]]:
        """The states for which texts wait.

        Args:
            sequences: all texts of the batch.
            drain: waits until no round is under way, so that the states of all texts are known; more texts may wait
                then. It is called where states have to be left out of a window.

        Returns:
            for the number of each text that waits, its state in the arena, or the error that its constraint raised.
        """
        found: dict[int, int] = {}
        failed: dict[int, Exception] = {}
        while self.waiting:
            number = self.waiting.pop()
            sequence = sequences[number]
            window = self.window(sequence.matcher)
            if window is None or sequence.matcher is None or sequence.finish_reason is not None:
                continue
            state = sequence.matcher.state
            try:
                if not window.enter(state):
                    drain()
                    self._make_room(window, state, sequences)
            except FAILURES as error:
                failed[number] = error
                continue
            found[number] = state
        places = {number: self._place(sequences[number], state) for number, state in found.items()}
        self.upload()
        return places, failed

    def _place(self, sequence: SequenceState, state: int) -> int:
        window = self.window(sequence.matcher)
        assert window is not None
        return window.place(state)

    def _make_room(self, window: Window, state: int, sequences: Sequence[SequenceState]) -> None:
        """Enter a state into a window that is full, while no round is under way."""
        keep = [
            each.matcher.state
            for each in sequences
            if each.finish_reason is None and each.matcher is not None and self.window(each.matcher) is window
        ]
        for share in _SHARES:
            window.shrink(keep, share)
            if window.enter(state):
                return
        window.enter(state, bare=True)

    def compute_ahead(self, sequences: Iterable[SequenceState], arrived: Callable[[], bool]) -> None:
        """Enter states that texts are likely to come to, as long as there is room.

        Args:
            sequences: the texts that go on.
            arrived: whether the report is there that the host reads next; until it is, there is time for more states.
        """
        if not self._windows:
            return
        starts = [
            (window, each.matcher.state)
            for each in sequences
            if each.matcher is not None and (window := self.window(each.matcher)) is not None
        ]
        left = _MOST
        while starts:
            starts = [(window, state) for window, state in starts if state not in window.explored]
            for window, state in starts:
                if left <= 0 and arrived():
                    return
                entered = _explore(window, state, _AHEAD)
                left -= entered
                if not entered:
                    window.explored.add(state)
            if left <= 0 or arrived():
                return

    def upload(self) -> None:
        """Copy to the device what is new in the windows."""
        for window in self._windows.values():
            for row, alike in window.upload(self._tensors):
                if row == alike:
                    token = forced_token(self._arena.pool[row], self._vocabulary, self._end_token)
                    self._tensors.forced[row] = token
                else:  # the target may have spelled the text in another way there
                    self._tensors.forced[row] = self._tensors.forced[alike]


def _explore(window: Window, start: int, most: int) -> int:
    """Enter the states that are most likely to be reached from a state, at most so many; returns how many."""
    entered = visited = 0
    queue, met = [(-1.0, start)], {start}
    while queue and entered < most and visited < _VISITED:
        share, state = heappop(queue)
        visited += 1
        if state not in window:
            try:
                if not window.enter(state):
                    break
            except FAILURES:
                continue  # it may never be needed; if it is, its text gets the error
            finally:
                entered += 1
        for following, part in window.likely(state):
            if following not in met and share * part < -_LEAST:
                met.add(following)
                heappush(queue, (share * part, following))
    return entered
