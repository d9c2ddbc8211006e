"""Frozen constraints in files of the format safetensors: written, read, and checked.

A file may come from anywhere. What is read is checked so that no index leads out of an array, and that masks and
transitions say the same.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

from grammarspec.errors import GrammarError, needed_by
from grammarspec.frozen.automaton import REFUSED, FrozenConstraint
from grammarspec.vocabulary import Vocabulary

__all__ = ["load", "save"]

_FORMAT: Final = "grammarspec.frozen"
_VERSION: Final = "1"
_ARRAYS: Final = {
    "class_of": ("int16", 1),
    "next": ("int32", 2),
    "mask_row": ("int32", 1),
    "pool": ("int32", 2),
    "accepting": ("bool", 1),
}
"""The dtype and the number of dimensions of each array."""


def save(frozen: FrozenConstraint, path: str | PathLike[str]) -> None:
    """Write a frozen constraint; see :meth:`.FrozenConstraint.save`.

    Raises:
        MissingPackage: safetensors is not installed.
        OSError: the file cannot be written.
    """
    with needed_by("files of frozen constraints"):
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

    said = {
        "format": _FORMAT,
        "version": _VERSION,
        "terminated": str(frozen.terminated),
        "vocabulary": frozen.vocabulary,
    }
    try:
        save_file(frozen.arrays(), path, metadata=said)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from error


def load(path: str | PathLike[str], vocabulary: Vocabulary | None) -> FrozenConstraint:
    """Read a frozen constraint; see :meth:`.FrozenConstraint.load`.

    Raises:
        GrammarError: the file is damaged, of another version, or for another vocabulary.
        MissingPackage: safetensors is not installed.
        OSError: the file cannot be read.
    """
    with needed_by("files of frozen constraints"):
        from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            said = file.metadata() or {}
            _check_version(said)
            arrays = {name: file.get_tensor(name) for name in file.keys() if name in _ARRAYS}  # noqa: SIM118
    except SafetensorError as error:
        raise GrammarError(f"no file of the format safetensors: {error}", str(path)) from error
    except GrammarError as error:
        raise GrammarError(error.message, str(path), error.hint) from None
    try:
        frozen = _checked(arrays, said)
    except _Damaged as error:
        raise GrammarError(f"the file of a frozen constraint is damaged: {error}", str(path)) from None
    if vocabulary is not None and not frozen.is_for(vocabulary):
        hint = "freeze the constraint again, for this vocabulary"
        raise GrammarError("the constraint was frozen for another vocabulary", str(path), hint)
    return frozen


class _Damaged(Exception):
    """What is wrong with a file."""


def _check_version(said: dict[str, str]) -> None:
    """Raise ``GrammarError`` unless the file is of this format and version."""
    if said.get("format") != _FORMAT:
        raise GrammarError("the file holds no frozen constraint")
    if said.get("version") != _VERSION:
        hint = "freeze the constraint again with this release"
        raise GrammarError(f"a frozen constraint of version {said.get('version')!r:.20}, not {_VERSION!r}", hint=hint)


def _checked(arrays: dict[str, NDArray[Any]], said: dict[str, str]) -> FrozenConstraint:
    """The frozen constraint of these arrays.

    Raises:
        _Damaged: they do not fit together.
    """
    for name, (dtype, dimensions) in _ARRAYS.items():
        array = arrays.get(name)
        if array is None:
            raise _Damaged(f"it has no array {name}")
        if array.dtype != dtype or array.ndim != dimensions:
            raise _Damaged(f"{name} is {array.dtype} of {array.ndim} dimensions, not {dtype} of {dimensions}")
        array.flags.writeable = False
    try:
        terminated = int(said.get("terminated", ""))
    except ValueError:
        raise _Damaged("it does not say which state is the terminated one") from None
    frozen = FrozenConstraint(**arrays, terminated=terminated, vocabulary=said.get("vocabulary", ""))
    _check_shapes(frozen)
    _check_indices(frozen)
    _check_masks(frozen)
    return frozen


def _check_shapes(frozen: FrozenConstraint) -> None:
    states, words = frozen.states, (frozen.vocab_size + 31) // 32
    if states == 0 or frozen.classes == 0 or frozen.vocab_size == 0:
        raise _Damaged("it has no states, classes or tokens")
    for name, shape in (("mask_row", (states,)), ("accepting", (states,)), ("pool", (len(frozen.pool), words))):
        if getattr(frozen, name).shape != shape:
            raise _Damaged(f"{name} has the shape {getattr(frozen, name).shape}, not {shape}")


def _check_indices(frozen: FrozenConstraint) -> None:
    """Raise ``_Damaged`` if a number in an array is not one of what it should name."""
    for name, least, count in (
        ("class_of", 0, frozen.classes),
        ("next", REFUSED, frozen.states),
        ("mask_row", 0, len(frozen.pool)),
    ):
        array = getattr(frozen, name)
        low, high = int(array.min()), int(array.max())
        if low < least or high >= count:
            raise _Damaged(f"{name} has numbers from {low} to {high}; those from {least} to {count - 1} are possible")
    if not REFUSED <= frozen.terminated < frozen.states:
        raise _Damaged(f"the terminated state is {frozen.terminated} of {frozen.states}")


def _check_masks(frozen: FrozenConstraint) -> None:
    """Raise ``_Damaged`` if a mask row is not of the tokens that have a transition."""
    import numpy as np

    used, some_state, row_of = np.unique(frozen.mask_row, return_index=True, return_inverse=True)
    leads = frozen.next != REFUSED
    if not np.array_equal(leads, leads[some_state[row_of]]):
        raise _Damaged("states of one mask row have transitions for different tokens")
    for row, state in zip(used, some_state, strict=True):
        octets = frozen.pool[row].astype("<i4", copy=False).view(np.uint8)
        bits = np.unpackbits(octets, bitorder="little").view(np.bool_)
        expected = leads[state][frozen.class_of]
        if not np.array_equal(bits[: frozen.vocab_size], expected) or bits[frozen.vocab_size :].any():
            raise _Damaged(f"mask row {row} is not of the tokens that state {state} has transitions for")
