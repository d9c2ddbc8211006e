"""The command ``grammarspec bench speculative``: what drafts gain on this machine, with this model, on these prompts.

Prompts, with or without schemas, go in; tables of acceptance, tokens per pass and speed by proposers, draft length and
temperature come out, and on request as CSV and as plots.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grammarspec
from grammarspec.cli.files import file_text
from grammarspec.cli.generate import proposers_of
from grammarspec.cli.options import Commands, add_command
from grammarspec.errors import needed_by

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from grammarspec.decoding.alternation import Measurement, Setting

__all__ = ["add_parser"]

_EXIT_CODES = """exit codes:
  0    the tables are printed
  2    a file or an option cannot be used
  130  interrupted"""
_PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}
_ORDER = {
    "type": "object",
    "properties": {
        "customer": {"type": "string"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"product": {"type": "string"}, "quantity": {"type": "integer"}},
                "required": ["product", "quantity"],
                "additionalProperties": False,
            },
            "minItems": 1,
            "maxItems": 4,
        },
        "express": {"type": "boolean"},
    },
    "required": ["customer", "items", "express"],
    "additionalProperties": False,
}
PROMPTS: list[dict[str, Any]] = [
    {"prompt": "Alice Moreau is 31 and lives in Lyon. Write what is known of her as JSON.", "schema": _PERSON},
    {"prompt": "Give me an invented person as JSON: name, age, city.", "schema": _PERSON},
    {
        "prompt": "Mr. Okafor orders two lamps, one desk and three chairs, and needs them tomorrow. The order as JSON:",
        "schema": _ORDER,
    },
    {"prompt": "Anna wants a kettle and four cups; there is no hurry. The order as JSON:", "schema": _ORDER},
]
"""What is generated unless ``--prompts`` says otherwise."""

_COLUMNS = ["temperature", "gamma", "draft", "acceptance", "tokens/pass", "tokens/s", "speed-up"]
_PHASES = ["draft", "mask", "target", "verify", "commit"]


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    bench = commands.add_parser("bench", help="measure what drafts gain", description="Measure, on this machine.")
    parser = add_command(
        bench.add_subparsers(required=True, metavar="WHAT"),
        "speculative",
        _speculative,
        summary="acceptance and speed by proposers, draft length and temperature",
        description="Generate the same texts with and without drafts, in turns, and compare.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("--model", default="smollm2", help="directory, .gguf file or hub name (%(default)s)")
    parser.add_argument(
        "--prompts",
        metavar="FILE",
        type=Path,
        help='a JSON list of {"prompt": ..., "schema": ...}; without a schema, the text is free',
    )
    parser.add_argument(
        "--draft",
        metavar="SOURCES",
        action="append",
        help="proposers, as for grammarspec generate; may be given several times (forced; lookup; forced,lookup)",
    )
    parser.add_argument(
        "--gamma",
        metavar="N|N..M|auto",
        action="append",
        help="draft lengths, as a number or a range; auto: chosen in each round; may be given several times (4; auto)",
    )
    parser.add_argument("--temperature", type=float, action="append", help="may be given several times (0)")
    parser.add_argument("--turns", type=int, default=3, help="how often all of it is measured (%(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="texts that are generated together (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=96, help="of each text (%(default)s)")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write the table here, too")
    parser.add_argument("--png", metavar="FILE", type=Path, help="draw acceptance and speed over gamma here")


def _speculative(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    gammas = [gamma for given in options.gamma or ["4", "auto"] for gamma in _gammas(given)]
    for name in ("turns", "batch", "max_tokens"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(options, name)}")
    entries = PROMPTS if options.prompts is None else _prompts(options.prompts)
    if options.png is not None:
        with needed_by("--png"):
            import matplotlib  # noqa: F401  # before the model is loaded, and minutes are spent
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # transformers draws progress bars even where nobody sees them
    from grammarspec.decoding.alternation import Case, alternate
    from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of

    model, tokenizer = load_model(options.model)
    vocabulary = vocabulary_of(model, tokenizer)
    cases = [
        Case(
            encode_prompt(tokenizer, entry["prompt"]),
            grammarspec.compile(grammarspec.json_schema(entry["schema"]), vocabulary) if "schema" in entry else None,
        )
        for entry in entries
    ]
    settings = _settings(options, gammas, model, vocabulary)
    measured = alternate(
        model, vocabulary, cases, settings, turns=options.turns, batch=options.batch, on_turn=_progress(len(settings))
    )
    rows = [_row(each, _plain(measured, each)) for each in measured]
    _print_table([*_COLUMNS, *(f"{phase} ms" for phase in _PHASES)], rows)
    if any(case.constraint is not None for case in cases):
        print("\nWith and without drafts, with and without the constraints, at the first temperature:\n")
        both = _ablation(options, settings)
        _print_table(
            ["constraints", "drafts", "tokens/pass", "tokens/s", *(f"{phase} ms" for phase in _PHASES)],
            _ablation_rows(alternate(model, vocabulary, cases, both, turns=options.turns, batch=options.batch)),
        )
    if options.csv is not None:
        _write_csv(options.csv, rows)
    if options.png is not None:
        _plot(options.png, measured)
    return 0


def _gammas(given: str) -> list[int | None]:
    """The draft lengths that a value of ``--gamma`` names; ``None`` stands for those chosen in each round.

    Raises:
        ValueError: it names none.
    """
    if given == "auto":
        return [None]
    found = re.fullmatch(r"([0-9]+)(?:\.\.([0-9]+))?", given)
    if found is None or not 1 <= int(found[1]) <= int(found[2] or found[1]):
        raise ValueError(f"--gamma must be a number from 1, a range such as 2..8, or auto, not {given!r}")
    return list(range(int(found[1]), int(found[2] or found[1]) + 1))


def _prompts(path: Path) -> list[dict[str, Any]]:
    """The prompts of a file.

    Raises:
        ValueError: it holds something else.
    """
    entries = json.loads(file_text(path))
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{path} must hold a JSON list of prompts")
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("prompt"), str):
            raise ValueError(f"{path}: entry {number} has no text as its prompt")
    return entries


def _settings(
    options: argparse.Namespace,
    gammas: Sequence[int | None],
    model: PreTrainedModel,
    vocabulary: grammarspec.Vocabulary,
) -> list[Setting]:
    """What is compared: at each temperature, first no drafts, then all proposers at all lengths."""
    from grammarspec.decoding import Sampling
    from grammarspec.decoding.alternation import Setting

    named = {
        name: proposers_of(name, model, vocabulary) for name in options.draft or ["forced", "lookup", "forced,lookup"]
    }
    settings = []
    for temperature in options.temperature or [0.0]:
        sampling = Sampling(temperature=temperature, max_tokens=options.max_tokens, seed=1 if temperature else None)
        settings.append(Setting("none", gamma=0, sampling=sampling))
        settings += [
            Setting(name, proposers, gamma=gamma or max((each for each in gammas if each), default=8),
                    adaptive=gamma is None, sampling=sampling)
            for name, proposers in named.items()
            for gamma in gammas
        ]  # fmt: skip
    return settings


def _ablation(options: argparse.Namespace, settings: Sequence[Setting]) -> list[Setting]:
    """The first setting and the last of its temperature, with and without constraints."""
    from dataclasses import replace

    first = settings[0]
    last = [each for each in settings if each.sampling == first.sampling][-1]
    return [replace(each, constrained=constrained) for constrained in (True, False) for each in (first, last)]


def _plain(measured: Sequence[Measurement], one: Measurement) -> Measurement:
    """The measurement without drafts at the temperature of another."""
    return next(each for each in measured if each.setting.sampling == one.setting.sampling)


def _row(one: Measurement, plain: Measurement) -> list[str]:
    """A line of the table."""
    statistics, setting = one.statistics, one.setting
    return [
        f"{setting.sampling.temperature:g}",
        "-" if not setting.proposers else "auto" if setting.adaptive else str(setting.gamma),
        setting.name,
        f"{statistics.acceptance_rate:.2f}" if setting.proposers else "-",
        f"{statistics.tokens_per_pass:.2f}",
        f"{one.tokens_per_second:.1f}",
        str(one.speedup(plain)),
        *(f"{one.phases.get(phase, 0):.2f}" for phase in _PHASES),
    ]


def _ablation_rows(measured: Sequence[Measurement]) -> list[list[str]]:
    """The lines of the table of constraints by drafts."""
    return [
        [
            "yes" if one.setting.constrained else "no",
            one.setting.name,
            f"{one.statistics.tokens_per_pass:.2f}",
            f"{one.tokens_per_second:.1f}",
            *(f"{one.phases.get(phase, 0):.2f}" for phase in _PHASES),
        ]
        for one in measured
    ]


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose columns are as wide as they need."""
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    for line in (head, *rows):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), flush=True)


def _write_csv(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write the table, with the interval of the speed-up in columns of its own."""
    head = [*_COLUMNS, "speed-up low", "speed-up high", *(f"{phase} ms" for phase in _PHASES)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for row in rows:
            interval = re.findall(r"[0-9.]+", row[6])
            writer.writerow([*row[:6], *interval, *row[7:]])


def _plot(path: Path, measured: Sequence[Measurement]) -> None:
    """Draw acceptance and speed over the draft length, a line for each proposer and temperature."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
    lines: dict[str, list[Measurement]] = {}
    for one in measured:
        if one.setting.proposers:
            lines.setdefault(f"{one.setting.name}, T = {one.setting.sampling.temperature:g}", []).append(one)
    for name, line in lines.items():
        fixed = [one for one in line if not one.setting.adaptive]
        gammas = [one.setting.gamma for one in fixed]
        [drawn] = left.plot(gammas, [one.statistics.acceptance_rate for one in fixed], marker="o", label=name)
        right.plot(gammas, [one.tokens_per_second for one in fixed], marker="o", label=name)
        for one in line:
            if one.setting.adaptive:
                right.axhline(one.tokens_per_second, color=drawn.get_color(), linestyle="--")
    for one in measured:
        if not one.setting.proposers:
            right.axhline(one.tokens_per_second, color="black", linestyle=":")
    left.set(xlabel="gamma: draft tokens in a round", ylabel="accepted over drafted tokens", ylim=(0, 1))
    right.set(xlabel="gamma (dashed: chosen in each round; dotted: no drafts)", ylabel="tokens per second")
    left.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _progress(settings: int) -> Any:
    """Says on a terminal what is being measured."""
    if not sys.stderr.isatty():
        return None

    def on_turn(turn: int, setting: Setting) -> None:
        print(f"\rturn {turn}: {setting.name} {setting.gamma}, of {settings} settings   ", end="", file=sys.stderr)

    return on_turn
