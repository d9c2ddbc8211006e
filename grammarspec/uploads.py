"""Mask rows of a batch on a device, kept up to date from the host: for serving engines.

Rows are filled on the host, where the matchers are, and applied on the device, where the logits are. An upload copies
the rows that have changed since the last one to one of two pinned buffers, in turn, and from there to the device,
asynchronously: the host can fill rows while the copy runs, and waits only for the copy of the upload before the last.
The tensor on the device never moves, so that a captured CUDA graph may read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from grammarspec.bitmask import Indices

from grammarspec.bitmask import allocate_bitmask, apply_bitmask
from grammarspec.errors import needed_by

__all__ = ["MaskUploads"]


class MaskUploads:
    """Mask rows on the host and their copy on a device. Only one thread, and one stream of the device, may use them.

    Without CUDA, an upload is a plain copy.

    Attributes:
        rows: ``int32[batch, ceil(vocab_size / 32)]``, an array of numpy: the rows on the host. They allow no token
            until they are filled. Fill the rows of sequences that have advanced (:func:`grammarspec.fill_bitmasks`);
            leave the others as they are.
        tensor: the rows on the device, as of the last :meth:`upload`; always the same memory. The layout is that of
            vLLM and SGLang.
    """

    rows: NDArray[np.int32]
    tensor: torch.Tensor

    def __init__(self, batch: int, vocab_size: int, device: torch.device | str) -> None:
        """Rows for a batch, on the host and on a device.

        Args:
            batch: the number of rows: the largest number of sequences that run at once.
            vocab_size: the number of tokens, :attr:`grammarspec.Vocabulary.size`.
            device: the device of the logits.

        Raises:
            MissingPackage: numpy or torch is not installed.
            ValueError: the batch or the vocabulary is not positive.
        """
        with needed_by("uploads of mask rows"):
            import torch

        if batch < 1 or vocab_size < 1:
            raise ValueError(f"batch and vocab_size must be positive, not {batch} and {vocab_size}")
        self.rows = allocate_bitmask(batch, vocab_size)
        self.tensor = torch.zeros(self.rows.shape, dtype=torch.int32, device=device)
        self._sent = self.rows.copy()
        asynchronous = self.tensor.is_cuda
        self._buffers = [_Buffer(batch, self.rows.shape[1], asynchronous) for _ in range(2)]

    def __repr__(self) -> str:
        return f"<MaskUploads: {len(self.rows)} rows on {self.tensor.device}>"

    def upload(self) -> int:
        """Copy the rows that have changed to the device. Later work on the current stream sees them.

        The host does not wait for the copy, only for that of the upload before the last.

        Returns:
            how many rows were copied.
        """
        changed = (self.rows != self._sent).any(axis=1).nonzero()[0]
        if len(changed):
            self._sent[changed] = self.rows[changed]
            self._buffers.reverse()
            self._buffers[0].send(self.rows, changed, self.tensor)
        return len(changed)

    def apply(self, logits: torch.Tensor, indices: Indices | None = None) -> None:
        """Upload, then set the logits of the tokens that the rows do not allow to -inf, in place.

        Args:
            logits: ``[n, width]``, on the device.
            indices: ``[n]``, the row of each sequence; a negative one leaves its sequence unconstrained. A tensor on
                the device is read without waiting for it. Without indices ``n`` is the batch.

        Raises:
            TypeError: the logits are not of a floating dtype.
            ValueError: the shapes do not fit together, or the logits are on another device.
            IndexError: as of :func:`grammarspec.apply_bitmask`.
        """
        if logits.device != self.tensor.device:
            raise ValueError(f"the logits are on {logits.device}, the mask rows on {self.tensor.device}")
        self.upload()
        apply_bitmask(logits, self.tensor, indices)


class _Buffer:
    """A buffer for rows that are being copied to a device, and their numbers; pinned, if copies are asynchronous."""

    def __init__(self, batch: int, words: int, asynchronous: bool) -> None:
        import torch

        self._rows = torch.zeros(batch, words, dtype=torch.int32, pin_memory=asynchronous)
        self._numbers = torch.zeros(batch, dtype=torch.int64, pin_memory=asynchronous)
        self._sent = _event() if asynchronous else None

    def send(self, rows: NDArray[np.int32], numbers: NDArray[Any], to: torch.Tensor) -> None:
        """Copy the rows with these numbers to their places in a tensor on the device."""
        count = len(numbers)
        if self._sent is not None:
            self._sent.synchronize()  # wait for the last copy from this buffer, if there was one
        self._rows.numpy()[:count] = rows[numbers]
        self._numbers.numpy()[:count] = numbers
        there = self._numbers[:count].to(to.device, non_blocking=True)
        to.index_copy_(0, there, self._rows[:count].to(to.device, non_blocking=True))
        if self._sent is not None:
            self._sent.record()


def _event() -> Any:
    import torch

    return torch.cuda.Event()  # type: ignore[no-untyped-call]
