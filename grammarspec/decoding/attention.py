"""Attention of models whose queries share keys and values (grouped-query attention), without copies of these.

Where an attention mask is given, transformers repeats keys and values for each query head before it calls torch's
``scaled_dot_product_attention``: in a batch that is most of what attention costs. Here the queries of the heads that
share a key head are taken as more queries of one head. The sums are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from grammarspec.decoding.windows import SHARED_KEYS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["shared_keys"]

_lock = threading.Lock()
_passes: dict[int, int] = {}
"""For each configuration, by ``id``, how many passes of its model run at the moment."""


@contextmanager
def shared_keys(model: PreTrainedModel) -> Iterator[None]:
    """Run a model with this attention, if it attends by ``scaled_dot_product_attention`` and lets another do it.

    Other threads may run the same model meanwhile, with this attention or the one it had: the results are the same.
    """
    config = model.config.get_text_config()
    with _lock:
        count = _passes.get(id(config), 0)
        replaces = count > 0 or (config._attn_implementation == "sdpa" and model._supports_attention_backend)
        if replaces:
            _passes[id(config)] = count + 1
            config._attn_implementation = SHARED_KEYS
    try:
        yield
    finally:
        if replaces:
            with _lock:
                _passes[id(config)] -= 1
                if not _passes[id(config)]:
                    del _passes[id(config)]
                    config._attn_implementation = "sdpa"


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    position_bias: torch.Tensor | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """See ``transformers.integrations.sdpa_attention.sdpa_attention_forward``.

    Args:
        query: ``[rows, heads, new, size]``.
        key, value: ``[rows, shared heads, slots, size]``.
        attention_mask: ``[rows, 1, new, slots]``.

    Returns:
        ``[rows, new, heads, size]``.
    """
    rows, heads, new, _ = query.shape
    shared = key.shape[1]
    if shared == heads or attention_mask is None or attention_mask.shape[1] != 1 or position_bias is not None:
        options |= {"dropout": dropout, "scaling": scaling, "position_bias": position_bias}
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    group = heads // shared
    mask = attention_mask[:, :, None].expand(-1, 1, group, new, -1).flatten(2, 3)
    found = torch.nn.functional.scaled_dot_product_attention(
        query.reshape(rows, shared, group * new, -1), key, value, attn_mask=mask, dropout_p=dropout, scale=scaling
    )
    return found.reshape(rows, heads, new, -1).transpose(1, 2).contiguous(), None


AttentionInterface.register(SHARED_KEYS, _attend)
AttentionMaskInterface.register(SHARED_KEYS, sdpa_mask)
