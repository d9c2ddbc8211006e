"""Runs a model of transformers on the device: passes have static shapes, and positions are tensors."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

import torch

from grammarspec.decoding.attention import shared_keys
from grammarspec.decoding.cache import cache_name
from grammarspec.decoding.device.cache import StaticCache
from grammarspec.decoding.model_runner import attention_masks
from grammarspec.decoding.windows import attention_windows, unwrapped

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["StaticRunner"]


class StaticRunner:
    """A model whose keys and values are in a :class:`~grammarspec.decoding.device.cache.StaticCache`.

    Args:
        model: a decoder-only model of transformers, which may be wrapped by PEFT or ``torch.compile``. Whoever uses the
            runner keeps it alive.
        cache: the keys and values; an early exit shares the cache of its target.
        hidden: whether the last hidden states of each pass are returned.
        looks: whether the host may read values of tensors, to write keys and values faster where all rows are alike.

    Attributes:
        cache: the keys and values.
        width: the number of the model's logits.
        device: the device of the model.
        passes: the number of passes that were run from Python; replays of a graph are not counted.

    Raises:
        UnsupportedModel: as :class:`~grammarspec.decoding.model_runner.ModelRunner`.
        TypeError: it is not a model of transformers.
    """

    def __init__(
        self, model: PreTrainedModel, cache: StaticCache, *, hidden: bool = False, looks: bool = False
    ) -> None:
        inner = unwrapped(model)
        if inner is None:
            raise TypeError(f"expected a model of transformers, not {type(model).__name__}")
        # References that keep nothing alive: what is kept for later batches of a model must not keep the model.
        self._model, self._inner = ref(model), ref(inner)
        config = inner.config.get_text_config()
        self._windows = attention_windows(inner)
        self._dtype = inner.dtype if config._attn_implementation == "eager" else None
        self._hidden = hidden
        self.looks = looks
        self._keeps = "logits_to_keep" in inspect.signature(inner.forward).parameters
        self.cache: Final = cache
        self._cache_name = cache_name(inner)
        self.width = int(config.vocab_size)
        self.device = inner.device
        self.passes = 0

    @property
    def model(self) -> Any:
        """The model."""
        return self._model()

    def read(
        self, tokens: torch.Tensor, first: torch.Tensor, used: torch.Tensor, visible: int, keep: int
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Read consecutive tokens of each row in one pass.

        Args:
            tokens: ``int64[rows, new]``, tokens of the model's vocabulary.
            first: ``int64[rows]``, for each row, the position of the first of these tokens in the text.
            used: ``bool[rows, new]``, which tokens are read. The others are padding, and go to a slot that no query
                sees.
            visible: the number of slots of each row that the pass can see: greater than all positions that are used.
            keep: the number of tokens at the end of each row after which logits are returned.

        Returns:
            the logits, ``[rows, keep, width]``, which have no meaning for padding; and the last hidden states,
            normalised, ``[rows, new, hidden size]``, or ``None`` if they are not asked for.
        """
        positions = first[:, None] + torch.arange(tokens.shape[1], device=tokens.device)
        # Padding attends to the first token, as attention over no tokens would be NaN.
        positions = torch.where(used, positions, 0)
        span: slice | None = None
        if self.looks and bool(used.all()) and bool((first == first[0]).all()):
            span = slice(int(first[0]), int(first[0]) + tokens.shape[1])
        now = self.cache.now
        now.to(torch.where(used, positions, now.capacity - 1), visible, span)
        options: dict[str, Any] = {"output_hidden_states": True} if self._hidden else {}
        if self._keeps:
            options["logits_to_keep"] = keep
        model, inner = self.model, self._inner()
        assert model is not None and inner is not None, "whoever uses the runner keeps its model alive"
        with shared_keys(inner):
            output = model(
                input_ids=torch.where(used, tokens, 0),
                attention_mask=attention_masks(self._windows, positions, visible, self._dtype),
                position_ids=positions,
                use_cache=True,
                **{self._cache_name: self.cache},
                **options,
            )
        self.passes += 1
        return output.logits[:, -keep:], output.hidden_states[-1] if self._hidden else None
