"""Mask rows, which say of each token whether it is allowed, and their application to logits.

A mask row is ``int32[ceil(vocabulary size / 32)]``; bit ``t % 32`` (least significant first) of word ``t // 32``
is set when token ``t`` is allowed. It is the layout of llguidance, XGrammar and vLLM.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    Rows: TypeAlias = NDArray[np.int32] | torch.Tensor
    Logits: TypeAlias = NDArray[np.floating[Any]] | torch.Tensor
    Indices: TypeAlias = Sequence[int] | NDArray[np.integer[Any]] | torch.Tensor

from grammarspec.errors import needed_by
from grammarspec.imports import importing

__all__ = ["allocate_bitmask", "allowed_tokens", "allows_few", "apply_bitmask"]

_FEW = 16  # a row allows few tokens if it allows at most one in so many


def allocate_bitmask(batch: int, vocab_size: int) -> NDArray[np.int32]:
    """Mask rows for a batch of sequences, allowing nothing until they are filled.

    Args:
        batch: the number of sequences.
        vocab_size: the number of tokens, :attr:`grammarspec.Vocabulary.size`.

    Returns:
        ``int32[batch, ceil(vocab_size / 32)]``, all zero. ``torch.from_numpy`` makes a tensor of it that shares its
        memory.

    Raises:
        MissingPackage: numpy is not installed.
    """
    with needed_by("mask rows"):
        import numpy as np

    return np.zeros((batch, (vocab_size + 31) // 32), dtype=np.int32)


def allows_few(row: NDArray[np.int32], width: int) -> bool:
    """Whether a mask row allows few tokens: at most one in sixteen.

    Args:
        row: ``int32[words]``.
        width: the number of all tokens.
    """
    return int.from_bytes(row.tobytes(), "little").bit_count() * _FEW <= width


def allowed_tokens(row: NDArray[np.int32]) -> NDArray[np.int64]:
    """The tokens that a mask row allows, ascending; fast where they are few.

    Args:
        row: ``int32[words]``.

    Returns:
        ``int64[n]``.
    """
    import numpy as np

    words = np.flatnonzero(row)
    octets = np.ascontiguousarray(row[words], dtype="<i4").view(np.uint8)
    word, bit = np.unpackbits(octets, bitorder="little").reshape(-1, 32).nonzero()
    tokens: NDArray[np.int64] = words[word] * 32 + bit
    return tokens


def apply_bitmask(logits: Logits, rows: Rows, indices: Indices | None = None) -> None:
    """Set the logits of the tokens that the rows do not allow to -inf, in place.

    Tokens past the end of the rows are not allowed; row bits past the end of the logits have no effect: the
    vocabulary of the mask and the width of the logits need not agree.

    Args:
        logits: ``[batch, width]`` or ``[width]``, numpy or torch, of any floating dtype, device and strides.
        rows: ``int32[n, words]`` or ``int32[words]``, numpy or torch; moved to the device of the logits if need be.
        indices: ``[batch]``, the row that masks each sequence; a negative one leaves its sequence unconstrained.
            Without it ``n`` must equal ``batch``, and row ``i`` masks sequence ``i``.

    Raises:
        TypeError: the logits are not of a floating dtype, or the rows are not int32.
        ValueError: the shapes do not fit together.
        IndexError: an index is past the last row. On a CUDA device with kernels nothing is raised, which would mean to
            wait for it: there such an index forbids every token.
    """
    torch_module = sys.modules.get("torch")
    if torch_module is not None and isinstance(logits, torch_module.Tensor):
        _apply_torch(logits, rows, indices)  # pyright: ignore[reportArgumentType]  # torch is known at run time only
    else:
        _apply_numpy(logits, rows, indices)


def _check(logits: Logits, rows: Rows, batch: int | None) -> None:
    """Raise ``ValueError`` unless the shapes fit together; ``batch`` is the number of indices, if there are any."""
    if logits.ndim not in (1, 2) or rows.ndim not in (1, 2):
        raise ValueError(f"logits and rows must have 1 or 2 dimensions, not {logits.ndim} and {rows.ndim}")
    sequences = logits.shape[0] if logits.ndim == 2 else 1
    given = batch if batch is not None else rows.shape[0] if rows.ndim == 2 else 1
    if given != sequences:
        what = "mask rows" if batch is None else "indices"
        raise ValueError(f"{given} {what} for {sequences} sequences")


def _apply_numpy(logits: Any, rows: Any, indices: Any) -> None:
    import numpy as np

    rows = np.asarray(rows)
    if not isinstance(logits, np.ndarray) or not np.issubdtype(logits.dtype, np.floating):
        raise TypeError(f"logits must be floating, not {getattr(logits, 'dtype', type(logits).__name__)}")
    if rows.dtype != np.int32:
        raise TypeError(f"mask rows must be int32, not {rows.dtype}")
    chosen = None if indices is None else np.asarray(indices, dtype=np.intp)
    _check(logits, rows, None if chosen is None else chosen.size)
    logits, rows = np.atleast_2d(logits), np.atleast_2d(rows)
    if chosen is not None:
        rows = rows[np.maximum(chosen, 0)]
        rows[chosen < 0] = -1
    # On words of fixed little-endian layout, bit order within bytes is bit order within words.
    octets = np.ascontiguousarray(~rows, dtype="<i4").view(np.uint8)
    masked = min(logits.shape[1], rows.shape[1] * 32)
    forbidden = np.unpackbits(octets, axis=1, count=masked, bitorder="little").view(np.bool_)
    np.copyto(logits[:, :masked], -np.inf, where=forbidden)
    beyond = logits[:, masked:]
    np.copyto(beyond, -np.inf, where=True if chosen is None else (chosen >= 0)[:, None])


def _apply_torch(logits: torch.Tensor, rows: Any, indices: Any) -> None:
    import torch

    rows = torch.as_tensor(rows)
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating, not {logits.dtype}")
    if rows.dtype != torch.int32:
        raise TypeError(f"mask rows must be int32, not {rows.dtype}")
    rows = rows.to(logits.device, non_blocking=True)
    chosen = None if indices is None else torch.as_tensor(indices, dtype=torch.int64, device=logits.device)
    _check(logits, rows, None if chosen is None else chosen.numel())
    logits, rows = torch.atleast_2d(logits), torch.atleast_2d(rows)  # type: ignore[no-untyped-call]
    _torch_operator()(logits, rows, chosen)


_operator: Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], None] | None = None
_making = Lock()


def _torch_operator() -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], None]:
    """The operator that applies mask rows to a batch; it can be made only where torch is, and only once."""
    global _operator  # noqa: PLW0603  # what torch compiles cannot take a lock, and takes none once it is made
    if _operator is None:
        with importing:
            from grammarspec.kernels.dispatch import operator

        schema = "apply_bitmask(Tensor(a!) logits, Tensor rows, Tensor? indices) -> ()"
        with _making:
            if _operator is None:
                _operator = operator(schema, "masks:apply_bitmask", changes=["logits"])(_apply_to_batch)
    return _operator


def _apply_to_batch(logits: torch.Tensor, rows: torch.Tensor, indices: torch.Tensor | None) -> None:
    import torch

    if indices is not None:
        rows = rows.index_select(0, indices.clamp(min=0)) | -(indices < 0).to(torch.int32)[:, None]
    shifts = torch.arange(32, dtype=torch.int32, device=logits.device)
    forbidden = (((rows[:, :, None] >> shifts) & 1) == 0).view(rows.shape[0], rows.shape[1] * 32)
    masked = min(logits.shape[1], forbidden.shape[1])
    logits[:, :masked].masked_fill_(forbidden[:, :masked], -torch.inf)
    beyond = logits[:, masked:]
    if indices is None:
        beyond.fill_(-torch.inf)
    else:
        beyond.masked_fill_((indices >= 0)[:, None], -torch.inf)
