"""Follows a sequence for logits processors, which get all tokens at each call: moves a matcher to these tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from grammarspec._compiler import Constraint, Matcher
from grammarspec.errors import needed_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

with needed_by("logits processors"):
    import numpy as np

__all__ = ["FollowedText"]


@dataclass(slots=True, eq=False)
class FollowedText:
    """The generated tokens of a sequence, and a matcher that has accepted the first ``accepted`` of them.

    Attributes:
        constraint: the constraint.
        matcher: a matcher of the constraint, after the longest prefix of the tokens that it allows.
        tokens: ``int64[length]``, the generated tokens.
        accepted: the length of that prefix.
    """

    constraint: Constraint
    matcher: Matcher
    tokens: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    accepted: int = 0

    def shared(self, tokens: NDArray[np.int64]) -> int:
        """The length of the longest common prefix of these tokens and ``tokens`` of the sequence."""
        length = min(len(self.tokens), len(tokens))
        different = np.flatnonzero(self.tokens[:length] != tokens[:length])
        return int(different[0]) if len(different) else length

    def closest(self, rows: Sequence[FollowedText | None], tokens: NDArray[np.int64]) -> FollowedText:
        """This row, or a copy of a row of the same constraint with a longer common prefix (beams are reordered)."""
        if self.shared(tokens) >= len(tokens) - 1:
            return self
        candidates = [self, *(row for row in rows if row is not None and row.constraint is self.constraint)]
        best = max(candidates, key=lambda row: row.shared(tokens))
        return self if best is self else replace(best, matcher=best.matcher.fork())

    def follow(self, tokens: NDArray[np.int64]) -> None:
        """Roll back to the common prefix, and accept the further tokens as far as the constraint allows them.

        Raises:
            LimitExceeded, Cancelled: as :class:`.Matcher`.
        """
        shared = self.shared(tokens)
        if self.accepted > shared:
            self.matcher.rollback(self.accepted - shared)
            self.accepted = shared
        # If fewer are accepted, the constraint refuses a token of the common prefix, and so all that follows.
        if self.accepted == shared:
            new = tokens[shared:].astype(np.uint32)  # a negative id, which some use as padding, becomes a huge one
            self.accepted += self.matcher.accept_tokens(new.tolist())
        self.tokens = tokens

    def allow_end_again(self, mask: NDArray[np.int32]) -> None:
        """After the end of the text, allow the token that ended it: repeating this token changes nothing.

        Args:
            mask: ``int32[words]``, the mask row, which allows nothing.
        """
        if self.matcher.is_terminated:
            end = int(self.tokens[self.accepted - 1])
            mask.view(np.uint32)[end // 32] = 1 << end % 32
