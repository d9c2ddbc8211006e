"""The loop on a GPU: ``python -m benchmarks.gpu`` checks it first, and then measures it, in less than nine minutes.

It needs a checkout with the compiled module, torch and transformers, and no network: models are Llamas of the shapes of
1B and 8B parameters with random weights, the vocabulary is made up. Figures are written to a JSON file after each
section, so that a run that is cut off has left what it found; ``make gpu-report`` makes a table and plots of it.
Without a GPU, ``--toy`` runs all of it with small models.

How many draft tokens are accepted is synthetic in the measurements: each with the same probability (``--acceptance``),
by the same random numbers in all settings, as nothing else is the same for models of random weights.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
import transformers

import grammarspec as gs
from benchmarks import gpu_checks, gpu_kernels
from benchmarks.gpu_setting import DRAFT, SHAPES, TOY, Run, llama, made_up_vocabulary
from grammarspec.decoding import Request, Sampling
from grammarspec.decoding.batch import Batch
from grammarspec.decoding.device import DeviceBatch
from grammarspec.decoding.noise import Purpose, uniform
from grammarspec.decoding.processing import Processing
from grammarspec.decoding.proposers import DraftModel, Proposer

RECORD = r'\{"name": "[a-z]{1,12}", "age": [0-9]{1,3}, "city": "[a-z ]{1,16}"\}\n'
PROMPT = 64  # tokens of a prompt
ROUNDS = 40  # measured of each setting


class Synthetic(Processing):
    """Accepts draft tokens with one probability, whatever the models say; then the most probable allowed token."""

    rate = 0.8

    def verify_logits(
        self,
        logits: torch.Tensor,
        masks: torch.Tensor,
        prefix: torch.Tensor,
        lengths: torch.Tensor,
        draft: torch.Tensor | None,
        drawn: torch.Tensor,
        positions: torch.Tensor,
        rounds: torch.Tensor,
        mask_rows: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """As :meth:`Processing.verify_logits`, which is run as well, so that its cost is there."""
        found = super().verify_logits(logits, masks, prefix, lengths, draft, drawn, positions, rounds, mask_rows)
        if not prefix.shape[1]:
            return found
        inside = torch.arange(prefix.shape[1], device=prefix.device) < lengths[:, None]
        lucky = uniform(self._streams, positions[:, :-1], Purpose.ACCEPT, rounds) < self.rate
        accepted = (lucky & inside).to(torch.int64).cumprod(1).sum(1)
        at = accepted[:, None, None]
        logits, masks = (each.gather(1, at.expand(-1, 1, each.shape[2])) for each in (logits, masks))
        return accepted, self.scores(logits, masks, prefix[:, :0]).argmax(-1)[:, 0], found[2]


def requests_for(run: Run, rows: int, tokens: int, constrained: bool) -> list[Request]:
    rng = np.random.default_rng(0)
    return [
        Request(
            prompt=rng.integers(0, 256, PROMPT).tolist(),
            matcher=run.constraint.matcher() if constrained else None,
            sampling=Sampling(max_tokens=tokens),
        )
        for _ in range(rows)
    ]


def measured(
    run: Run, model: Any, proposers: Sequence[Proposer], rows: int, gamma: int, *, constrained: bool, host: bool
) -> dict[str, float]:
    """Microseconds of a round, and of a token, of one setting; with the loop on the host or on the device."""
    torch.manual_seed(0)
    tokens = (ROUNDS + 12) * (gamma + 1) + 8
    requests = requests_for(run, rows, tokens, constrained)
    end = run.vocabulary.eos_token_ids[0]
    batch: Any
    with torch.inference_mode():
        if host:
            batch = Batch(model, requests, run.vocabulary, proposers=proposers, gamma=gamma)
            batch.processing.__class__ = Synthetic
        else:
            batch = DeviceBatch(
                model,
                requests,
                run.vocabulary,
                proposers=proposers,
                gamma=gamma,
                adaptive=False,
                end_token=end,
                looks=False,
            )
            batch._processing.__class__ = Synthetic
            batch._view()
            batch.begin()
        for _ in range(6):
            batch.round()
        run.synchronise()
        before = sum(len(sequence.tokens) for sequence in batch.sequences)
        begin = perf_counter()
        for _ in range(ROUNDS):
            batch.round()
        run.synchronise()
        seconds = perf_counter() - begin
        after = sum(len(sequence.tokens) for sequence in batch.sequences)
        assert all(sequence.finish_reason is None for sequence in batch.sequences), "a text ended while it was measured"
        if not host:
            batch.close()
    return {
        "round_us": 1e6 * seconds / ROUNDS,
        "token_us": 1e6 * seconds * rows / (after - before),
        "tokens_per_round": (after - before) / ROUNDS / rows,
    }


def rounds(run: Run, name: str, model: Any, draft: Any, batches: Sequence[int], gammas: Sequence[int]) -> None:
    """Measure all settings of one shape, the ones that matter most first."""

    def drafts() -> list[Proposer]:
        return [DraftModel(draft)]

    plans: list[tuple[str, int, int, Callable[[], list[Proposer]], dict[str, bool]]] = []
    for rows in batches:
        plans += [
            ("plain", rows, 0, list, {"constrained": False, "host": False}),
            ("constrained", rows, 0, list, {"constrained": True, "host": False}),
        ]
        if rows in (min(batches), max(batches)):
            plans += [
                ("plain (host)", rows, 0, list, {"constrained": False, "host": True}),
                ("constrained (host)", rows, 0, list, {"constrained": True, "host": True}),
            ]
    for gamma in sorted((gamma for gamma in gammas if gamma), key=lambda gamma: (gamma not in (4, 2, 8), gamma)):
        for rows in batches:
            plans.append(("speculative", rows, gamma, drafts, {"constrained": False, "host": False}))
            plans.append(("both", rows, gamma, drafts, {"constrained": True, "host": False}))
    with run.section(f"rounds, {name}") as found:
        found["settings"] = settings = []
        found["left out"] = left_out = []
        for what, rows, gamma, make, options in plans:
            if perf_counter() > run.deadline:
                left_out.append([what, rows, gamma])
                continue
            figures = measured(run, model, make(), rows, gamma, **options)
            settings.append({"setting": what, "rows": rows, "gamma": gamma, **figures})
            run.flush()
        found["overheads"] = overheads(settings)


def overheads(settings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What constraints add to a round of the same rows, length of drafts and accepted tokens, as a share of it."""
    times = {(each["setting"], each["rows"], each["gamma"]): each for each in settings}
    found = []
    for (what, rows, gamma), each in times.items():
        bare = {"constrained": "plain", "constrained (host)": "plain (host)", "both": "speculative"}.get(what)
        if bare is not None and (bare, rows, gamma) in times:
            other = times[bare, rows, gamma]
            share = each["round_us"] / other["round_us"] - 1
            alike = abs(each["tokens_per_round"] - other["tokens_per_round"]) < 0.02
            found.append({"setting": what, "rows": rows, "gamma": gamma, "overhead": share, "same acceptance": alike})
    return found


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check and measure.

    Returns:
        the exit status: 1 if a check failed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true", help="small models on the CPU, to see that all of it runs")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/gpu.json"))
    parser.add_argument("--seconds", type=float, default=500, help="when to begin nothing new (%(default)s)")
    parser.add_argument("--acceptance", type=float, default=0.8, help="of draft tokens, synthetic (%(default)s)")
    parser.add_argument("--shapes", default="8B,1B", help="of models (%(default)s)")
    parser.add_argument("--replays", type=int, default=1000, help="of graphs, compared (%(default)s)")
    parser.add_argument("--batches", type=_numbers, default=[1, 8, 32, 64], help="numbers of rows")
    parser.add_argument("--gammas", type=_numbers, default=list(range(9)), help="lengths of drafts")
    options = parser.parse_args(arguments)
    if not options.toy and not torch.cuda.is_available():
        print("there is no CUDA device: --toy runs small models on the CPU", file=sys.stderr)
        return 1
    begin = perf_counter()
    device = torch.device("cpu" if options.toy else "cuda")
    vocabulary = made_up_vocabulary(2_000 if options.toy else 128_256)
    constraint = gs.compile(gs.regex(f"({RECORD}){{{12 if options.toy else 60},}}"), vocabulary)
    run = Run(device, vocabulary, constraint, options.output, begin + options.seconds)
    Synthetic.rate = options.acceptance
    run.results["about"] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {platform.machine()}",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "acceptance": options.acceptance,
        "toy": options.toy,
    }
    run.flush()
    failed = gpu_checks.all_checks(run, replays=30 if options.toy else options.replays)
    measure(run, options)
    run.results["about"]["seconds"] = round(perf_counter() - begin, 1)
    run.flush()
    print(f"{len(failed)} checks failed; the figures are in {options.output}")
    return int(bool(failed))


def measure(run: Run, options: argparse.Namespace) -> None:
    """Measure kernels and rounds."""
    with run.section("kernels") as found:
        gpu_kernels.kernels(run, found, (1, 2) if options.toy else (1, 64))
    shapes = {**TOY, **SHAPES}
    for name in ["toy"] if options.toy else options.shapes.split(","):
        target = llama(shapes[name], run.vocabulary.size, run.device)
        draft = llama(shapes["toy draft" if options.toy else DRAFT], run.vocabulary.size, run.device)
        batches, gammas = ((1, 2), (0, 2)) if options.toy else (options.batches, options.gammas)
        rounds(run, name, target, draft, batches, gammas)
        del target, draft
        if run.device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    sys.exit(main())
