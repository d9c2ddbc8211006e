"""A matcher for an engine's own loop, into which nothing may be raised: what goes wrong ends its sequence alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from grammarspec._compiler import Matcher
from grammarspec.serving.batch import fill_bitmasks

__all__ = ["GuardedMatcher"]

T = TypeVar("T")


class GuardedMatcher:
    """The matcher of one sequence, whose failures are kept and not raised.

    After a failure (a limit, say) the mask allows every token, so that the engine's sampler finds one, and that token
    is refused: an engine ends a sequence whose token is refused. Taking back tokens from before the failure takes it
    back, too.

    Attributes:
        matcher: the matcher itself.
        failure: the error that ended the sequence; ``None``: there was none.
    """

    __slots__ = ("_accepted", "_failed_at", "_tell", "failure", "matcher")

    def __init__(self, matcher: Matcher, tell: Callable[[BaseException], object] | None = None) -> None:
        """Guard a matcher.

        Args:
            matcher: at the beginning of its text, or wherever the sequence is.
            tell: is called with each failure, to log it.
        """
        self.matcher = matcher
        self.failure: BaseException | None = None
        self._tell = tell
        self._accepted = 0
        self._failed_at = -1

    def _guarded(self, work: Callable[..., T], *arguments: Any) -> T | None:
        try:
            return work(*arguments)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the compiler is no Exception; none may leave the sequence
            self.fail(error)
            return None

    def fail(self, error: BaseException) -> None:
        """End the sequence here with an error that its matcher gave elsewhere, as in a batch."""
        self.failure, self._failed_at = error, self._accepted
        if self._tell is not None:
            self._tell(error)

    def fork(self) -> GuardedMatcher:
        """A matcher of its own with the same tokens accepted, and the same failure."""
        forked = GuardedMatcher(self.matcher.fork(), self._tell)
        forked.failure, forked._accepted, forked._failed_at = self.failure, self._accepted, self._failed_at
        return forked

    def fill_bitmask(self, rows: Any, row: int = 0) -> None:
        """Write the mask of the next token into a row, as :meth:`.Matcher.fill_bitmask`; all bits if that fails."""
        if self.failure is not None or self._guarded(self._filled, rows, row) is None:
            rows[row] = -1

    @staticmethod
    def fill_bitmasks(sequences: Sequence[GuardedMatcher], rows: Any, index: Sequence[int], threads: int = 0) -> None:
        """Write the masks of many sequences at once, as :meth:`fill_bitmask` writes each.

        Masks that are not known yet are computed without the GIL, those of different constraints in parallel.

        Args:
            sequences: the sequences.
            rows: ``int32[n, words]``, as for :func:`.fill_bitmasks`.
            index: the row of each sequence.
            threads: how many threads work; 0: as many as there are cores.
        """
        sound = [(one, row) for one, row in zip(sequences, index, strict=True) if one.failure is None]
        matchers, first = [one.matcher for one, _ in sound], [row for _, row in sound]
        if len(sound) < len(sequences):
            for one, row in zip(sequences, index, strict=True):
                if one.failure is not None:
                    rows[row] = -1
        try:
            results = fill_bitmasks(matchers, rows, rows_index=first, threads=threads)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # something is wrong with the whole batch; each for itself finds with which
            for one, row in sound:
                one.fill_bitmask(rows, row)
            return
        for (one, row), result in zip(sound, results, strict=True):
            if not isinstance(result, int):
                one.fail(result)
                rows[row] = -1

    def _filled(self, rows: Any, row: int) -> bool:
        self.matcher.fill_bitmask(rows, row)
        return True

    def accept_tokens(self, tokens: Iterable[int]) -> bool:
        """Go on behind tokens, up to the first that is not allowed; whether all are.

        Those behind the end of the text are passed over. After a failure, none of them is accepted.
        """
        if self.failure is not None:
            return False
        tokens = list(tokens)
        accepted = self._guarded(self.matcher.accept_tokens, tokens)
        if accepted is None:
            return False
        self._accepted += accepted
        return accepted == len(tokens) or self.matcher.is_terminated

    def validate_tokens(self, tokens: Sequence[int]) -> list[int]:
        """Those of the tokens, from the first on, that are allowed. Nothing is accepted."""
        if self.failure is not None:
            return []
        return list(tokens[: self._guarded(self.matcher.validate_tokens, tokens) or 0])

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` tokens; all that there are, if they are fewer."""
        n = max(0, min(n, self._accepted))
        self.matcher.rollback(n)
        self._accepted -= n
        if self._accepted < self._failed_at:
            self.failure, self._failed_at = None, -1

    def reset(self) -> None:
        """Take back all tokens."""
        self.rollback(self._accepted)
        if self._failed_at >= 0:
            self.failure, self._failed_at = None, -1

    @property
    def is_terminated(self) -> bool:
        """Whether a token that ends the text was accepted."""
        return self.matcher.is_terminated
