"""The command ``grammarspec bench speculative``: measures what drafts gain with a model and prompts, on this machine.

It reads prompts, with or without schemas, and prints tables of acceptance, tokens per pass and speed, by proposers,
draft length and temperature; on request, it also writes CSV and plots. As measuring takes minutes, arguments are
checked before the model is loaded, as far as possible.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grammarspec
from grammarspec.cli.bench_prompts import Entry, read_prompts
from grammarspec.cli.bench_report import Figures, figures_of, plot, print_constraints, print_figures, write_csv
from grammarspec.cli.drafts import read_drafts
from grammarspec.cli.files import about
from grammarspec.cli.options import Commands, add_command
from grammarspec.errors import needed_by

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from grammarspec.decoding import Sampling
    from grammarspec.decoding.alternation import Case, Setting
    from grammarspec.decoding.proposers import Proposer

__all__ = ["add_parser"]

_EXIT_CODES = """exit codes:
  0    the tables are printed
  2    a file or an option cannot be used
  130  interrupted
  141  nobody reads the output any more"""
_LONGEST = 256  # the greatest length of a draft


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
        help=f"draft lengths to {_LONGEST}, a number or a range; auto: chosen in each round; may be repeated (4; auto)",
    )
    parser.add_argument("--temperature", type=float, action="append", help="may be given several times (0)")
    parser.add_argument("--turns", type=int, default=3, help="how often all of it is measured (%(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="texts that are generated together (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=96, help="of each text (%(default)s)")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="write the table here, too")
    parser.add_argument("--png", metavar="FILE", type=Path, help="draw acceptance and speed over gamma here")


def _speculative(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    gammas = list(dict.fromkeys(gamma for given in options.gamma or ["4", "auto"] for gamma in _gammas(given)))
    for name in ("turns", "batch", "max_tokens"):
        if getattr(options, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(options, name)}")
    entries = read_prompts(options.prompts)
    _check_outputs(options)
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # transformers would draw progress bars into files, too
    from grammarspec.decoding import Sampling
    from grammarspec.decoding.alternation import alternate
    from grammarspec.decoding.targets import runner_for
    from grammarspec.models.loading import load_model, vocabulary_of

    samplings = [
        Sampling(temperature=temperature, max_tokens=options.max_tokens, seed=1 if temperature else None)
        for temperature in dict.fromkeys(options.temperature or [0.0])
    ]
    drafts = {name: read_drafts(name) for name in options.draft or ["forced", "lookup", "forced,lookup"]}
    if not all(drafts.values()):
        raise ValueError("--draft none: texts without drafts are measured in any case")
    model, tokenizer = load_model(options.model)
    runner_for(model, 1)  # refuses a model that cannot take tokens back
    vocabulary = vocabulary_of(model, tokenizer)
    proposers = {name: [make(model, vocabulary) for make in makers] for name, makers in drafts.items()}
    cases = _cases(entries, model, tokenizer, vocabulary, samplings[0])
    settings = _settings(proposers, gammas, samplings)

    def measured(compared: Sequence[Setting]) -> list[Figures]:
        with _progress(options.turns) as show:
            return figures_of(
                alternate(model, vocabulary, cases, compared, turns=options.turns, batch=options.batch, on_turn=show)
            )

    lines = measured(settings)
    with ExitStack() as outputs:  # each output is written even if another one fails
        if options.png is not None:
            outputs.callback(plot, options.png, lines)
        if options.csv is not None:
            outputs.callback(write_csv, options.csv, lines)
        print_figures(lines)
    if any(case.constraint is not None for case in cases):
        print("\nWith and without drafts, with and without the constraints, at the first temperature:\n")
        print_constraints(measured(_ablation(settings)))
    return 0


def _gammas(given: str) -> list[int | None]:
    """The draft lengths that a value of ``--gamma`` stands for; ``None``: a length that is chosen in each round.

    Raises:
        ValueError: the value is malformed, or out of bounds.
    """
    if given == "auto":
        return [None]
    found = re.fullmatch(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?", given)
    if found is None or not 1 <= int(found[1]) <= int(found[2] or found[1]) <= _LONGEST:
        raise ValueError(
            f"--gamma must be a number from 1 to {_LONGEST}, a range such as 2..8, or auto, not {given[:40]!r}"
        )
    return list(range(int(found[1]), int(found[2] or found[1]) + 1))


def _check_outputs(options: argparse.Namespace) -> None:
    """Check that the files of ``--csv`` and ``--png`` can be written, without changing them.

    Raises:
        OSError: one of the files cannot be written.
        ValueError: two of the options name the same file; ``--prompts`` counts as one of them.
        MissingPackage: matplotlib is not installed.
    """
    seen: dict[str, str] = {}
    for name in ("prompts", "csv", "png"):
        path: Path | None = getattr(options, name)
        if path is None:
            continue
        if (other := seen.setdefault(os.path.realpath(path), name)) != name:
            raise ValueError(f"--{other} and --{name} name the same file, {path}")
        if name != "prompts":
            new = not os.path.lexists(path)
            path.open("ab").close()
            if new:
                path.unlink()
    if options.png is not None:
        with needed_by("--png"):
            import matplotlib  # noqa: F401


def _cases(
    entries: Sequence[Entry],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: grammarspec.Vocabulary,
    sampling: Sampling,
) -> list[Case]:
    """The texts to be generated: prompts as tokens of this model, and constraints.

    Raises:
        GrammarspecError: a prompt or a grammar cannot be used with this model; the message names the entry.
    """
    from grammarspec.decoding import Request
    from grammarspec.decoding.alternation import Case
    from grammarspec.decoding.targets import context_length
    from grammarspec.models.loading import encode_prompt

    cases = []
    for entry in entries:
        with about(entry.name):
            prompt = encode_prompt(tokenizer, entry.prompt)
            Request(prompt=prompt, sampling=sampling).budget(context_length(model))
            constraint = None if entry.grammar is None else grammarspec.compile(entry.grammar, vocabulary)
        cases.append(Case(prompt, constraint))
    return cases


def _settings(
    drafts: dict[str, list[Proposer]], gammas: Sequence[int | None], samplings: Sequence[Sampling]
) -> list[Setting]:
    """The settings to compare: for each sampling, first without drafts, then all proposers with all lengths."""
    from grammarspec.decoding.alternation import Setting

    usual = max((gamma for gamma in gammas if gamma), default=8)
    settings = []
    for sampling in samplings:
        settings.append(Setting("none", gamma=0, sampling=sampling))
        settings += [
            Setting(name, proposers, gamma or usual, adaptive=gamma is None, sampling=sampling)
            for name, proposers in drafts.items()
            for gamma in gammas
        ]
    return settings


def _ablation(settings: Sequence[Setting]) -> list[Setting]:
    """The first setting, and the last one with the same sampling; each with and without constraints."""
    from dataclasses import replace

    first = settings[0]
    last = [each for each in settings if each.sampling == first.sampling][-1]
    return [replace(each, constrained=constrained) for constrained in (True, False) for each in (first, last)]


@contextmanager
def _progress(turns: int) -> Iterator[Callable[[int, Setting], None] | None]:
    """Show on a terminal what is being measured, and remove that at the end of the block.

    Args:
        turns: how often everything is measured.

    Yields:
        a function to be called before each setting; ``None`` if standard error is not a terminal.
    """

    def show(turn: int, setting: Setting) -> None:
        length = "" if not setting.proposers else " auto" if setting.adaptive else f" {setting.gamma}"
        what = f"turn {turn} of {turns}" if turn else "warming up"
        print(f"\r\x1b[K{what}: {setting.name}{length}", end="", file=sys.stderr, flush=True)

    if not sys.stderr.isatty():
        yield None
        return
    try:
        yield show
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
