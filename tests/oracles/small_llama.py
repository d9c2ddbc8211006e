"""Llamas of a few thin layers with random weights in float64, where rounding decides nothing.

``MODELS_ON=cuda pytest tests/decoding/device/test_same_texts.py`` runs the loop on a device with them. Kernels need
``MODELS_IN=float32``, in which rounding may decide in rare cases.
"""

from __future__ import annotations

import os
from copy import deepcopy
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

__all__ = ["disturbed", "small_llama"]

_DEVICE = os.environ.get("MODELS_ON", "cpu")
_DTYPE = getattr(torch, os.environ.get("MODELS_IN", "float64"))


def small_llama(seed: int, *, width: int = 264, layers: int = 2, context: int = 512) -> Any:
    """A model; its logits differ enough that texts are not all one token."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=width,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.6,
    )
    return LlamaForCausalLM(config).to(_DEVICE, _DTYPE).eval()


def disturbed(model: Any, seed: int) -> Any:
    """A copy with other weights, near enough that it agrees often."""
    other = deepcopy(model)
    torch.manual_seed(seed)
    for parameter in other.parameters():
        parameter.data += 0.03 * torch.randn_like(parameter)
    return other
