"""The command ``grammarspec explain``: whether a text belongs to the language of a ``.lark`` grammar; if not, why."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import grammarspec
from grammarspec.cli.files import STDIN, file_text, lark_file
from grammarspec.cli.options import Commands, add_command, add_lark_file, add_output, lark_options

__all__ = ["add_parser"]

BELONGS, FAILS = 0, 1
_EXIT_CODES = """exit codes:
  0    the text belongs to the grammar
  1    it does not
  2    the grammar, a file or an option cannot be used"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    explain = add_command(
        commands,
        "explain",
        _explain,
        summary="say where a text leaves a grammar",
        description="Say whether a text belongs to a .lark grammar; if not, where it leaves it, and what might stand "
        "there.",
        exit_codes=_EXIT_CODES,
    )
    add_lark_file(explain)
    explain.add_argument("text", metavar="TEXT", help="the text; - is standard input, with all of its line ends")
    add_output(explain)


def _explain(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if str(options.grammar) == options.text == STDIN:
        raise ValueError("standard input can stand for one thing only: the grammar or the text")
    text = file_text(Path(STDIN)) if options.text == STDIN else options.text
    with lark_file(options.grammar) as file:
        found = grammarspec.explain_lark(file, text, **lark_options(options))
    print(json.dumps(found.as_dict(), ensure_ascii=False) if options.output == "json" else found)
    return BELONGS if found.ok else FAILS
