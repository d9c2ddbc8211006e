"""Kernels against the speed of the memory: what masks and the verification of drafts take, by kind of sampling.

Times are those of the device: many calls over inputs in turn, more than its cache holds, are captured in a CUDA graph.
The **limit** of a call is the time in which the device copies as many bytes as the call has to read and write at least:
each logit once and the mask rows, and for masks that are applied in place the logits that are forbidden.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

import grammarspec as gs
from benchmarks.gpu_setting import Run
from grammarspec.decoding import Sampling
from grammarspec.decoding.processing import Processing
from grammarspec.kernels.dispatch import Mode, using

__all__ = ["kernels"]

KINDS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "seeded": {"temperature": 1.0, "seed": 1},
    "drawn": {"temperature": 1.0},
    "drawn, top-p 0.9": {"temperature": 1.0, "top_p": 0.9},
    "drawn, top-k 50": {"temperature": 1.0, "top_k": 50},
    "drawn, min-p 0.1": {"temperature": 1.0, "min_p": 0.1},
}
MODES: tuple[Mode, ...] = ("reference", "auto")
_CALLS = 16  # in a graph
_GAMMA = 4
_SECONDS = 90  # after which nothing new is measured
_ALLOWED = {"few": 0.0003, "most": 0.999}  # the share of tokens that a mask allows


@dataclass(frozen=True)
class Inputs:
    """One of the sets of inputs that calls take in turn.

    Attributes:
        logits: ``bf16[rows, places, width]``.
        masks: ``int32[rows, places, words]``.
        tokens: ``int64[rows, places - 1]``, the drafts.
        draft: ``[rows, places - 1, width]``, the distributions of the drafts.
    """

    logits: torch.Tensor
    masks: torch.Tensor
    tokens: torch.Tensor
    draft: torch.Tensor


def inputs(run: Run, rows: int, places: int, share: float) -> list[Inputs]:
    """Sets of inputs, as many as do not fit into the cache of a device."""
    width = run.vocabulary.size
    count = _CALLS if run.device.type == "cuda" else 1
    generator = torch.Generator(run.device).manual_seed(5)

    def one() -> Inputs:
        logits = 3 * torch.randn(rows, places, width, device=run.device, generator=generator)
        allowed = torch.rand(rows, places, -(-width // 32), 32, device=run.device, generator=generator) < share
        allowed[..., 0, 0] = True
        bits = (allowed.long() << torch.arange(32, device=run.device)).sum(-1)
        masks = torch.where(bits >= 1 << 31, bits - (1 << 32), bits).to(torch.int32)
        tokens = torch.randint(width, (rows, places - 1), device=run.device, generator=generator)
        draft = torch.rand(rows, max(places - 1, 0), width, device=run.device, generator=generator)
        return Inputs(logits.bfloat16(), masks, tokens, draft / draft.sum(-1, keepdim=True))

    return [one() for _ in range(count)]


def microseconds(run: Run, work: Callable[[Inputs], object], given: Sequence[Inputs]) -> float:
    """The median time of a call on the device, over all inputs in turn."""
    if run.device.type != "cuda":  # to see that all of it runs
        for each in given:
            work(each)
        return 0.0
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        for each in given[:2]:
            work(each)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for each in given:
                work(each)
        times: list[float] = []
        while len(times) < 3 or (len(times) < 12 and sum(times) * len(given) < 100_000):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(1000 * begin.elapsed_time(end) / len(given))
    return statistics.median(times[1:])


def copied(run: Run) -> float:
    """Bytes per microsecond that the device reads and writes when it copies a large tensor."""
    size = 1 << (31 if run.device.type == "cuda" else 16)
    one, other = (torch.empty(size, dtype=torch.uint8, device=run.device) for _ in range(2))
    nothing = Inputs(one, other, one, other)
    taken = microseconds(run, lambda each: each.masks.copy_(each.logits), [nothing] * 3)
    return 2 * size / taken if taken else 1.0


def peers() -> Iterator[tuple[str, Callable[[torch.Tensor, torch.Tensor], object]]]:
    """What other engines apply masks with, of those that are installed."""
    try:
        from xgrammar.kernels.apply_token_bitmask_inplace_triton import apply_token_bitmask_inplace_triton

        yield "XGrammar (Triton)", apply_token_bitmask_inplace_triton
    except ImportError:
        pass
    try:
        from llguidance.torch import apply_token_bitmask_inplace

        yield "llguidance (torch.compile)", apply_token_bitmask_inplace
    except ImportError:
        pass


def kernels(run: Run, found: dict[str, Any], batches: Sequence[int]) -> None:
    """Measure masks and verification, with kernels and with their references in torch."""
    rate = copied(run)
    found["bytes per microsecond"] = round(rate)
    found["calls"] = calls = []
    found["left out"] = left_out = []
    deadline = min(perf_counter() + _SECONDS, run.deadline)

    def measure(what: str, rows: int, allowed: str, moved: float, ways: dict[str, Callable[[], float]]) -> None:
        if perf_counter() > deadline:
            left_out.append([what, rows, allowed])
            return
        times: dict[str, Any] = {}
        for name, taken in ways.items():
            try:
                times[name] = round(taken(), 2)
            except Exception as error:  # another engine's kernel may not run here; the others are still measured
                times[name] = f"{type(error).__name__}: {error}"[:200]
        calls.append({"call": what, "rows": rows, "allowed": allowed, "limit": round(moved / rate, 2), "us": times})
        run.flush()

    def ours(work: Callable[[Inputs], object], given: Sequence[Inputs]) -> dict[str, Callable[[], float]]:
        def taken(mode: Mode) -> float:
            with using(mode):
                return microseconds(run, work, given)

        return {
            "torch" if mode == "reference" else "kernels": lambda mode=mode: taken(mode)  # type: ignore[misc]
            for mode in MODES
        }

    for allowed, share in _ALLOWED.items():
        for rows in batches:
            given = inputs(run, rows, 1, share)
            logits = given[0].logits
            moved = given[0].masks.nbytes + (1 - share) * logits.nbytes
            ways = ours(lambda each: gs.apply_bitmask(each.logits[:, 0], each.masks[:, 0]), given)
            for name, apply in peers():
                ways[name] = lambda apply=apply, given=given: microseconds(  # type: ignore[misc]
                    run, lambda each: apply(each.logits[:, 0], each.masks[:, 0]), given
                )
            measure("apply masks in place", rows, allowed, moved, ways)
    for kind, options in KINDS.items():
        for allowed, share in _ALLOWED.items():
            for rows in batches:
                given = inputs(run, rows, _GAMMA + 1, share)
                work = verification(run, Sampling(**options), rows)
                moved = given[0].masks.nbytes + share * given[0].logits.nbytes
                measure(f"verify {_GAMMA} draft tokens: {kind}", rows, allowed, moved, ours(work, given))


def verification(run: Run, sampling: Sampling, rows: int) -> Callable[[Inputs], object]:
    """Verification of the drafts of a batch, from logits and mask rows."""
    process = Processing([sampling] * rows, [0] * rows, [[0]] * rows, run.vocabulary.size, run.device)
    positions = torch.arange(_GAMMA + 1, device=run.device).expand(rows, -1).contiguous()
    rounds = torch.ones(rows, dtype=torch.int64, device=run.device)
    drawn = ~process.chosen[:, None].expand(rows, _GAMMA)
    lengths = rounds * _GAMMA

    def work(each: Inputs) -> object:
        draft = each.draft if process.draws else None
        return process.verify_logits(each.logits, each.masks, each.tokens, lengths, draft, drawn, positions, rounds)

    return work
