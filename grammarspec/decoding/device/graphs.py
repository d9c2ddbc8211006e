"""Rounds as CUDA graphs: one graph for each number of rows and length of drafts.

See https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs: a graph reads and writes the memory that its
operations had when it was captured. Therefore all data of a round is in tensors that never move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from grammarspec.errors import UnsupportedFeature

__all__ = ["Graphs"]


class Graphs:
    """Captured rounds, by a key.

    Args:
        state: the tensors that a round changes. After a warm-up run they get their old values back.
    """

    def __init__(self, state: Sequence[torch.Tensor]) -> None:
        self._state = list(state)
        self._captured: dict[tuple[int, int], tuple[torch.cuda.CUDAGraph, torch.Tensor]] = {}
        self._pool = torch.cuda.graph_pool_handle()

    def run(self, key: tuple[int, int], work: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Replay the graph of a key; at the first call with the key, capture it before.

        Args:
            key: the number of rows and the length of drafts.
            work: runs the round.

        Returns:
            the tensor that ``work`` returned when it was captured. It is the same memory each time, which the next
            replay, of this or of another key, overwrites.

        Raises:
            UnsupportedFeature: the work cannot be captured, as it waits for the device, say.
        """
        if key not in self._captured:
            self._captured[key] = self._capture(work)
        graph, result = self._captured[key]
        graph.replay()
        return result

    def _capture(self, work: Callable[[], torch.Tensor]) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        before = [tensor.clone() for tensor in self._state]
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(current)
        with torch.cuda.stream(side):
            work()  # libraries choose kernels and allocate memory
            # The rows get their old values back, so that warming up does not make texts longer.
            for tensor, saved in zip(self._state, before, strict=True):
                tensor.copy_(saved)
        current.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            # Other threads may call CUDA meanwhile; with "thread_local", their calls do not make the capture fail.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                result = work()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            what = f"a CUDA graph of a pass of the model cannot be captured: {error}"
            raise UnsupportedFeature(what, hint="device_loop=False decodes on the host") from error
        return graph, result
