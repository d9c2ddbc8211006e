"""A key-value cache for batches whose rows have different lengths and are rolled back independently.

Each key and value is written to a slot of its row, the slot of its position in the text. Rolling a row back changes
nothing here: later tokens overwrite the slots. The attention mask alone decides which slots a query sees, so that stale
slots and padding are never read.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

__all__ = ["CACHE_NAMES", "Plan", "RaggedCache", "cache_name"]

CACHE_NAMES: Final = ("cache", "past_key_values")
"""What models of transformers call the cache that they are given: from 5.24 on, and before."""


def cache_name(model: Any) -> str:
    """What a model of transformers calls the cache that it is given."""
    known = inspect.signature(model.forward).parameters
    return next((name for name in CACHE_NAMES if name in known), CACHE_NAMES[-1])


@dataclass
class Plan:
    """What a pass writes and reads.

    The layers of a cache share it, rather than refer to the cache: objects in a circle are freed when Python next looks
    for circles, and the keys and values of finished texts would be kept until then.

    Attributes:
        slots: ``int64[rows, new]``, the slots that the new keys and values are written to.
        visible: attention sees the slots below this number.
        capacity: the number of allocated slots of each row.
        span: the slots to write to, if they are the same ones of each row, one behind the other: these are faster to
            write. ``None`` otherwise.
        rows: ``int64[rows, 1]``, the numbers of the rows.
    """

    slots: torch.Tensor
    visible: int
    capacity: int
    span: slice | None = None
    rows: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.to(self.slots, self.visible, self.span)

    def to(self, slots: torch.Tensor, visible: int, span: slice | None) -> None:
        """Set what the next pass writes and reads; see the attributes."""
        self.slots, self.visible, self.span = slots, visible, span
        self.rows = torch.arange(len(slots), device=slots.device)[:, None]

    def write(self, states: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Write new keys, or values, to their slots; returns those that attention sees.

        Args:
            states: ``[rows, heads, slots, width]``.
            new: ``[rows, heads, new, width]``.
        """
        if self.span is not None:
            states[:, :, self.span] = new
        else:
            states[self.rows, :, self.slots] = new.transpose(1, 2)
        return states[:, :, : self.visible]


class _Layer(CacheLayerMixin):  # type: ignore[no-untyped-call]  # the hook that registers its subclasses
    """Keys and values of one layer: ``[rows, heads, slots, width]`` in the model's dtype; slots grow by doubling."""

    is_sliding = False
    is_compileable = False

    def __init__(self, now: Plan) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._now = now
        self.keys: torch.Tensor
        self.values: torch.Tensor

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = (
            states.new_zeros(*states.shape[:2], 0, states.shape[3]) for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        missing = self._now.capacity - self.keys.shape[2]
        if missing > 0:
            self.keys, self.values = (
                torch.nn.functional.pad(states, (0, 0, 0, missing)) for states in (self.keys, self.values)
            )
        return self._now.write(self.keys, key_states), self._now.write(self.values, value_states)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._now.visible, 0

    def get_seq_length(self) -> int:
        return self._now.visible if self.is_initialized else 0

    def get_max_length(self) -> int:
        return -1

    def select(self, rows: torch.Tensor) -> None:
        self.keys, self.values = self.keys[rows], self.values[rows]  # pyright: ignore[reportIncompatibleVariableOverride]

    def join(self, other: _Layer | None, rows: int, more: int, slots: int) -> None:
        """Append the rows of the same layer of another cache; a layer that has read nothing gets slots of zeros."""
        known = next(layer for layer in (self, other) if layer is not None and layer.is_initialized)
        if not self.is_initialized:
            self.lazy_initialization(known.keys[:0], known.values[:0])

        def padded(states: torch.Tensor | None, count: int, like: torch.Tensor) -> torch.Tensor:
            if states is None or not len(states):
                return like.new_zeros(count, like.shape[1], slots, like.shape[3])
            return torch.nn.functional.pad(states, (0, 0, 0, slots - states.shape[2]))

        theirs = (None, None) if other is None else (other.keys, other.values)
        self.keys, self.values = (  # pyright: ignore[reportIncompatibleVariableOverride]
            torch.cat((padded(mine, rows, like), padded(new, more, like)))
            for mine, new, like in zip((self.keys, self.values), theirs, (known.keys, known.values), strict=True)
        )


class RaggedCache(Cache):
    """The cache of a batch. Before each pass, :meth:`plan` sets where the new keys and values go.

    Attributes:
        now: what the next pass writes and reads. Padding is written to the last slot.
    """

    def __init__(self) -> None:
        self._kept: list[_Layer] = []
        super().__init__(layers=self._kept)  # type: ignore[arg-type]  # of a list of any of its kinds
        self.now: Final = Plan(torch.empty(0, 0, dtype=torch.int64), visible=0, capacity=0)

    def plan(self, slots: torch.Tensor, visible: int, span: slice | None = None) -> None:
        """Set what the next pass reads and writes, and grow the cache if need be.

        Args:
            slots: ``int64[rows, new]``, the slots to write to; for padding, any slot that is not visible.
            visible: attention sees the slots below this number.
            span: see :class:`Plan`.
        """
        now = self.now
        if visible >= now.capacity:
            now.capacity = max(2 * now.capacity, visible + 64)
        now.to(slots.clamp(max=now.capacity - 1), visible, span)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        while len(self._kept) <= layer_idx:
            self._kept.append(_Layer(self.now))
        return self._kept[layer_idx].update(key_states, value_states)

    def select(self, rows: torch.Tensor) -> None:
        """Keep these rows, in this order; a row may be taken several times.

        Args:
            rows: ``int64[kept rows]``, on the model's device.
        """
        for layer in self._kept:
            layer.select(rows)

    def fork(self, rows: torch.Tensor) -> RaggedCache:
        """A cache of its own with copies of these rows.

        Args:
            rows: ``int64[copies]``, on the model's device; a row may be taken several times.
        """
        other = RaggedCache()
        other.now.capacity = self.now.capacity
        for layer in self._kept:
            copied = _Layer(other.now)
            if layer.is_initialized:
                copied.lazy_initialization(layer.keys, layer.values)
                copied.keys, copied.values = layer.keys[rows], layer.values[rows]  # pyright: ignore[reportIncompatibleVariableOverride]
            other._kept.append(copied)
        return other

    def join(self, other: RaggedCache, rows: int, more: int) -> None:
        """Append the rows of another cache of the same layers.

        Args:
            other: the cache; it is not to be used again.
            rows, more: how many rows this cache has, and how many the other. Either may have read nothing yet.
        """
        self.now.capacity = max(self.now.capacity, other.now.capacity)
        for index in range(max(len(self._kept), len(other._kept))):
            if index == len(self._kept):
                self._kept.append(_Layer(self.now))
            mine = self._kept[index]
            theirs = other._kept[index] if index < len(other._kept) else None
            mine.join(theirs, rows, more, self.now.capacity)
