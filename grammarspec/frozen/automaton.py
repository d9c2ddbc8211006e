"""One frozen constraint: what the compiler has frozen comes in, arrays go out, and steps and masks of single states."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

from grammarspec.errors import GrammarError, needed_by
from grammarspec.frozen.files import REFUSED, read, write
from grammarspec.vocabulary import Vocabulary

__all__ = ["FrozenConstraint"]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class FrozenConstraint:
    """All states of a constraint as arrays; :meth:`grammarspec.Constraint.freeze` makes one.

    Below, V is the number of tokens, S of states, C of classes of tokens, R of distinct mask rows. The arrays are
    read-only, and equal for equal grammars and vocabularies, whatever the process or machine: there are as few states
    and classes as possible, classes are numbered by their lowest tokens, and states by when they are first met, breadth
    first from the start, classes in their order.

    Attributes:
        class_of: ``int16[V]``, the class of each token. Tokens of a class do the same in every state.
        next: ``int32[S, C]``, the state after a token of a class; -1 if it is not allowed.
        mask_row: ``int32[S]``, the number of the mask row of each state.
        pool: ``int32[R, ceil(V / 32)]``, mask rows as of :func:`grammarspec.allocate_bitmask`; bits past V are clear.
        accepting: ``bool[S]``, whether the text may end in a state.
        terminated: the state after a token that ends the text; -1 if there is none. As a matcher has it, it allows no
            token and counts as accepting.
        vocabulary: what tells vocabularies apart, as ``VocabularyIndex.fingerprint`` has it.
    """

    class_of: NDArray[np.int16]
    next: NDArray[np.int32]
    mask_row: NDArray[np.int32]
    pool: NDArray[np.int32]
    accepting: NDArray[np.bool_]
    terminated: int
    vocabulary: str

    @classmethod
    def from_parts(
        cls,
        *,
        class_of: bytes,
        next: bytes,
        mask_row: bytes,
        pool: bytes,
        accepting: bytes,
        terminated: int,
        classes: int,
        vocabulary: str,
    ) -> FrozenConstraint:
        """A frozen constraint of little-endian bytes, as the compiler gives them; they are not checked.

        Raises:
            MissingPackage: numpy is not installed.
        """
        with needed_by("a frozen constraint"):
            import numpy as np

        words = (len(class_of) // 2 + 31) // 32
        return cls(
            class_of=np.frombuffer(class_of, "<i2").astype(np.int16, copy=False),
            next=np.frombuffer(next, "<i4").astype(np.int32, copy=False).reshape(-1, classes),
            mask_row=np.frombuffer(mask_row, "<i4").astype(np.int32, copy=False),
            pool=np.frombuffer(pool, "<i4").astype(np.int32, copy=False).reshape(-1, words),
            accepting=np.frombuffer(accepting, np.bool_),
            terminated=terminated,
            vocabulary=vocabulary,
        )

    def __repr__(self) -> str:
        return f"<FrozenConstraint: {self.states} states, {self.classes} classes, {len(self.pool)} masks>"

    @property
    def start(self) -> int:
        """The state before the first token, always 0."""
        return 0

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.next)

    @property
    def classes(self) -> int:
        """The number of classes of tokens."""
        return int(self.next.shape[1])

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self.class_of)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays together."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: getattr(self, name) for name in ("class_of", "next", "mask_row", "pool", "accepting")}

    def tensors(self, device: Any = None) -> dict[str, torch.Tensor]:
        """Copies of the arrays as tensors, by name.

        Args:
            device: where they lie; the CPU if not given.

        Raises:
            MissingPackage: torch is not installed.
        """
        with needed_by("tensors of a frozen constraint"):
            import torch

        return {name: torch.tensor(array, device=device) for name, array in self.arrays().items()}

    def is_for(self, vocabulary: Vocabulary) -> bool:
        """Whether the constraint was frozen for this vocabulary, as far as fingerprints tell."""
        return vocabulary.index.fingerprint == self.vocabulary

    def step(self, state: int, token: int) -> int | None:
        """The state after a token; ``None`` if the token is not allowed.

        Raises:
            IndexError: there is no such state, or the token is negative.
        """
        self._check(state)
        if token < 0:
            raise IndexError(f"token {token} is negative")
        if token >= self.vocab_size:
            return None
        state = int(self.next[state, self.class_of[token]])
        return None if state == REFUSED else state

    def mask(self, state: int) -> NDArray[np.int32]:
        """The mask row of a state: ``int32[ceil(V / 32)]``, read-only.

        Raises:
            IndexError: there is no such state.
        """
        self._check(state)
        row: NDArray[np.int32] = self.pool[self.mask_row[state]]
        return row

    def is_accepting(self, state: int) -> bool:
        """Whether the text may end in a state.

        Raises:
            IndexError: there is no such state.
        """
        self._check(state)
        return bool(self.accepting[state])

    def _check(self, state: int) -> None:
        if not 0 <= state < self.states:
            raise IndexError(f"state {state} of {self.states} states")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the constraint to a file, in the format safetensors.

        Raises:
            MissingPackage: safetensors is not installed.
            OSError: the file cannot be written.
        """
        write(path, self.arrays(), {"terminated": str(self.terminated), "vocabulary": self.vocabulary})

    @classmethod
    def load(cls, path: str | PathLike[str], vocabulary: Vocabulary | None = None) -> FrozenConstraint:
        """Read what :meth:`save` wrote. Whatever the file holds, the arrays fit together.

        Args:
            path: the file.
            vocabulary: the vocabulary that the constraint is to be used with.

        Raises:
            GrammarError: the file is damaged, or of a version that this release cannot read, or the constraint was
                frozen for another vocabulary.
            MissingPackage: safetensors is not installed.
            OSError: the file cannot be read.
        """
        arrays, said = read(path)
        frozen = cls(**arrays, terminated=int(said["terminated"]), vocabulary=said.get("vocabulary", ""))
        if vocabulary is not None and not frozen.is_for(vocabulary):
            hint = "freeze the constraint again, for this vocabulary"
            raise GrammarError("the constraint was frozen for another vocabulary", str(path), hint)
        return frozen
