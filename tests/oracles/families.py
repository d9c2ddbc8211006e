"""Small models of transformers' families, with random weights, and what transformers itself generates with them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
import transformers

import grammarspec as gs
from grammarspec.decoding import Request, Sampling, Target, generate_batch
from grammarspec.decoding.proposers import Proposer
from grammarspec.decoding.windows import unwrapped

WIDTH = 64
CONTEXT = 128

COMMON: dict[str, Any] = {
    "vocab_size": WIDTH,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "initializer_range": 0.5,  # wide enough that the logits of the random model differ
}
LENGTH = 24  # of the texts
END = WIDTH - 4
VOCABULARY = gs.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(32, 32 + END)), None], [END])
PROMPTS = [[random.Random(seed).randrange(3, WIDTH) for _ in range(length)] for seed, length in enumerate((14, 3, 9))]
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}


def build(family: str, *, attention: str | None = None, **options: Any) -> Any:
    """A model of a family.

    Args:
        family: the type of its configuration; what follows a blank is ignored.
        attention: how attention is implemented; as transformers chooses if not given.
        options: entries of the configuration; ``None``: not that entry of ``COMMON``.
    """
    settings = {**COMMON, **options}
    config = transformers.AutoConfig.for_model(
        family.split(" ", maxsplit=1)[0], **{name: value for name, value in settings.items() if value is not None}
    )
    return random_model(transformers.AutoModelForCausalLM, config, attention=attention)


def random_model(kind: Any, config: Any, *, attention: str | None = None) -> Any:
    """A model of a class, or of what an auto class takes for it, with random weights that are always the same."""
    torch.manual_seed(0)
    implementation = {} if attention is None else {"attn_implementation": attention}
    make = getattr(kind, "from_config", None) or kind._from_config
    return make(config, dtype=torch.float32, **implementation).eval()


def by_generate(model: Any, prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """The greedy texts of transformers, each alone."""
    inner = unwrapped(model)
    assert inner is not None
    options = {"do_sample": False, "max_new_tokens": LENGTH, "eos_token_id": END, "pad_token_id": 0}
    return [inner.generate(torch.tensor([prompt]), **options)[0, len(prompt) :].tolist() for prompt in prompts]


def texts(model: Any | Target, prompts: Sequence[Sequence[int]], proposers: Sequence[Proposer]) -> list[list[int]]:
    requests = [Request(prompt=prompt, sampling=Sampling(max_tokens=LENGTH)) for prompt in prompts]
    return [text.tokens for [text] in generate_batch(model, requests, VOCABULARY, proposers=proposers, gamma=3)]
