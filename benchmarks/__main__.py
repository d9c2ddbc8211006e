"""Times compile, first mask and every step of each engine on each case, the engines taking turns.

Times of one run can be compared with each other only: what counts is the ratio in the last column.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, built_in, from_folder
from benchmarks.engines import ENGINES, Compile

now = time.perf_counter_ns


class Times:
    """What one engine took, in microseconds."""

    def __init__(self) -> None:
        self.first: list[float] = []
        self.step: list[float] = []
        self.by_case: dict[str, float] = {}
        self.refused: list[str] = []

    def run(self, compile: Compile, case: Case, token_lists: list[list[int]]) -> None:
        start = now()
        try:
            make = compile(case.schema)
        except Exception as error:
            self.refused.append(f"{case.name}: {str(error).splitlines()[0][:90]}")
            return
        make().fill()
        self.first.append((now() - start) / 1e3)
        total = 0.0
        for tokens in token_lists:
            sequence = make()
            for token in tokens:
                start = now()
                sequence.fill()
                allowed = int(sequence.row[token >> 5]) >> (token & 31) & 1
                accepted = bool(allowed) and sequence.accept(token)
                took = (now() - start) / 1e3
                self.step.append(took)
                total += took
                if not accepted:
                    self.refused.append(f"{case.name}: a valid instance")
                    break
        self.by_case[case.name] = total


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


def report(results: dict[str, Times]) -> None:
    base = next((name for name in ("llguidance", "xgrammar") if name in results), next(iter(results)))
    rows = [("", *results)]
    for label, field in (("first mask", "first"), ("step", "step")):
        for what, share in (("mean", None), ("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
            cells = []
            for times in results.values():
                values: list[float] = getattr(times, field)
                figure = sum(values) / max(1, len(values)) if share is None else percentile(values, share)
                cells.append(f"{figure:,.1f}")
            rows.append((f"{label} {what} (us)", *cells))
    shared = set.intersection(*(set(times.by_case) for times in results.values()))
    sums = {name: sum(times.by_case[case] for case in shared) for name, times in results.items()}
    rows.append((f"all steps, to {base}'s", *(f"{sums[name] / max(sums[base], 1e-9):.2f}x" for name in results)))
    rows.append(("refused", *(str(len(times.refused)) for times in results.values())))
    width = max(len(row[0]) for row in rows)
    for row in rows:
        print(row[0].ljust(width), *(cell.rjust(17) for cell in row[1:]))
    for name, times in results.items():
        for line in times.refused[:8]:
            print(f"  {name} refused {line}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--tokenizer", help="a directory, a hub name or a .gguf file; SmolLM2's if not given")
    parser.add_argument("--schemas", type=Path, help="a folder of schemas with instances; some of our own if not given")
    parser.add_argument("--most", type=int, default=200, help="schemas taken from the folder, at most")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--rounds", type=int, default=5, help="times that every case is run from the start")
    options = parser.parse_args()

    tokenizer = load_tokenizer(options.tokenizer)
    engines: dict[str, Compile] = {}
    for name in options.engines.split(","):
        try:
            engines[name] = ENGINES[name](tokenizer)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    results = {name: Times() for name in engines}
    names = list(engines)
    cases = from_folder(options.schemas, options.most) if options.schemas else built_in()
    for turn, case in enumerate(cases * (1 if options.schemas else options.rounds)):
        token_lists = [tokenizer.encode(text, add_special_tokens=False) for text in case.texts]
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            results[name].run(engines[name], case, token_lists)
    report(results)


def load_tokenizer(path: str | None) -> Any:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if path is None:
        from grammarspec.models import smollm2_path

        path = str(smollm2_path())
    if path.endswith(".gguf"):
        return AutoTokenizer.from_pretrained(Path(path).parent, gguf_file=Path(path).name)
    try:
        return AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError):
        return PreTrainedTokenizerFast.from_pretrained(path)


if __name__ == "__main__":
    main()
