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

__all__ = ["REFUSED", "read", "write"]

REFUSED: Final = -1
"""Stands in tables for the state behind a token that is not allowed."""

_FORMAT: Final = "grammarspec.frozen"
_VERSION: Final = "1"
_ARRAYS: Final = {
    "class_of": ("I16", 1),
    "next": ("I32", 2),
    "mask_row": ("I32", 1),
    "pool": ("I32", 2),
    "accepting": ("BOOL", 1),
}
"""The dtype, as safetensors names it, and the number of dimensions of each array."""


def write(path: str | PathLike[str], arrays: dict[str, NDArray[Any]], said: dict[str, str]) -> None:
    """Write the arrays of a frozen constraint and what is said of them.

    Raises:
        MissingPackage: safetensors is not installed.
        OSError: the file cannot be written.
    """
    with needed_by("files of frozen constraints"):
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

    try:
        save_file(arrays, path, metadata={"format": _FORMAT, "version": _VERSION} | said)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from error


def read(path: str | PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays of a frozen constraint, read-only, and what is said of them; they fit together.

    Raises:
        GrammarError: the file is damaged, of another kind or version.
        MissingPackage: safetensors is not installed.
        OSError: the file cannot be read.
    """
    with needed_by("files of frozen constraints"):
        from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            said = file.metadata() or {}
            _check_version(said)
            arrays = _arrays(file)
        _check_shapes(arrays)
        _check_indices(arrays, said)
        _check_masks(arrays)
    except SafetensorError as error:
        raise GrammarError(f"no file of the format safetensors: {error}", str(path)) from error
    except GrammarError as error:
        raise GrammarError(error.message, str(path), error.hint) from None
    except _Damaged as error:
        raise GrammarError(f"the file of a frozen constraint is damaged: {error}", str(path)) from None
    return arrays, said


class _Damaged(Exception):
    """What is wrong with a file."""


def _check_version(said: dict[str, str]) -> None:
    """Raise ``GrammarError`` unless the file is of this format and version."""
    if said.get("format") != _FORMAT:
        raise GrammarError("the file holds no frozen constraint")
    if said.get("version") != _VERSION:
        hint = "freeze the constraint again with this release"
        raise GrammarError(f"a frozen constraint of version {said.get('version')!r:.20}, not {_VERSION!r}", hint=hint)


def _arrays(file: Any) -> dict[str, NDArray[Any]]:
    """The arrays of an open file; of others that it has, nothing is read.

    Raises:
        _Damaged: one is missing, or of another form.
    """
    arrays: dict[str, NDArray[Any]] = {}
    held = set(file.keys())
    for name, wanted in _ARRAYS.items():
        if name not in held:
            raise _Damaged(f"it has no array {name}")
        part = file.get_slice(name)
        form = part.get_dtype(), len(part.get_shape())
        if form != wanted:
            raise _Damaged(f"{name} is {form[0]} of {form[1]} dimensions, not {wanted[0]} of {wanted[1]}")
        arrays[name] = file.get_tensor(name)
        arrays[name].flags.writeable = False
    return arrays


def _check_shapes(arrays: dict[str, NDArray[Any]]) -> None:
    (states, classes), tokens = arrays["next"].shape, len(arrays["class_of"])
    if not (states and classes and tokens):
        raise _Damaged("it has no states, classes or tokens")
    wanted = {"mask_row": (states,), "accepting": (states,), "pool": (len(arrays["pool"]), (tokens + 31) // 32)}
    for name, shape in wanted.items():
        if arrays[name].shape != shape:
            raise _Damaged(f"{name} has the shape {arrays[name].shape}, not {shape}")


def _check_indices(arrays: dict[str, NDArray[Any]], said: dict[str, str]) -> None:
    """Raise ``_Damaged`` if a number is not one of what it should name."""
    states, classes = arrays["next"].shape
    for name, least, count in (
        ("class_of", 0, classes),
        ("next", REFUSED, states),
        ("mask_row", 0, len(arrays["pool"])),
    ):
        low, high = int(arrays[name].min()), int(arrays[name].max())
        if low < least or high >= count:
            raise _Damaged(f"{name} has numbers from {low} to {high}; those from {least} to {count - 1} are possible")
    terminated = said.get("terminated", "")
    if terminated not in map(str, range(REFUSED, states)):
        raise _Damaged(f"the terminated state is {terminated!r:.20} of {states} states")


def _check_masks(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise ``_Damaged`` if a mask row is not of the tokens that have a transition."""
    import numpy as np

    used, some_state, row_of = np.unique(arrays["mask_row"], return_index=True, return_inverse=True)
    leads = arrays["next"] != REFUSED
    if not np.array_equal(leads, leads[some_state[row_of]]):
        raise _Damaged("states of one mask row have transitions for different tokens")
    class_of, pool = arrays["class_of"], arrays["pool"]
    for row, state in zip(used, some_state, strict=True):
        octets = pool[row].astype("<i4", copy=False).view(np.uint8)
        bits = np.unpackbits(octets, bitorder="little").view(np.bool_)
        expected = leads[state][class_of]
        if not np.array_equal(bits[: len(class_of)], expected) or bits[len(class_of) :].any():
            raise _Damaged(f"mask row {row} is not of the tokens that state {state} has transitions for")
