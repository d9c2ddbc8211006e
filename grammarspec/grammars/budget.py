"""What one call of a front-end may use: steps of work, time, and a flag that cancels it, as the engine's calls have.

A front-end makes a :class:`Budget` from the caller's limits; its rooms take steps from it where work can grow faster
than the declaration. Work is counted in steps and not in seconds, so that a declaration is taken or refused alike on
every machine. Memory is bounded by the same steps, since whatever is kept has been made by some.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from grammarspec._compiler import CancelToken
from grammarspec.errors import LimitExceeded
from grammarspec.grammars.engine import Limits, check_cancel, given_or_default

__all__ = ["Budget"]

_WATCHED: Final = 20_000
"""Steps between two looks at the clock and the flag: a few milliseconds."""
_PER_PART: Final = 3_000
"""Steps that each part of a declaration is worth: more than those of real declarations take, with few exceptions."""


class Budget:
    """The steps that are left to one call. A step is about a fifth of a microsecond, as the engine's are."""

    __slots__ = ("_aside", "_cancel", "_deadline", "_further", "_left", "_limits", "_parts", "_reserve")

    def __init__(self, limits: Limits | None = None, cancel: CancelToken | None = None) -> None:
        """A budget, whose time begins now.

        Args:
            limits: of which ``max_steps`` and ``timeout`` are used; :class:`.Limits` with its defaults if not given.
            cancel: stops the work when it is cancelled.

        Raises:
            TypeError: ``limits`` is no :class:`.Limits`, or ``cancel`` no :class:`.CancelToken`.
            Cancelled: it is cancelled already.
        """
        check_cancel(cancel)
        self._limits = given_or_default(limits)
        self._cancel = cancel
        self._parts: Callable[[], int] | None = None
        timeout = self._limits.timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._left, self._reserve, self._further = 0, self._limits.max_steps, self._limits.max_steps // 2
        self._aside = 0

    def allow(self, parts: Callable[[], int]) -> None:
        """Add steps for each part of a declaration that is read now, so that large ones may take what they need.

        All together they are at most half as many as the limit, so that large ones take no longer than a call may.

        Args:
            parts: counts them; it is called if the other steps are used up.
        """
        self._parts = parts

    def spend(self, steps: int, where: str = "") -> None:
        """Take steps.

        Args:
            where: the place that is named if there are not enough.

        Raises:
            LimitExceeded: there are not enough, or the time is over.
            Cancelled: the call was cancelled.
        """
        self._left -= steps
        if self._left < 0:
            self._go_on(where)

    @contextmanager
    def at(self, where: str) -> Iterator[None]:
        """Name a place in errors of what is charged within, where these name none.

        Raises:
            LimitExceeded: as :meth:`spend`.
        """
        try:
            yield
        except LimitExceeded as error:
            if error.where:
                raise
            raise LimitExceeded(error.message, where, error.hint) from None

    @property
    def is_used_up(self) -> bool:
        """Whether steps were asked for that were not there."""
        return self._left < 0

    def set_aside(self) -> None:
        """Keep a quarter of the steps that are left for what is done after :meth:`take_back`."""
        there = max(0, self._left + self._reserve)
        kept = there // 4
        self._left, self._reserve, self._aside = 0, there - kept, self._aside + kept

    def take_back(self) -> None:
        """Add the steps that were set aside. Work that asked for more than there were does not count against them."""
        self._left, self._reserve, self._aside = max(0, self._left), self._reserve + self._aside, 0

    def _go_on(self, where: str) -> None:
        """Look at the clock and the flag, and move on to the next steps."""
        check_cancel(self._cancel, where)
        if self._deadline is not None and time.monotonic() > self._deadline:
            hint = "make the declaration smaller, or give limits=gs.Limits(timeout=...)"
            raise LimitExceeded(f"limit exceeded: timeout (limit {self._limits.timeout} s)", where, hint)
        needed = -self._left
        if needed > self._reserve and self._parts is not None:
            added = min(_PER_PART * self._parts(), self._further)
            self._reserve, self._further = self._reserve + added, self._further - added
            self._parts = None
        if needed > self._reserve:
            self._reserve = 0
            hint = "make the declaration smaller, or give limits=gs.Limits(max_steps=...)"
            raise LimitExceeded(f"limit exceeded: max_steps (limit {self._limits.max_steps})", where, hint)
        watched = self._cancel is not None or self._deadline is not None
        taken = min(self._reserve, needed + _WATCHED) if watched else self._reserve
        self._reserve -= taken
        self._left += taken
