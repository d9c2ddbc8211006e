"""Reports of rounds on their way to the host: copied asynchronously, and read one round late."""

from __future__ import annotations

import torch

__all__ = ["Mailbox"]


class Mailbox:
    """Copies tensors to the host without waiting for the device.

    On CUDA a report goes to pinned memory, behind which an event is recorded; reading it waits for the event alone,
    while later work is under way. Elsewhere it is copied at once.

    Args:
        device: where the reports come from.
        slots: how many reports are on their way at most.
        size: the greatest number of integers of a report.
    """

    def __init__(self, device: torch.device, slots: int, size: int) -> None:
        self._pinned: list[torch.Tensor] = []
        self._events: list[torch.cuda.Event] = []
        if device.type == "cuda":
            self._pinned = [torch.empty(size, dtype=torch.int64, pin_memory=True) for _ in range(slots)]
            self._events = [torch.cuda.Event() for _ in range(slots)]  # type: ignore[no-untyped-call]
        self._sent: list[tuple[int, torch.Tensor]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._sent)

    def send(self, report: torch.Tensor) -> None:
        """Send a report, ``int64[rows, columns]``."""
        if not self._pinned:
            self._sent.append((0, report.to("cpu", copy=True)))
            return
        slot = self._count % len(self._pinned)
        self._count += 1
        # The slot's last report was read: no more are under way than there are slots.
        target = self._pinned[slot][: report.numel()].view(report.shape)
        target.copy_(report, non_blocking=True)
        self._events[slot].record()
        self._sent.append((slot, target))

    def receive(self) -> torch.Tensor:
        """The oldest report, on the CPU; it is overwritten when ``slots`` more were sent."""
        slot, report = self._sent.pop(0)
        if self._events:
            self._events[slot].synchronize()
        return report
