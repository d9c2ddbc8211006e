"""grammarspec beside its peers on the same inputs, in one run: tables and plots.

Compare times of one run only with each other: what matters are ratios.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import measure, report
from benchmarks.cases import built_in, from_folder, growing, long_text
from benchmarks.engines import ENGINES, Engine

PARTS = ("steps", "size", "length", "threads")


def main() -> None:
    """Measure what the command line asks for; write tables and plots."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--tokenizer", help="a directory, a hub name or a .gguf file; SmolLM2's if not given")
    parser.add_argument("--schemas", type=Path, help="a folder of schemas with instances; some of our own if not given")
    parser.add_argument("--most", type=int, default=200, help="schemas taken from the folder, at most")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--parts", default=",".join(PARTS), help="of: " + ", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5, help="times that every case is run from the start")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="where tables and plots go")
    options = parser.parse_args()

    tokenizer = load_tokenizer(options.tokenizer)
    engines: dict[str, Engine] = {}
    for name in options.engines.split(","):
        try:
            engines[name] = ENGINES[name](tokenizer)
            engines[name].compile({"type": "string"})().fill()  # what is done once in a process is not measured
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(run(part, engines, tokenizer, options) for part in options.parts.split(","))
    (options.out / "tables.md").write_text(text + "\n")
    print(text, f"\nTables and plots are in {options.out}/")


def run(part: str, engines: dict[str, Engine], tokenizer: Any, options: argparse.Namespace) -> str:
    """Measure one part, plot it, and return its table."""
    match part:
        case "steps":
            cases = from_folder(options.schemas, options.most) if options.schemas else built_in()
            results = measure.steps(engines, tokenizer, cases, 1 if options.schemas else options.rounds)
            report.plot_steps(results, options.out / "steps.png")
            base = next((name for name in ("llguidance", "xgrammar") if name in results), next(iter(results)))
            return f"## Steps, {len(cases)} schemas\n\n{report.steps_table(results, base)}"
        case "size":
            sizes = measure.first_masks(engines, growing(), options.rounds)
            y = "microseconds to the first mask"
            report.plot_series(sizes, "properties of the schema", y, options.out / "size.png")
            return f"## Compile and first mask, microseconds\n\n{report.series_table('properties', sizes)}"
        case "length":
            places = measure.along(engines, tokenizer, long_text(), 500)
            y = "microseconds of a step, mean"
            report.plot_series(places, "tokens before", y, options.out / "length.png", "linear")
            return f"## Steps along a text, microseconds\n\n{report.series_table('tokens before', places)}"
        case "threads":
            few = [case for case in built_in() if case.name not in ("many choices", "any JSON")]
            many = [case for i in range(3) for case in few]
            taken = measure.batches(engines, tokenizer, many, 64, (1, 2, 4), 15)
            y = "microseconds for 64 new masks"
            report.plot_series(taken, "threads", y, options.out / "threads.png", "linear")
            return f"## 64 masks not met before, microseconds\n\n{report.series_table('threads', taken)}"
    raise SystemExit(f"no part {part!r}; there are {', '.join(PARTS)}")


def load_tokenizer(path: str | None) -> Any:
    """The tokenizer of a directory, a hub name or a ``.gguf`` file; SmolLM2's if there is none of these."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if path is None:
        from grammarspec.models.loading import smollm2_path

        path = str(smollm2_path())
    if path.endswith(".gguf"):
        return AutoTokenizer.from_pretrained(Path(path).parent, gguf_file=Path(path).name)
    try:
        return AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError):
        return PreTrainedTokenizerFast.from_pretrained(path)


if __name__ == "__main__":
    main()
