"""Tokens per target pass on fixed extraction and tool-call prompts: ``python -m benchmarks.speculation``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import grammarspec as gs
from grammarspec.decoding import Generation, Request, Sampling, Statistics, generate_batch
from grammarspec.decoding.proposers import Forced, Lookup, Proposer
from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of

PROMPTS = Path(__file__).with_name("prompts.json")
PROPOSERS: dict[str, list[Proposer]] = {
    "none": [],
    "forced": [Forced(preferred=False)],
    "forced+preferred": [Forced()],
    "lookup": [Lookup()],
    "forced+lookup": [Forced(), Lookup()],
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every set of proposers on every prompt, and compare texts and passes of the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--gamma", type=int, default=8, help="tokens of a draft at most (%(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="prompts side by side (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=400, help="of each text (%(default)s)")
    parser.add_argument("--only", choices=list(PROPOSERS), action="append", help="proposers to run (all)")
    parser.add_argument("--limit", type=int, help="prompts to run (all)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--threads", type=int, help="of torch (all cores)")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    model, tokenizer = load_model(options.model)
    vocabulary = vocabulary_of(model, tokenizer)
    entries: list[dict[str, Any]] = json.loads(PROMPTS.read_text("utf-8"))[: options.limit]
    report: dict[str, Any] = {}
    for whitespace in ("compact", "flexible"):
        constraints = [
            gs.compile(gs.json_schema(entry["schema"], whitespace=whitespace), vocabulary) for entry in entries
        ]
        reference: list[Generation] = []
        for name in options.only or PROPOSERS:
            requests = [
                Request(
                    prompt=encode_prompt(tokenizer, entry["prompt"]),
                    matcher=constraint.matcher(),
                    sampling=Sampling(max_tokens=options.max_tokens),
                )
                for entry, constraint in zip(entries, constraints, strict=True)
            ]
            texts: list[Generation] = []
            for begin in range(0, len(requests), options.batch):
                part = requests[begin : begin + options.batch]
                texts += [
                    text
                    for [text] in generate_batch(
                        model, part, vocabulary, proposers=PROPOSERS[name], gamma=options.gamma
                    )
                ]
            reference = reference or texts
            differing = sum(a.tokens != b.tokens for a, b in zip(texts, reference, strict=True))
            # In texts that were cut short the model mostly repeats itself, which favours prompt lookup.
            whole = [text for text in texts if text.finish_reason == "stop"]
            total, ended = _together(texts), _together(whole)
            line = (
                f"{whitespace:9} {name:17} {total.tokens_per_pass:5.2f} tokens/pass ({ended.tokens_per_pass:.2f} in the"
            )
            line += f" {len(whole)} of {len(texts)} texts that ended), {total.tokens} tokens, {differing} texts differ"
            print(f"{line}, {total.tokens_per_second:.0f} tokens/s", flush=True)
            report[f"{whitespace} {name}"] = {"all": total.summary(), "ended": ended.summary(), "differing": differing}
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")


def _together(texts: Sequence[Generation]) -> Statistics:
    """The statistics of several texts, added up."""
    total = Statistics()
    for text in texts:
        total.add(text.statistics)
    return total


if __name__ == "__main__":
    main()
