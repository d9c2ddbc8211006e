"""Attention without copies of keys and values gives what transformers' gives, and is there during a pass only."""

from __future__ import annotations

import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import attention, model_runner  # noqa: E402
from grammarspec.decoding.attention import shared_keys  # noqa: E402
from grammarspec.decoding.model_runner import ModelRunner  # noqa: E402
from grammarspec.decoding.windows import SHARED_KEYS  # noqa: E402
from tests.oracles.small_llama import small_llama  # noqa: E402

PROMPTS = [[1, 2, 3, 4, 5], [6], [7, 8, 9]]


def logits(model: Any, prompts: list[list[int]] = PROMPTS) -> Any:
    runner = ModelRunner(model, len(prompts))
    runner.read(prompts, 1)
    return runner.read([[11, 12], [13, 14], [15, 16]], 2)


def test_logits_are_those_of_transformers(inference: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows of different lengths, in float32 to the bit: it is the same sum in the same order."""
    model = small_llama(1).float()
    assert model.config.num_attention_heads == 2 * model.config.num_key_value_heads
    calls = 0
    attend = attention._attend

    def counting(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return attend(*args, **options)

    monkeypatch.setitem(attention.AttentionInterface._global_mapping, SHARED_KEYS, counting)
    mine = logits(model)
    assert calls == 2 * model.config.num_hidden_layers
    monkeypatch.setattr(model_runner, "shared_keys", lambda model: torch.inference_mode())
    assert torch.equal(mine, logits(model))
    assert calls == 2 * model.config.num_hidden_layers


def test_it_is_there_during_passes_only(inference: None) -> None:
    model = small_llama(1)
    tokens = torch.tensor([[1, 2, 3]], device=model.device)
    with shared_keys(model):
        assert model.config._attn_implementation == SHARED_KEYS
        with shared_keys(model):
            # Whoever else runs the model meanwhile, without a mask of four dimensions, gets what sdpa gives.
            text = model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits
        assert model.config._attn_implementation == SHARED_KEYS
    assert model.config._attn_implementation == "sdpa"
    assert torch.equal(text, model(input_ids=tokens).logits)
    with pytest.raises(ValueError, match="stop"), shared_keys(model):
        raise ValueError("stop")
    assert model.config._attn_implementation == "sdpa"


def test_other_attention_is_left_alone() -> None:
    model = small_llama(1)
    model.config._attn_implementation = "eager"
    with shared_keys(model):
        assert model.config._attn_implementation == "eager"
    assert model.config._attn_implementation == "eager"


def test_passes_in_threads(inference: None) -> None:
    model = small_llama(2)
    expected = logits(model)
    found: list[bool] = []

    def work() -> None:
        with torch.inference_mode():
            found.extend(torch.equal(logits(model), expected) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40
    assert model.config._attn_implementation == "sdpa" and not attention._passes
