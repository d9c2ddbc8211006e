"""How often the loop on the device misses states of constraints that do not freeze: ``python -m benchmarks.misses``.

Schemas are a few of this module, each of which does not freeze for another reason; or, with ``--data FOLDER``, those of
a folder of files of MaskBench's form that do not freeze, each with a prompt that quotes it.

For each schema, texts are generated one after the other with a window that is empty at first: "first" is the first,
which is greedy; "later" are the others, for which states are there from earlier ones. A miss is a round after which the
text has come to a state that the device does not have; a wait is a round that went by until it was there. Quoted are
both per 1,000 rounds, and the tokens per round beside those of the loop on the host with the same proposers. At the end
come the same numbers of all schemas together, and the quartiles of misses over the schemas.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import torch

import grammarspec as gs
from benchmarks.cases import from_folder
from grammarspec.decoding import Request, Sampling, Statistics, generate_batch
from grammarspec.decoding.batch import end_token_of
from grammarspec.decoding.device import DeviceBatch
from grammarspec.decoding.proposers import EarlyExit, Forced, Lookup, Proposer
from grammarspec.errors import GrammarError, LimitExceeded, UnsupportedFeature
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
_Case = tuple[str, gs.Grammar[Any], str]
"""A name, a grammar, and a prompt for it."""
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
PROPOSERS: dict[str, Callable[[Any], list[Proposer]]] = {
    "none": lambda _: [],
    "forced, lookup": lambda _: [Forced(), Lookup()],
    "forced, early exit": lambda model: [Forced(), EarlyExit(model, model.config.num_hidden_layers // 5)],
}
"""What makes the proposers of each set, for a model."""
QUOTED = 600
"""So many characters of a schema from a folder stand in its prompt: SmolLM2 reads a few hundred tokens on a CPU."""


@dataclass
class Counts:
    """What was counted of the texts of a schema, or of several: first ones, later ones, and all on the host."""

    first: Statistics = field(default_factory=Statistics)
    later: Statistics = field(default_factory=Statistics)
    on_host: Statistics = field(default_factory=Statistics)

    def add(self, other: Counts) -> None:
        """Add what was counted of other texts."""
        self.first.add(other.first)
        self.later.add(other.later)
        self.on_host.add(other.on_host)

    def __str__(self) -> str:
        parts = []
        for title, some in (("first", self.first), ("later", self.later)):
            waits = 1000 * some.waits / max(some.rounds.total(), 1)
            parts.append(f"{title}: {some.misses_per_thousand:4.0f} misses, {waits:4.0f} waits")
        both = Statistics()
        both.add(self.first)
        both.add(self.later)
        tau = f"tokens per round {both.tokens_per_pass:.2f}, on the host {self.on_host.tokens_per_pass:.2f}"
        return f"{'; '.join(parts)}; {tau}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each schema, with each set of proposers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--tokens", type=int, default=80, help="of each text (%(default)s)")
    parser.add_argument("--texts", type=int, default=6, help="of each schema (%(default)s)")
    parser.add_argument("--lag", type=int, default=1, help="rounds that are launched before one is read (%(default)s)")
    parser.add_argument("--data", type=Path, help="a folder of schemas, in place of those of this module")
    parser.add_argument("--schemas", type=int, default=30, help="looked at in the folder, evenly spread (%(default)s)")
    parser.add_argument("--case", action="append", choices=CASES, help="one of this module's; may be given again (all)")
    parser.add_argument("--proposers", action="append", choices=PROPOSERS, help="may be given again (all)")
    options = parser.parse_args(arguments)
    model, tokenizer = load_model(options.model)
    vocabulary = vocabulary_of(model, tokenizer)
    torch.set_num_threads(1)
    sets = {name: PROPOSERS[name](model) for name in options.proposers or PROPOSERS}
    found: dict[str, list[Counts]] = defaultdict(list)
    own: list[_Case] = [(name, *CASES[name]) for name in options.case or CASES]
    given = _that_do_not_freeze(options.data, options.schemas, vocabulary) if options.data else own
    for name, grammar, prompt in given:
        tokens = encode_prompt(tokenizer, prompt)
        for drafts, proposers in sets.items():
            constraint = gs.compile(grammar, vocabulary)
            counts = Counts()
            for number in range(options.texts):
                way: dict[str, Any] = {"temperature": 0.8, "seed": number} if number else {}
                sampling = Sampling(max_tokens=options.tokens, **way)
                one, other = _both(model, vocabulary, constraint, tokens, sampling, proposers, options.lag)
                (counts.later if number else counts.first).add(one)
                counts.on_host.add(other)
            found[drafts].append(counts)
            print(f"{name:24.24} {drafts:18} {counts}", flush=True)
    _print_all(found)


def _that_do_not_freeze(folder: Path, most: int, vocabulary: gs.Vocabulary) -> Iterator[_Case]:
    """Of so many schemas of a folder, evenly spread, those that compile and do not freeze."""
    for case in from_folder(folder, most):
        try:
            grammar = gs.json_schema(case.schema)
            constraint = gs.compile(grammar, vocabulary)
        except GrammarError:
            continue
        try:
            constraint.freeze()
        except (LimitExceeded, UnsupportedFeature):
            quoted = json.dumps(case.schema, ensure_ascii=False)[:QUOTED]
            yield case.name, grammar, f"Write an example of JSON that follows this schema: {quoted}"


def _print_all(found: dict[str, list[Counts]]) -> None:
    """Print the numbers of all schemas together, and how misses spread over the schemas."""
    for drafts, one_by_one in found.items():
        together = Counts()
        for counts in one_by_one:
            together.add(counts)
        print(f"{f'all {len(one_by_one)}':24} {drafts:18} {together}")
        for title in ("first", "later") if len(one_by_one) > 1 else ():
            misses = [getattr(counts, title).misses_per_thousand for counts in one_by_one]
            low, median, high = quantiles(misses, n=4)
            spread = f"quartiles {low:.0f}, {median:.0f}, {high:.0f}, most {max(misses):.0f}"
            print(f"{'':24} {drafts:18} {title}: misses by schema: {spread}")


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


if __name__ == "__main__":
    main()
