"""Runs a causal language model of transformers over a batch of sequences of different lengths.

New tokens of each row go in, logits behind them come out. Rows can be rolled back independently, because keys and
values are in a :class:`~grammarspec.decoding.cache.RaggedCache` and what a token sees is given by an explicit mask.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from grammarspec.decoding.attention import shared_keys
from grammarspec.decoding.cache import RaggedCache, cache_name
from grammarspec.decoding.windows import attention_windows, unwrapped

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["ModelRunner", "attention_masks"]

# By kind of device: what the number of keys that attention is given is a multiple of. On CUDA, cuDNN plans its work
# anew for each number of keys that it has not seen, which takes longer than a pass.
_KEYS = {"cuda": 64}
_PART = 512  # tokens of a row that are read in one pass at most, but for those whose logits are wanted


class ModelRunner:
    """A model and what it has read: one sequence of tokens per row, of different lengths.

    Args:
        model: a decoder-only model of transformers, which may be within wrappers of PEFT or ``torch.compile``.
        rows: the number of rows.
        cache: the keys and values, if another runner of the same layers shares them; a new cache otherwise.
        hidden_layers: the layers whose hidden states each pass keeps in ``hidden``.

    Attributes:
        model: the model.
        cache: the keys and values.
        lengths: the number of tokens that have been read, of each row. Lowering it rolls the row back.
        passes: the number of forward passes so far.
        hidden: the hidden states of the tokens that the last pass read, ``[rows, new, hidden size]`` in the model's
            dtype, by layer: 0 is the embedding's, -1 the last layer's, normalised. Rows are padded on the left.

    Raises:
        UnsupportedModel: the model keeps a state that cannot be rolled back, or encodes positions or attends in a way
            for which a batch of different lengths is not known to be right.
        TypeError: it is no model of transformers.
    """

    def __init__(
        self, model: PreTrainedModel, rows: int, *, cache: RaggedCache | None = None, hidden_layers: Iterable[int] = ()
    ) -> None:
        self.model: Final = model
        inner = unwrapped(model)
        if inner is None:
            raise TypeError(f"expected a model of transformers, not {type(model).__name__}")
        self._inner: Final = inner
        self._windows = attention_windows(inner)
        eager = inner.config.get_text_config()._attn_implementation == "eager"
        self._dtype = inner.dtype if eager else None
        self._hidden_layers = tuple(hidden_layers)
        self._options: dict[str, Any] = {"output_hidden_states": True} if self._hidden_layers else {}
        # Models that know this option compute no logits for the other positions of a long prompt.
        self._keeps = "logits_to_keep" in inspect.signature(inner.forward).parameters
        self.cache: Final = RaggedCache() if cache is None else cache
        self._cache_name = cache_name(inner)
        self.lengths = [0] * rows
        self.passes = 0
        self.hidden: dict[int, torch.Tensor] = {}

    @property
    def device(self) -> torch.device:
        """The model's device."""
        return self._inner.device

    @property
    def width(self) -> int:
        """The number of the model's logits."""
        return int(self._inner.config.get_text_config().vocab_size)

    def read(self, tokens: Sequence[Sequence[int]], keep: int) -> torch.Tensor:
        """Read new tokens of each row, in one pass; in several if they are very many.

        Args:
            tokens: the new tokens of each row; a row may have none, but not all rows.
            keep: how many logits of each row to return.

        Returns:
            ``[rows, keep, width]`` in the model's dtype: the logits behind the last ``keep`` of each row's new tokens.
            A row with fewer new tokens is padded on the left by logits that mean nothing.

        Raises:
            ValueError: no row has as many as ``keep`` new tokens.
        """
        new = max(map(len, tokens))
        if new < keep:
            raise ValueError(f"{keep} logits of each row asked for, but none has more than {new} new tokens")
        # Rows are padded on the left, so that the last logits of the output are those to return.
        ids = torch.tensor([[0] * (new - len(row)) + list(row) for row in tokens])
        first = torch.tensor([length + len(row) - new for length, row in zip(self.lengths, tokens, strict=True)])
        padding = torch.tensor([new - len(row) for row in tokens])
        # A long prompt is read in parts: masks and inner states are as large as a part.
        begins = range(0, max(new - keep, 1), _PART)
        ends = [*begins[1:], new]
        parts = [
            self._pass(ids[:, begin:end], first + begin, padding - begin, keep if end == new else 1)
            for begin, end in zip(begins, ends, strict=True)
        ]
        self.lengths = [length + len(row) for length, row in zip(self.lengths, tokens, strict=True)]
        self.hidden = {layer: torch.cat([hidden[layer] for _, hidden in parts], dim=1) for layer in self._hidden_layers}
        return parts[-1][0]

    def _pass(
        self, ids: torch.Tensor, first: torch.Tensor, padding: torch.Tensor, keep: int
    ) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
        """One pass of the model.

        Args:
            ids: ``int64[rows, new]``, the tokens to read.
            first: ``int64[rows]``, the positions of the first of them.
            padding: ``int64[rows]``, how many of them, on the left, are none; all and more, or below 0, mean the same.
            keep: how many logits of each row to return.

        Returns:
            the logits, ``[rows, keep, width]``; and hidden states of the tokens, by layer.
        """
        steps, device = torch.arange(ids.shape[1]), self.device
        unused = steps < padding[:, None]
        end = int(first.max()) + ids.shape[1]
        unit = _KEYS.get(device.type, 1)
        visible = -(-end // unit) * unit
        # Padding attends to the first token, as attention over nothing would be NaN; no token attends to padding.
        positions = (first[:, None] + steps).masked_fill(unused, 0)
        slots = positions.masked_fill(unused, torch.iinfo(torch.int64).max)
        positions = positions.to(device)
        alike = not bool(unused.any()) and bool((first == first[0]).all())
        self.cache.plan(slots.to(device), visible, slice(end - ids.shape[1], end) if alike else None)
        with shared_keys(self._inner):
            output = self.model(
                input_ids=ids.to(device),
                attention_mask=attention_masks(self._windows, positions, visible, self._dtype),
                position_ids=positions,
                use_cache=True,
                **{self._cache_name: self.cache},
                **({"logits_to_keep": keep} if self._keeps else {}),
                **self._options,
            )
        self.passes += 1
        logits: torch.Tensor = output.logits[:, -keep:]
        return logits, {layer: output.hidden_states[layer] for layer in self._hidden_layers}

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; a row may be taken several times."""
        self.cache.select(torch.tensor(rows, device=self.device))
        self.lengths = [self.lengths[row] for row in rows]

    def fork(self, rows: Sequence[int]) -> ModelRunner:
        """A runner of its own that has read what this one has read of these rows; a row may be taken several times."""
        other = ModelRunner(self.model, 0, cache=self.cache.fork(torch.tensor(rows, device=self.device)))
        other.lengths = [self.lengths[row] for row in rows]
        return other

    def join(self, other: ModelRunner) -> None:
        """Append the rows of another runner of the same model, which is not to be used again."""
        self.cache.join(other.cache, len(self.lengths), len(other.lengths))
        self.lengths += other.lengths
        self.passes += other.passes


def attention_masks(
    windows: Mapping[str, int], positions: torch.Tensor, visible: int, dtype: torch.dtype | None
) -> torch.Tensor | dict[str, torch.Tensor]:
    """The attention mask, or one by kind of layer where the model has several kinds.

    Args:
        windows: the kinds, and how many tokens each looks back, as of
            :func:`~grammarspec.decoding.windows.attention_windows`.
        positions: ``int64[rows, new]``, of the new tokens.
        visible: the number of slots of the cache that the pass sees.
        dtype: the model's, for eager attention; ``None`` for masks of booleans.

    Returns:
        ``[rows, 1, new, visible]``: true (for eager attention: 0, else the least number of the model's dtype) where
        a new token sees a slot.
    """
    queries, keys = positions[:, None, :, None], torch.arange(visible, device=positions.device)
    masks = {}
    for kind, size in windows.items():
        seen = keys <= queries
        if kind == "sliding_attention":
            seen &= keys > queries - size
        elif kind == "chunked_attention":
            seen &= keys // size == queries // size
        masks[kind] = seen
        if dtype is not None:
            masks[kind] = torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
    # Models with several kinds of layers take a mask for each.
    return masks if len(masks) > 1 else next(iter(masks.values()))
