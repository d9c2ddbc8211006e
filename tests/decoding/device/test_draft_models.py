"""Draft models on the device read all text, whatever the rounds before have drafted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

import grammarspec as gs
from grammarspec.decoding import Request, Sampling
from grammarspec.decoding.device import DeviceBatch
from grammarspec.decoding.proposers import DraftModel
from tests.decoding.device.test_same_texts import PROMPTS, VOCABULARY, WIDTH
from tests.oracles.small_llama import small_llama


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("lengths", [[4, 0, 4, 0, 4, 0, 4], [4, 0, 0, 0, 2, 4, 4], [0, 0, 1, 0, 4]], ids=str)
def test_all_drafts_of_the_target_itself_are_accepted(lengths: list[int], lag: int) -> None:
    model, copy = small_llama(3, width=WIDTH), small_llama(3, width=WIDTH)
    constraint = gs.compile(gs.regex(r"[^~]{0,200}"), VOCABULARY)
    requests = [
        Request(prompt=list(prompt), matcher=constraint.matcher(), sampling=Sampling(max_tokens=80))
        for prompt in PROMPTS[:3]
    ]
    batch = DeviceBatch(
        model,
        requests,
        VOCABULARY,
        proposers=[DraftModel(copy)],
        gamma=4,
        adaptive=False,
        end_token=264,
        lag=lag,
        looks=not lag,
    )
    with torch.inference_mode():
        batch.begin()
        for length in lengths:
            batch.round(length)
    batch.close()
    for text in batch.sequences:
        read = text.statistics.rounds
        assert sum(read.values()) == len(lengths) - lag
        assert all(accepted == drafted for drafted, accepted in read), read
