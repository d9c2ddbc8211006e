"""Shared settings and fixtures: Hypothesis profiles, and the real tokenizers that several tests use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The tests' tensors are small: threads would wait for each other more than they work. (Read when torch is imported.)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Machines that run the tests are slow and shared: a deadline per example would only measure their load.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct (49,152 tokens, byte-level BPE)."""
    pytest.importorskip("transformers")
    from grammarspec.models.loading import smollm2_path

    try:
        return smollm2_path()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def smollm2_tokenizer(smollm2_gguf: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smollm2_gguf.parent, gguf_file=smollm2_gguf.name)


@pytest.fixture(scope="session")
def llama3_directory() -> Path:
    """A directory with Llama-3's tokenizer.json (128,256 tokens, byte-level BPE), which nobody may redistribute."""
    directory = os.environ.get("GRAMMARSPEC_LLAMA3")
    if not directory:
        pytest.skip("set GRAMMARSPEC_LLAMA3 to a directory with Llama-3's tokenizer.json")
    return Path(directory)


@pytest.fixture(scope="session")
def tiny_model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two thin layers with random weights and a byte-level tokenizer, saved as transformers saves models.

    Tokens: the 256 bytes, ``</s>`` (256), ``<turn>`` (257); the logits are padded to 264.
    """
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["</s>", "<turn>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}<turn>{% endfor %}"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=264,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.6,  # wide enough that the logits of the random model differ
        bos_token_id=None,
        eos_token_id=256,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(eos_token_id=256)
    directory = tmp_path_factory.mktemp("tiny")
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory
