"""The command ``grammarspec sample``: random texts of a ``.lark`` grammar, one after the other."""

from __future__ import annotations

import argparse
import json

import grammarspec
from grammarspec.cli.files import lark_file
from grammarspec.cli.options import Commands, add_command, add_lark_file, add_output, lark_options

__all__ = ["add_parser"]

_EXIT_CODES = """exit codes:
  0    there are the texts
  2    the grammar, a file or an option cannot be used"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    sample = add_command(
        commands,
        "sample",
        _sample,
        summary="print random texts of a grammar",
        description="Print random texts of a .lark grammar, each on a line of its own; with --output json, each as a "
        "string of JSON, so that texts of several lines can be told apart.",
        exit_codes=_EXIT_CODES,
    )
    add_lark_file(sample)
    sample.add_argument("-n", "--count", type=int, default=10, metavar="N", help="how many (%(default)s)")
    sample.add_argument("--seed", type=int, metavar="N", help="for the same texts each time; without it, they differ")
    sample.add_argument(
        "--longest",
        type=int,
        default=200,
        metavar="BYTES",
        help="after so many, a text is ended in the shortest way (%(default)s)",
    )
    add_output(sample)


def _sample(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if options.count < 0 or options.longest < 0:
        raise ValueError("--count and --longest take numbers that are not negative")
    with lark_file(options.grammar) as file:
        named = lark_options(options)
        grammar = grammarspec.lark(file, **named) if isinstance(file, str) else grammarspec.load(file, **named)
        for number in range(options.count):
            text = grammar.sample(None if options.seed is None else options.seed + number, max_bytes=options.longest)
            print(json.dumps(text, ensure_ascii=False) if options.output == "json" else text)
    return 0
