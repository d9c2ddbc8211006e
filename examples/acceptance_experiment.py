"""Acceptance over temperature and draft length, and tokens per second for gamma = 2 to 8: tables, CSV and a plot.

    python examples/acceptance_experiment.py                      (about three minutes)
    python examples/acceptance_experiment.py --draft a-smaller-model --gammas 2,4,8 --temperatures 0,1

First the acceptance as the two models have it, without any draft: the mean of sum(min(p, q)) over the positions of
texts of the target, at temperature 0 the share of positions at which both have the same most probable token. Then what
speculative decoding measures: alpha is accepted / tried, where a token behind a rejected one was not tried. The two
agree, within chance. From alpha follows tau, the tokens per pass, and with the cost of a draft token the speed-up.

What the usual tutorials get wrong: accepted / drafted is not alpha. It falls with gamma though the models stay the
same; the table has both. Nor does an acceptance tell the speed-up alone: what a draft token costs decides (`--cost`),
and "70 % gives three times the speed" holds at no gamma.

Where there is no smaller model, the draft is the target with rounded weights, which is as slow as the target itself.
The times that are measured are then those of the worst case; the last column is what a draft would give that costs
`--cost` passes of the target a token.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from common import command, load, proposers_named, table

import grammarspec as gs
from grammarspec.decoding import Generation, Request, Sampling, Statistics, generate_batch
from grammarspec.decoding.analysis import expected_tokens, speedup
from grammarspec.decoding.proposers import DraftModel, Proposer
from grammarspec.models import encode_prompt

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PROMPTS = [
    "Write a short story about a boat.",
    "Explain how rain is made.",
    "Name the capitals of five countries.",
    "What is a prime number?",
]


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one temperature and draft length; `gamma` 0 is decoding without drafts."""

    temperature: float
    gamma: int
    alpha: float
    accepted_of_drafted: float
    tau: float
    tau_of_alpha: float
    tokens_per_second: float
    times_plain: float
    times_at_cost: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write the CSV file and the plot."""
    parser = command(__doc__)
    parser.add_argument("--draft", default="rounded:4", help="rounded:BITS, early-exit:LAYERS or a model (%(default)s)")
    parser.add_argument("--gammas", default="2,3,4,5,6,7,8", help="draft lengths (%(default)s)")
    parser.add_argument("--temperatures", default="0,0.7,1.5", help="(%(default)s)")
    parser.add_argument("--prompts", type=int, default=2, help="how many, side by side (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--cost", type=float, default=0.1, help="of a draft token, for the last column (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--csv", type=Path, default=Path("acceptance.csv"), help="the file to write (%(default)s)")
    options = parser.parse_args(arguments)
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    model = load(options)
    [proposer] = proposers_named(options.draft, model)
    if not isinstance(proposer, DraftModel):
        parser.error(f"{options.draft} has no distribution to compare")
    draft = cast("PreTrainedModel", proposer.model)
    torch.manual_seed(options.seed)
    prompts = [encode_prompt(model.tokenizer, prompt) for prompt in PROMPTS[: options.prompts]]
    gammas = [int(one) for one in options.gammas.split(",")]
    expected, found = [], []
    for temperature in map(float, options.temperatures.split(",")):
        sampling = Sampling(temperature=temperature, max_tokens=options.max_tokens)
        texts = written(model, prompts, sampling, [], 0)
        both = [
            expected_acceptance(model.model, draft, [*prompt, *text.tokens], len(prompt), temperature)
            for prompt, text in zip(prompts, texts, strict=True)
        ]
        rows = measured(model, prompts, sampling, proposer, gammas, texts, options.cost)
        found += rows
        expected.append([temperature, sum(both) / len(both), _mean([row.alpha for row in rows if row.gamma])])
    print(table(["temperature", "acceptance of the models", "alpha measured"], expected), end="\n\n")
    print(
        table([field.name.replace("_", " ") for field in fields(Measured)], ([*asdict(row).values()] for row in found))
    )
    write_csv(found, options.csv)
    print(f"\nwritten to {options.csv}")
    if find_spec("matplotlib") is not None:
        plot(found, options.csv.with_suffix(".png"))


def written(
    model: gs.Model, prompts: Sequence[Sequence[int]], sampling: Sampling, proposers: Sequence[Proposer], gamma: int
) -> list[Generation]:
    """A text to each prompt, side by side."""
    requests = [Request(prompt=prompt, sampling=sampling) for prompt in prompts]
    return [
        text
        for [text] in generate_batch(
            model.model, requests, model.vocabulary, proposers=proposers, gamma=gamma, adaptive=False
        )
    ]


def expected_acceptance(
    target: PreTrainedModel, draft: PreTrainedModel, tokens: Sequence[int], prompt_length: int, temperature: float
) -> float:
    """The mean probability that a token drafted behind a beginning of a text is accepted: mean of sum(min(p, q))."""
    read = torch.tensor([tokens], device=target.device)
    with torch.inference_mode():
        ours, theirs = (model(read).logits[0, prompt_length - 1 : -1].float() for model in (target, draft))
    if temperature == 0:
        return float((ours.argmax(-1) == theirs.argmax(-1)).float().mean())
    p, q = ((logits / temperature).softmax(-1) for logits in (ours, theirs))
    return float(torch.minimum(p, q).sum(-1).mean())


def measured(
    model: gs.Model,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    proposer: Proposer,
    gammas: Sequence[int],
    plain: Sequence[Generation],
    cost: float,
) -> list[Measured]:
    """The figures of each draft length, beside those of the texts without drafts."""
    base = together(plain)
    slow = rate(plain)
    rows = [Measured(sampling.temperature, 0, 0.0, 0.0, base.tokens_per_pass, 1.0, slow, 1.0, 1.0)]
    for gamma in gammas:
        texts = written(model, prompts, sampling, [proposer], gamma)
        figures = together(texts)
        alpha = acceptance(figures)
        fast = rate(texts)
        rows.append(
            Measured(
                sampling.temperature,
                gamma,
                alpha,
                figures.acceptance_rate,
                figures.tokens_per_pass,
                expected_tokens(alpha, gamma),
                fast,
                fast / slow,
                speedup(alpha, gamma, cost),
            )
        )
    return rows


def together(texts: Sequence[Generation]) -> Statistics:
    """The statistics of several texts, added up."""
    total = Statistics()
    for text in texts:
        total.add(text.statistics)
    return total


def acceptance(statistics: Statistics) -> float:
    """Accepted over tried draft tokens: in a round, those up to the first that was rejected were tried."""
    accepted = sum(taken * rounds for (_, taken), rounds in statistics.rounds.items())
    rejected = sum(rounds for (drafted, taken), rounds in statistics.rounds.items() if taken < drafted)
    return accepted / (accepted + rejected) if accepted + rejected else 0.0


def rate(texts: Sequence[Generation]) -> float:
    """Tokens per second of texts that were written side by side: the slowest has the time of all."""
    figures = [text.statistics for text in texts]
    return sum(one.tokens for one in figures) / max(one.prefill_seconds + one.decode_seconds for one in figures)


def write_csv(rows: Sequence[Measured], path: Path) -> None:
    """The figures, a line for each temperature and draft length."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Measured)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def plot(rows: Sequence[Measured], path: Path) -> None:
    """Acceptance and tokens per second over gamma, a line for each temperature."""
    matplotlib = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = import_module("matplotlib.pyplot")
    figure, sides = pyplot.subplots(1, 2, figsize=(10, 4))
    for side, name in zip(sides, ("alpha", "tokens_per_second"), strict=True):
        for temperature in dict.fromkeys(row.temperature for row in rows):
            drafted = [row for row in rows if row.temperature == temperature and row.gamma]
            values = [getattr(row, name) for row in drafted]
            side.plot([row.gamma for row in drafted], values, marker="o", label=f"temperature {temperature:g}")
        side.set(xlabel="gamma", ylabel=name.replace("_", " "), ylim=(0, None))
        side.legend()
    figure.savefig(path)
    print(f"drawn in {path}")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


if __name__ == "__main__":
    main()
