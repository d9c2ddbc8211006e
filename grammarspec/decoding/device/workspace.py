"""What a batch works with on the device, kept for the next batch of the same shape.

A graph reads and writes the memory that it was captured with, and capturing one takes as long as dozens of rounds. So
when a batch has ended, its tensors are kept together with its graphs; the next batch of the same shape copies its own
rows and options into them, and replays the graphs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary, ref

import torch

from grammarspec.decoding.device.automaton import ArenaTensors
from grammarspec.decoding.device.drafters import Drafter, ModelDrafter
from grammarspec.decoding.device.graphs import Graphs
from grammarspec.decoding.device.round import Round
from grammarspec.decoding.device.runner import StaticRunner
from grammarspec.decoding.device.state import Rows
from grammarspec.decoding.processing import Processing
from grammarspec.decoding.proposers.protocol import Proposer

__all__ = ["Shape", "Workspace", "borrow", "keep", "slots_for"]

_UNIT: Final = 64  # the number of slots of caches is a multiple of this
_SMALL: Final = 4096  # slots of all rows; caches of fewer have one of few sizes, so that batches share workspaces
_KEPT: Final = 2  # idle workspaces of each model
_SHARE: Final = 16  # the caches of idle workspaces take at most one part in so many of the device's memory


class Shape(NamedTuple):
    """What batches have in common that can use the same workspace.

    Attributes:
        rows: the number of rows.
        slots: the number of slots of each row's caches.
        options: what the work of a round depends on (:attr:`.Processing.shape`).
        arena: the states of constraints.
        ends: the tokens that end texts.
        drafts: whether there are drafts at all.
        proposers: references to the proposers.
        stream: the CUDA stream of the rounds; 0 on other devices.
    """

    rows: int
    slots: int
    options: tuple[object, ...]
    arena: ArenaTensors
    ends: tuple[int, ...]
    drafts: bool
    proposers: tuple[ref[Proposer], ...]
    stream: int

    @classmethod
    def of(
        cls,
        slots: int,
        processing: Processing,
        arena: ArenaTensors,
        ends: Sequence[int],
        proposers: Sequence[Proposer],
        *,
        drafts: bool,
        device: torch.device,
    ) -> Shape:
        """The shape of a batch."""
        stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
        proposed = tuple(map(ref, proposers))
        return cls(len(processing.samplings), slots, processing.shape, arena, tuple(ends), drafts, proposed, stream)


@dataclass(eq=False, slots=True)
class Workspace:
    """The tensors of a batch, and what runs on them.

    Attributes:
        shape: the shape of batches that can use it.
        target: the target, with its cache.
        drafters: the drafters, with their caches.
        rows: the rows of the batch.
        processing: their sampling options.
        round: runs the rounds.
        graphs: the rounds that were captured; ``None`` where rounds are not.
    """

    shape: Shape
    target: StaticRunner
    drafters: list[Drafter]
    rows: Rows
    processing: Processing
    round: Round
    graphs: Graphs | None

    def load(self, rows: Rows, processing: Processing) -> None:
        """Begin a batch of the same shape with these rows and options."""
        with torch.inference_mode():  # in which the tensors may have been made
            self.rows.load(rows)
            self.processing.load(processing)
        for drafter in self.drafters:
            if isinstance(drafter, ModelDrafter):
                drafter.restart()

    @property
    def memory(self) -> int:
        """Bytes of the caches."""
        models = [drafter.runner for drafter in self.drafters if isinstance(drafter, ModelDrafter)]
        return sum(cache.memory for cache in {id(each.cache): each.cache for each in (self.target, *models)}.values())


def slots_for(longest: int, rows: int) -> int:
    """The number of slots of each row for texts of a length: of small batches, a power of two, or three times one."""
    if rows * longest > _SMALL:
        return -(-longest // _UNIT) * _UNIT
    size = _UNIT
    while size < longest:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


_idle: WeakKeyDictionary[Any, list[Workspace]] = WeakKeyDictionary()
_lock = threading.Lock()


def borrow(model: Any, shape: Shape) -> Workspace | None:
    """An idle workspace of a model with this shape, which is taken out of those that are kept."""
    with _lock:
        idle = _idle.get(model, [])
        for workspace in idle:
            if workspace.shape == shape:
                idle.remove(workspace)
                return workspace
    return None


def keep(model: Any, workspace: Workspace) -> None:
    """Keep the workspace of a batch that has ended for later ones, if there is room."""
    device = workspace.rows.tokens.device
    room = torch.cuda.get_device_properties(device).total_memory // _SHARE if device.type == "cuda" else 1 << 30
    with _lock:
        idle = [workspace, *_idle.get(model, [])][:_KEPT]
        while idle and sum(each.memory for each in idle) > room:
            idle.pop()
        _idle[model] = idle
