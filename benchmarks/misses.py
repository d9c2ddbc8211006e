"""How often the loop on the device misses states of constraints that do not freeze: ``python -m benchmarks.misses``.

For each schema, texts are generated one after the other with a window that is empty at first: "first" is the first,
which is greedy; "later" are the others, for which states are there from earlier ones. A miss is a round after which the
text has come to a state that the device does not have; a wait is a round that went by until it was there. Quoted are
both per 1,000 rounds, and the tokens per round beside those of the loop on the host with the same proposers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch

import grammarspec as gs
from grammarspec.decoding import Request, Sampling, Statistics, generate_batch
from grammarspec.decoding.batch import end_token_of
from grammarspec.decoding.device import DeviceBatch
from grammarspec.decoding.proposers import EarlyExit, Forced, Lookup, Proposer
from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_LIST = {"type": "array", "items": {"$ref": "#"}}
_ITEM = {"anyOf": [{"type": "number"}, {"$ref": "#"}]}
CASES: dict[str, tuple[gs.Grammar[Any], str]] = {
    "folders": (
        gs.json_schema(_object(name=_TEXT, size={"type": "integer"}, files=_LIST)),
        "Describe a small project as a tree of folders and files, as JSON with name, size and files.",
    ),
    "comments": (
        gs.json_schema(_object(author=_TEXT, text=_TEXT, replies=_LIST)),
        "Write a thread of comments about tea as JSON with author, text and replies.",
    ),
    "formula": (
        gs.json_schema(_object(operator={"enum": ["+", "-", "*", "/"]}, left=_ITEM, right=_ITEM)),
        "Write (1 + 2) * (3 - 4 / 5) as JSON: a tree with operator, left and right.",
    ),
    "any JSON": (gs.json_schema({"type": "object"}), "Describe a city as JSON, with its districts and their sights."),
    "arithmetic": (
        gs.lark('start: sum\nsum: value (("+"|"-"|"*") value)*\nvalue: /[0-9]+/ | "(" sum ")"\n%ignore " "\n'),
        "Write a long formula with brackets whose value is 42.",
    ),
    "different": (
        gs.json_schema({"type": "array", "items": _TEXT, "uniqueItems": True, "minItems": 5, "maxItems": 20}),
        "List ten colours as a JSON array of strings.",
    ),
    "count": (
        gs.json_schema(_object(title=_TEXT, story={"type": "string", "maxLength": 100_000})),
        "Write a story about a fox as JSON with title and story.",
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each schema, with each set of proposers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--tokens", type=int, default=80, help="of each text (%(default)s)")
    parser.add_argument("--texts", type=int, default=6, help="of each schema (%(default)s)")
    parser.add_argument("--lag", type=int, default=1, help="rounds that are launched before one is read (%(default)s)")
    parser.add_argument("--case", action="append", choices=CASES, help="may be given again (all)")
    options = parser.parse_args(arguments)
    model, tokenizer = load_model(options.model)
    vocabulary = vocabulary_of(model, tokenizer)
    torch.set_num_threads(1)
    proposers: dict[str, list[Proposer]] = {
        "none": [],
        "forced, lookup": [Forced(), Lookup()],
        "forced, early exit": [Forced(), EarlyExit(model, model.config.num_hidden_layers // 5)],
    }
    for name in options.case or CASES:
        grammar, prompt = CASES[name]
        tokens = encode_prompt(tokenizer, prompt)
        for drafts, made in proposers.items():
            constraint = gs.compile(grammar, vocabulary)
            first, later, on_host = Statistics(), Statistics(), Statistics()
            for number in range(options.texts):
                way: dict[str, Any] = {"temperature": 0.8, "seed": number} if number else {}
                sampling = Sampling(max_tokens=options.tokens, **way)
                one, other = _both(model, vocabulary, constraint, tokens, sampling, made, options.lag)
                (later if number else first).add(one)
                on_host.add(other)
            _print(name, drafts, first, later, on_host)


def _both(
    model: Any,
    vocabulary: gs.Vocabulary,
    constraint: gs.Constraint,
    prompt: list[int],
    sampling: Sampling,
    proposers: list[Proposer],
    lag: int,
) -> tuple[Statistics, Statistics]:
    """The statistics of a text on the device, and of the same text on the host."""

    def request() -> Request:
        return Request(prompt=prompt, matcher=constraint.matcher(), sampling=sampling)

    shared: dict[str, Any] = {"proposers": proposers, "gamma": 4, "adaptive": False}
    end = end_token_of(model, vocabulary)
    [[text]] = DeviceBatch(model, [request()], vocabulary, end_token=end, lag=lag, **shared).run()
    [[other]] = generate_batch(model, [request()], vocabulary, device_loop=False, **shared)
    return text.statistics, other.statistics


def _print(name: str, drafts: str, first: Statistics, later: Statistics, on_host: Statistics) -> None:
    parts = []
    for title, some in (("first", first), ("later", later)):
        waits = 1000 * some.waits / max(some.rounds.total(), 1)
        parts.append(f"{title}: {some.misses_per_thousand:4.0f} misses, {waits:4.0f} waits")
    both = Statistics()
    both.add(first)
    both.add(later)
    tau = f"tokens per round {both.tokens_per_pass:.2f}, on the host {on_host.tokens_per_pass:.2f}"
    print(f"{name:10} {drafts:18} {'; '.join(parts)}; {tau}", flush=True)


if __name__ == "__main__":
    main()
