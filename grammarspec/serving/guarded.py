"""A matcher for an engine's loop, where no error may be raised: an error ends its own sequence only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from grammarspec._compiler import Matcher
from grammarspec.serving.batch import fill_bitmasks

__all__ = ["GuardedMatcher"]

T = TypeVar("T")


class GuardedMatcher:
    """The matcher of one sequence, whose failures are kept and not raised.

    After a failure (a limit that was exceeded, for example) the mask allows every token, so that the engine's sampler
    finds one; that token is then refused, and engines end a sequence whose token is refused. Rolling back to before
    the failure removes the failure.

    Attributes:
        matcher: the matcher that is guarded.
        failure: the error that ended the sequence; ``None`` if there was none.
    """

    __slots__ = ("_accepted", "_failed_at", "_tell", "failure", "matcher")

    def __init__(self, matcher: Matcher, tell: Callable[[BaseException], object] | None = None) -> None:
        """Guard a matcher.

        Args:
            matcher: the matcher; it may have accepted tokens.
            tell: called with each failure, for logging.
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
        except BaseException as error:  # a panic of the compiler is not an Exception
            self.fail(error)
            return None

    def fail(self, error: BaseException) -> None:
        """End the sequence here with an error of its matcher that was found elsewhere, as in :func:`.fill_bitmasks`."""
        self.failure, self._failed_at = error, self._accepted
        if self._tell is not None:
            self._tell(error)

    def fork(self) -> GuardedMatcher:
        """An independent copy: the same tokens are accepted, and it has the same failure."""
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
            threads: the number of threads; 0: one for each core.
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
        except BaseException:  # the call for the whole batch failed: filling one by one finds the sequence that fails
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
        """Accept tokens up to the first that is not allowed, in one call, and return whether all of them are allowed.

        Tokens after the end of the text are ignored. After a failure, no token is accepted.
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
        """The longest prefix of the tokens that is allowed. No token is accepted."""
        if self.failure is not None:
            return []
        return list(tokens[: self._guarded(self.matcher.validate_tokens, tokens) or 0])

    def forced_tokens(self) -> list[int]:
        """The tokens of :meth:`.Matcher.forced_tokens`; none after a failure or the end of the text."""
        if self.failure is not None or self.matcher.is_terminated:
            return []
        return list(self._guarded(self.matcher.forced_tokens) or ())

    def rollback(self, n: int) -> None:
        """Roll back the last ``n`` accepted tokens, or all of them if there are fewer."""
        n = max(0, min(n, self._accepted))
        self.matcher.rollback(n)
        self._accepted -= n
        if self._accepted < self._failed_at:
            self.failure, self._failed_at = None, -1

    def reset(self) -> None:
        """Roll back all tokens, and remove the failure."""
        self.rollback(self._accepted)
        if self._failed_at >= 0:
            self.failure, self._failed_at = None, -1

    @property
    def is_terminated(self) -> bool:
        """Whether a token that ends the text was accepted."""
        return self.matcher.is_terminated
