"""What is checked on a device before anything is measured there: steps, masks, replays, the law, that nothing waits."""

from __future__ import annotations

import itertools
import traceback
from collections import Counter
from typing import Any

import numpy as np
import torch

import grammarspec as gs
from benchmarks.gpu_setting import TOY, Run, llama
from grammarspec.decoding import Request, Sampling
from grammarspec.decoding.device import DeviceBatch
from grammarspec.decoding.device.automaton import ArenaTensors, mask_rows, step
from grammarspec.decoding.device.graphs import Graphs
from grammarspec.decoding.proposers import DraftModel, Forced, Lookup
from grammarspec.kernels.dispatch import Mode, using

__all__ = ["all_checks"]

_PATTERNS = [r"[a-z]{1,20}", r"(yes|no|maybe)( (yes|no|maybe)){0,6}", r'\{"name": "[a-z]{1,8}", "age": [0-9]{1,3}\}']
_STEPS = 1 << 20
_ROWS = 4


def all_checks(run: Run, replays: int) -> list[str]:
    """Run the checks; each is a section of the results.

    Returns:
        the names of those that failed.
    """
    checks = {
        "steps and masks": lambda found: steps_and_masks(run, found),
        "replays": lambda found: replays_are_rounds(run, found, replays),
        "law": lambda found: law(run, found),
        "nothing waits": lambda found: nothing_waits(run, found),
    }
    modes: dict[str, Mode] = {"torch": "reference", "kernels": "auto"}
    failed = []
    for (name, check), (by, mode) in itertools.product(checks.items(), modes.items()):
        try:
            with run.section(f"check: {name}, {by}") as found, using(mode):
                check(found)
                found["ok"] = True
        except Exception:  # a check that fails must not keep the others from running
            failed.append(f"{name}, {by}")
            traceback.print_exc()
    return failed


def steps_and_masks(run: Run, found: dict[str, Any]) -> None:
    """States behind random tokens, and mask rows, are those of the arena on the host."""
    frozen = [gs.compile(gs.regex(pattern), run.vocabulary).freeze() for pattern in _PATTERNS]
    arena = gs.FrozenArena(run.vocabulary.size, transitions=1 << 21, states=1 << 14, rows=1 << 10)
    entries = [arena.add(one) for one in frozen]
    tensors = ArenaTensors.of(arena, run.device)
    rng = np.random.default_rng(1)
    states = rng.choice(
        [state for entry in entries for state in range(entry.base, entry.base + entry.frozen.states)], _STEPS
    )
    tokens = rng.integers(0, run.vocabulary.size, _STEPS)
    expected = arena.step(states, tokens)
    behind = (
        step(tensors, torch.from_numpy(states).to(run.device), torch.from_numpy(tokens).to(run.device)).cpu().numpy()
    )
    assert np.array_equal(behind, expected), "steps differ"
    every = np.unique(states)
    rows = mask_rows(tensors, torch.from_numpy(every).to(run.device)).cpu().numpy()
    assert np.array_equal(rows, arena.masks(every)), "mask rows differ"
    found |= {"steps": _STEPS, "bits": int(rows.size * 32), "states": len(every)}


def _small_batch(run: Run, *, tokens: int, gamma: int, ends: bool) -> DeviceBatch:
    """A batch of a small model with all that drafts: under several constraints, or one whose texts do not end soon."""
    torch.manual_seed(2)
    target, draft = (llama(TOY[name], run.vocabulary.size, run.device) for name in ("toy", "toy draft"))
    constraints = [gs.compile(gs.regex(pattern), run.vocabulary) for pattern in _PATTERNS]
    bias = {} if ends else dict.fromkeys(run.vocabulary.eos_token_ids, -1e4)
    requests = [
        Request(
            prompt=[1 + number, 2, 3],
            matcher=(constraints[number % len(constraints)] if ends else run.constraint).matcher(),
            sampling=Sampling(max_tokens=tokens, temperature=float(number % 2), logit_bias=bias),
        )
        for number in range(_ROWS)
    ]
    return DeviceBatch(
        target,
        requests,
        run.vocabulary,
        proposers=[Forced(), Lookup(), DraftModel(draft)],
        gamma=gamma,
        adaptive=False,
        end_token=run.vocabulary.eos_token_ids[0],
        lag=1,
        looks=False,
    )


def replays_are_rounds(run: Run, found: dict[str, Any], replays: int) -> None:
    """A replay of a graph changes the rows as the round does that it was captured from, whatever they hold.

    Each replay begins with other states, lengths and last tokens. Caches are the same for both, as whatever a round
    reads of them is written by one of them from the same values. Without CUDA, the round is compared with itself.
    """
    batch, gamma = _small_batch(run, tokens=40, gamma=3, ends=True), 3
    generator = torch.Generator().manual_seed(3)
    with torch.inference_mode():
        batch.begin()
        rows, processing = batch._now
        for drafter in batch._models:
            drafter.behind = gamma + 1

        def work() -> torch.Tensor:
            return batch._round.run(rows, processing, gamma, batch._capacity)

        state = [*rows.tensors(), batch._loan.tensors.forced, batch._loan.tensors.preferred]
        graphs = Graphs(state) if run.device.type == "cuda" else None
        starts = torch.tensor([*sorted(batch._loan.starts.values()), 0])
        first = [tensor.clone() for tensor in state]
        compared = 0
        for number in range(replays):
            _restore(state, first)
            rows.states.copy_(starts[torch.randint(len(starts), (_ROWS,), generator=generator)])
            rows.lengths.copy_(torch.randint(1, 4, (_ROWS,), generator=generator))
            rows.turn.fill_(number)
            before = [tensor.clone() for tensor in state]
            report = (work() if graphs is None else graphs.run((_ROWS, gamma), work)).clone()
            after = [tensor.clone() for tensor in state]
            _restore(state, before)
            again = work()
            # Draft tokens behind the text are scratch: what is committed is compared.
            columns = torch.arange(rows.tokens.shape[1], device=run.device)
            text = columns < rows.lengths[:, None]
            assert torch.equal(report, again), f"replay {number}: the reports differ"
            for one, other in zip(after[1:], state[1:], strict=True):
                assert torch.equal(one, other), f"replay {number}: the rows differ"
            assert torch.equal(torch.where(text, after[0], 0), torch.where(text, rows.tokens, 0)), f"replay {number}"
            compared += int(report[:, 0].sum())
        batch.close()
    found |= {"replays": replays, "tokens": compared, "graph": graphs is not None}


def _restore(state: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    for tensor, value in zip(state, values, strict=True):
        tensor.copy_(value)


def law(run: Run, found: dict[str, Any]) -> None:
    """First tokens that the loop draws are distributed as the masked model's distribution: chi-square."""
    torch.manual_seed(4)
    vocabulary = gs.Vocabulary.from_tokens([*(letter.encode() for letter in "abcdefgh"), None], [8])
    target, draft = (llama(TOY[name], vocabulary.size, run.device) for name in ("toy", "toy draft"))
    target.lm_head.weight.data.mul_(20)
    constraint = gs.compile(gs.regex("[a-f][a-h]"), vocabulary)
    samples = 4096 if run.device.type == "cuda" else 512
    request = Request(prompt=[1, 2], matcher=constraint.matcher(), sampling=Sampling(temperature=1.0), n=samples)
    batch = DeviceBatch(
        target, [request], vocabulary, proposers=[DraftModel(draft)], gamma=2, adaptive=False, end_token=8
    )
    [texts] = batch.run()
    seen = Counter(tuple(text.tokens[:2]) for text in texts)
    with torch.inference_mode():
        prompts = torch.tensor([[1, 2, first] for first in range(8)], device=run.device)
        logits = target(prompts).logits.double().cpu()
    first = logits[0, 1, :6].softmax(-1)
    statistic = 0.0
    cells = 0
    pooled = [0.0, 0.0]
    for one in range(6):
        second = logits[one, 2, :8].softmax(-1)
        for two in range(8):
            expected, observed = float(first[one] * second[two]) * samples, seen[one, two]
            if expected < 10:
                pooled[0], pooled[1] = pooled[0] + expected, pooled[1] + observed
                continue
            statistic, cells = statistic + (observed - expected) ** 2 / expected, cells + 1
    if pooled[0] > 0:
        statistic, cells = statistic + (pooled[1] - pooled[0]) ** 2 / pooled[0], cells + 1
    degrees = torch.tensor((cells - 1) / 2, dtype=torch.float64)
    p = float(torch.special.gammaincc(degrees, torch.tensor(statistic / 2, dtype=torch.float64)))
    found |= {"samples": samples, "cells": cells, "p": p}
    assert sum(seen.values()) == samples and p > 1e-4, f"chi-square p = {p}"


def nothing_waits(run: Run, found: dict[str, Any]) -> None:
    """No operation of a round waits for the device, nor does sending its report."""
    batch = _small_batch(run, tokens=60, gamma=2, ends=False)
    with torch.inference_mode():
        batch.begin()
        for _ in range(3):
            batch.round()  # graphs are captured, which may wait
        on_cuda = run.device.type == "cuda"
        if on_cuda:
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
        try:
            # What the host does when a report has come is not asked: it may wait for the report.
            batch._launch(2)
        finally:
            if on_cuda:
                torch.cuda.set_sync_debug_mode("default")
        while batch._under_way:
            batch._receive()
        batch.close()
    found |= {"rounds": 1, "checked": on_cuda}
