"""A model whose logits are noise: what it generates shows what masks allow, at no cost."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast


class NoiseConfig(PretrainedConfig):
    model_type = "noise"

    def __init__(self, vocab_size: int = 8, **options: Any) -> None:
        super().__init__(**options)
        self.vocab_size = vocab_size


class NoiseModel(PreTrainedModel):
    """Normal logits, other ones in each pass; no attention, no cache."""

    config_class = NoiseConfig
    _can_compile_fullgraph = True
    _supports_sdpa = True

    def __init__(self, vocab_size: int) -> None:
        super().__init__(NoiseConfig(vocab_size=vocab_size))
        self.anchor = nn.Parameter(torch.zeros(1))

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        past_key_values: Any,
        use_cache: bool = True,
        logits_to_keep: int = 0,
    ) -> CausalLMOutputWithPast:
        keep = logits_to_keep or input_ids.shape[1]
        return CausalLMOutputWithPast(logits=torch.randn(len(input_ids), keep, self.config.vocab_size))
