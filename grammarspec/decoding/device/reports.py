"""Sends the reports of rounds to the host: copies are asynchronous, and reports are read one round later."""

from __future__ import annotations

import torch

__all__ = ["Mailbox"]


class Mailbox:
    """Copies tensors to the host without waiting for the device.

    On CUDA a report is copied to pinned memory, and an event is recorded after the copy. Reading the report waits for
    this event only, while later work runs. On other devices a report is copied at once.

    Args:
        device: the device of the reports.
        slots: the greatest number of reports that were sent and not yet read.
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
        # The last report in this slot has been read, as there are never more unread reports than slots.
        target = self._pinned[slot][: report.numel()].view(report.shape)
        target.copy_(report, non_blocking=True)
        self._events[slot].record()
        self._sent.append((slot, target))

    def arrived(self) -> bool:
        """Whether the oldest unread report is on the host; true if there is none."""
        return not self._sent or not self._events or bool(self._events[self._sent[0][0]].query())  # type: ignore[no-untyped-call]

    def receive(self) -> torch.Tensor:
        """The oldest unread report, on the CPU. It is overwritten when ``slots`` more reports have been sent."""
        slot, report = self._sent.pop(0)
        if self._events:
            self._events[slot].synchronize()
        return report
