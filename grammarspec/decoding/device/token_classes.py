"""Classes of tokens that do the same in all states known so far; a new state splits some of them.

Into a table with a column for each class, a state is entered as a row. A token whose class does other things there than
the token does needs a column of its own, which begins as a copy of its old one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PADDING", "TokenClasses"]

PADDING: Final = 0
"""The class of numbers that are no tokens."""


class TokenClasses:
    """A partition of the tokens of a vocabulary.

    Args:
        of: ``int16[width]``, which is kept up to date: the class of each token.
        tokens: the number of tokens; numbers from there on are padding.
        most: the greatest number of classes, that of padding included.

    Attributes:
        count: the number of classes.
    """

    def __init__(self, of: NDArray[np.int16], tokens: int, most: int) -> None:
        self._of, self._tokens, self._most = of, tokens, most
        self._sizes = np.zeros(most, np.int64)
        self.count = 0
        self.merge(np.zeros(1, np.int64))

    def merge(self, into: NDArray[np.int64]) -> None:
        """Number the classes of tokens anew.

        Args:
            into: for each class from 1 on, the number that it gets, from 1 on; classes with the same number become one.
                At first, all tokens are in one class.
        """
        own = self._of[: self._tokens]
        own[:] = 1 if self.count == 0 else into[own - 1]
        self._of[self._tokens :] = PADDING
        self.count = int(own.max()) + 1
        self._sizes[:] = 0
        self._sizes[: self.count] = np.bincount(own, minlength=self.count)

    def enter(self, values: NDArray[np.int32]) -> tuple[NDArray[np.int32], list[tuple[int, int]]] | None:
        """Split classes so that all tokens of a class have the same value.

        Args:
            values: ``int32[tokens]``, small numbers from -2 on.

        Returns:
            ``int32[count]``, for each class the value of its tokens, -1 for padding; and for each new class, in their
            order, its number and that of the class from which it was split. ``None`` if there would be too many
            classes; then nothing has changed.
        """
        shifted = values + 2
        common = int(np.bincount(shifted).argmax())
        tokens = np.flatnonzero(shifted != common)
        kinds = int(shifted.max()) + 1
        pairs = self._of[tokens].astype(np.int64) * kinds + shifted[tokens]
        found, inverse, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        splits, whole = self._splits(found // kinds, counts)
        if self.count + len(splits) > self._most:
            return None
        row = np.full(self.count + len(splits), common - 2, np.int32)
        row[PADDING] = -1
        for pair in whole:
            row[found[pair] // kinds] = found[pair] % kinds - 2
        members = np.split(tokens[np.argsort(inverse, kind="stable")], np.cumsum(counts)[:-1])
        new = []
        for number, pair in enumerate(splits, self.count):
            old = int(found[pair] // kinds)
            self._of[members[pair]] = number
            self._sizes[number] = counts[pair]
            self._sizes[old] -= counts[pair]
            row[number] = found[pair] % kinds - 2
            new.append((number, old))
        self.count += len(splits)
        return row, new

    def _splits(self, classes: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[list[int], list[int]]:
        """Which groups of tokens become new classes, and which are all that their old class has left."""
        left: dict[int, int] = {}
        splits: list[int] = []
        whole: list[int] = []
        for group, (number, count) in enumerate(zip(classes.tolist(), counts.tolist(), strict=True)):
            rest = left[number] = left.get(number, int(self._sizes[number])) - count
            (splits if rest else whole).append(group)
        return splits, whole

    def alone(self, token: int) -> tuple[int, int] | None:
        """Give a token a class of its own.

        Returns:
            the number of that class, and of the class in which the token was, which may be the same; ``None`` if there
            would be too many classes.
        """
        old = int(self._of[token])
        if self._sizes[old] == 1:
            return old, old
        if self.count == self._most:
            return None
        new, self.count = self.count, self.count + 1
        self._of[token] = new
        self._sizes[old] -= 1
        self._sizes[new] = 1
        return new, old
