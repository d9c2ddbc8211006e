"""A key-value cache with a fixed number of slots, for rows whose lengths only the device knows.

As in :class:`~grammarspec.decoding.cache.RaggedCache`, keys and values are written to the slots of their positions in
the text, and only the attention mask decides which slots a query sees. Here the memory never moves, and the slots are
given as tensors; so a pass can be captured in a graph, or compiled, and be replayed while rows grow and are rolled
back.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from grammarspec.decoding.cache import Plan

__all__ = ["StaticCache"]


class _Layer(CacheLayerMixin):  # type: ignore[no-untyped-call]  # the hook that registers its subclasses
    """Keys and values of one layer: ``[rows, heads, slots, width]`` in the model's dtype."""

    is_sliding = False
    is_compileable = True

    def __init__(self, rows: int, now: Plan) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._rows, self._now = rows, now
        self.keys: torch.Tensor
        self.values: torch.Tensor

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        rows, slots = self._rows, self._now.capacity
        self.keys, self.values = (  # pyright: ignore[reportIncompatibleVariableOverride]
            states.new_zeros(rows, states.shape[1], slots, states.shape[3]) for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        rows = len(key_states)
        return self._now.write(self.keys[:rows], key_states), self._now.write(self.values[:rows], value_states)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._now.visible, 0

    def get_seq_length(self) -> int:
        return 0  # positions are always given

    def get_max_length(self) -> int:
        return self._now.capacity

    def keep(self, rows: torch.Tensor) -> None:
        if self.is_initialized:
            for states in (self.keys, self.values):
                states[: len(rows)] = states[rows]  # the right side is a copy


class StaticCache(Cache):
    """The cache of a batch. Before each pass, ``now`` is set to what the pass writes and reads (:meth:`.Plan.to`).

    Args:
        rows: the greatest number of rows; a pass may have fewer, the first ones.
        capacity: the number of slots of each row. The last slot is for padding, and no query sees it.

    Attributes:
        now: what the next pass writes and reads; queries see what the attention mask allows of the visible slots.
    """

    def __init__(self, rows: int, capacity: int) -> None:
        self._kept: list[_Layer] = []
        super().__init__(layers=self._kept)  # type: ignore[arg-type]  # of a list of any of its kinds
        self._rows = rows
        self.now: Final = Plan(torch.empty(0, 0, dtype=torch.int64), visible=capacity, capacity=capacity)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        while len(self._kept) <= layer_idx:
            self._kept.append(_Layer(self._rows, self.now))
        return self._kept[layer_idx].update(key_states, value_states)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0

    @property
    def memory(self) -> int:
        """Bytes of the keys and values."""
        made = [layer for layer in self._kept if layer.is_initialized]
        return sum(states.nbytes for layer in made for states in (layer.keys, layer.values))

    def keep(self, rows: torch.Tensor) -> None:
        """Copy these rows to the front, in this order; a row may be taken several times.

        Args:
            rows: ``int64[kept rows]``, on the model's device.
        """
        for layer in self._kept:
            layer.keep(rows)
