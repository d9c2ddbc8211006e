"""Runs a model that cannot take tokens back: one with recurrent layers, say, or with ALiBi positions.

Each row is read alone, by the cache that the model makes itself; so nothing depends on how the model pads a batch.
Without drafts no token is ever taken back.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import torch
from transformers import DynamicCache

from grammarspec.decoding.cache import CACHE_NAMES
from grammarspec.decoding.windows import unwrapped
from grammarspec.errors import UnsupportedModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["PlainRunner"]

# How models of transformers call what they have read. They fill a cache that is given, or return one of their own.
_CACHES: Final = (*CACHE_NAMES, "cache_params", "state")


class PlainRunner:
    """A :class:`~grammarspec.decoding.targets.Runner` of a causal language model of transformers, without drafts.

    Args:
        model: the model.
        rows: the number of rows.

    Raises:
        UnsupportedModel: the model hands out no cache.
    """

    def __init__(self, model: PreTrainedModel, rows: int) -> None:
        self.model: Final = model
        inner: Any = unwrapped(model)
        known = inspect.signature(inner.forward).parameters
        name = next((name for name in _CACHES if name in known), None)
        if name is None:
            raise UnsupportedModel(f"{type(inner).__name__} hands out no cache of what it has read")
        self._cache_name = name
        self._known = known
        config = inner.config.get_text_config(decoder=True)
        usual = inner._supports_default_dynamic_cache()
        self._caches: list[Any] = [DynamicCache(config=config) if usual else None for _ in range(rows)]
        self.device: torch.device = inner.device
        self.width: int = inner.config.get_text_config().vocab_size
        self.lengths = [0] * rows
        self.passes = 0
        self.hidden: dict[int, torch.Tensor] = {}

    def read(self, tokens: Sequence[Sequence[int]], keep: int) -> torch.Tensor:
        """Read new tokens of each row, as :meth:`~grammarspec.decoding.targets.Runner.read` does.

        Raises:
            ValueError: more than one of the logits of each row is asked for.
        """
        if keep != 1:
            raise ValueError(f"{keep} logits of each row asked for, of a model that is run without drafts")
        logits = [self._read_row(row, new) for row, new in enumerate(tokens)]
        filler = next(each for each in logits if each is not None).new_zeros(1, self.width)
        self.lengths = [length + len(new) for length, new in zip(self.lengths, tokens, strict=True)]
        return torch.stack([filler if each is None else each for each in logits])

    def _read_row(self, row: int, tokens: Sequence[int]) -> torch.Tensor | None:
        """The logits behind the new tokens of a row, ``[1, width]``; ``None`` if it has none."""
        # Recurrent layers go on from a state by one token at a time only.
        length, output = self.lengths[row], None
        for new in ([[token] for token in tokens] if length else [list(tokens)]) if tokens else []:
            ids = torch.tensor([new], device=self.device)
            inputs = {
                self._cache_name: self._caches[row],
                "position_ids": torch.arange(length, length + len(new), device=self.device)[None],
                "logits_to_keep": 1,
            }
            known = {name: value for name, value in inputs.items() if name in self._known}
            output = self.model(input_ids=ids, use_cache=True, **known)
            self._caches[row] = getattr(output, self._cache_name, None) or self._caches[row]
            self.passes += 1
            length += len(new)
        return None if output is None else output.logits[0, -1:]

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; a row may be taken several times."""
        repeated = len(set(rows)) < len(rows)
        self._caches = [copy.deepcopy(self._caches[row]) if repeated else self._caches[row] for row in rows]
        self.lengths = [self.lengths[row] for row in rows]

    def fork(self, rows: Sequence[int]) -> PlainRunner:
        """A runner of its own that has read what this one has read of these rows; a row may be taken several times."""
        other = PlainRunner(self.model, 0)
        other._caches = [copy.deepcopy(self._caches[row]) for row in rows]
        other.lengths = [self.lengths[row] for row in rows]
        return other

    def join(self, other: PlainRunner) -> None:
        """Append the rows of another runner of the same model, which is not to be used again."""
        self._caches += other._caches
        self.lengths += other.lengths
        self.passes += other.passes
