"""Which schemas freeze, how large they are then, and how long it takes: ``python -m benchmarks.freezing FOLDER``.

The folder holds schemas of MaskBench's form, as for ``python -m benchmarks``. Each is compiled with its properties in
declared order, once without whitespace and once with what is allowed by default, and frozen within the default bounds
before anything else is asked of it; times are those of freezing alone. Where undeclared properties are allowed, their
values are any JSON, which nests without bound; so all is measured with ``additional_properties=False`` as well.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import grammarspec as gs
from benchmarks.cases import Case, from_folder
from grammarspec.errors import GrammarError, LimitExceeded, UnsupportedFeature

WAYS: dict[str, dict[str, Any]] = {
    "compact": {"whitespace": "compact"},
    "flexible": {"whitespace": "flexible"},
    "compact, closed": {"whitespace": "compact", "additional_properties": False},
    "flexible, closed": {"whitespace": "flexible", "additional_properties": False},
}


@dataclass
class Found:
    """What was found about the schemas of one way."""

    no_constraint: int = 0
    frozen: list[tuple[str, dict[str, float]]] = field(default_factory=list)
    """Of each schema that freezes, its name and its numbers."""
    refused: list[tuple[str, str, float]] = field(default_factory=list)
    """Of each that does not, its name, the reason and the milliseconds that it took to say so."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Freeze the schemas, and print a table for each way and the reasons of refusals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="files of MaskBench's form")
    parser.add_argument("--tokenizer", default="smollm2", help="a name, a directory, or smollm2 (%(default)s)")
    parser.add_argument("--schemas", type=int, default=400, help="how many, evenly spread (%(default)s)")
    parser.add_argument("--json", type=Path, help="a file for the numbers of each schema")
    options = parser.parse_args(arguments)
    vocabulary = _vocabulary(options.tokenizer)
    cases = from_folder(options.folder, options.schemas)
    found = {way: measured(cases, vocabulary, way) for way in WAYS}
    print(f"{len(cases)} schemas, {vocabulary.size} tokens\n")
    for line in report(found):
        print(line)
    if options.json:
        options.json.write_text(json.dumps({way: vars(one) for way, one in found.items()}, indent=1))


def _vocabulary(name: str) -> gs.Vocabulary:
    if name != "smollm2":
        return gs.Vocabulary.from_pretrained(name)
    from grammarspec.models.loading import load_model, vocabulary_of

    return vocabulary_of(*load_model(name))


def measured(cases: Sequence[Case], vocabulary: gs.Vocabulary, way: str) -> Found:
    """Freeze the schemas of all cases."""
    found = Found()
    gs.compile(gs.json_schema({"type": "string"}), vocabulary).freeze()  # what is found once for a vocabulary
    for case in cases:
        try:
            constraint = gs.compile(gs.json_schema(case.schema, **WAYS[way]), vocabulary)
        except GrammarError:
            found.no_constraint += 1
            continue
        start = perf_counter()
        try:
            frozen = constraint.freeze()
        except (LimitExceeded, UnsupportedFeature) as error:
            found.refused.append((case.name, _reason(error), (perf_counter() - start) * 1e3))
            continue
        numbers = {
            "time, ms": (perf_counter() - start) * 1e3,
            "states": frozen.states,
            "classes": frozen.classes,
            "masks": len(frozen.pool),
            "table, kB": frozen.next.nbytes / 1e3,
            "masks, kB": frozen.pool.nbytes / 1e3,
        }
        found.frozen.append((case.name, numbers))
    return found


def _reason(error: GrammarError) -> str:
    """The reason of a refusal without what differs from schema to schema."""
    if isinstance(error, LimitExceeded):
        known = re.search(r"max_\w+", error.message)
        return f"larger than {known.group()}" if known else error.message
    return "values must differ" if "differ" in error.message else "nests without bound"


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else float("nan")


def report(found: dict[str, Found]) -> list[str]:
    """The tables, as lines of Markdown."""
    names = ["time, ms", "states", "classes", "masks", "table, kB", "masks, kB"]
    lines = [f"| way | compile | freeze | {' | '.join(names)} | refusal, ms |", "|:--|" + "--:|" * (len(names) + 3)]
    for way, one in found.items():
        compiled = len(one.frozen) + len(one.refused)
        cells = [
            " / ".join(f"{_quantile([n[name] for _, n in one.frozen], share):.4g}" for share in (0.5, 0.99, 1))
            for name in names
        ]
        share = f"{len(one.frozen)} ({len(one.frozen) / max(compiled, 1):.0%})"
        times = [time for _, _, time in one.refused]
        refusals = " / ".join(f"{_quantile(times, share):.3g}" for share in (0.5, 0.99, 1))
        lines.append(f"| {way} | {compiled} | {share} | {' | '.join(cells)} | {refusals} |")
    lines += ["", "Numbers are p50 / p99 / most. Reasons of refusals:", ""]
    for way, one in found.items():
        reasons = Counter(reason for _, reason, _ in one.refused).most_common()
        said = ", ".join(f"{reason}: {count}" for reason, count in reasons) or "none"
        lines.append(f"* {way}: {said} (no constraint: {one.no_constraint})")
    return lines


if __name__ == "__main__":
    main()
