"""The command ``grammarspec draw``: railroad diagrams of a ``.lark`` grammar, as SVG or HTML."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

import grammarspec
from grammarspec.cli.files import lark_file
from grammarspec.cli.options import Commands, add_command, add_lark_file, lark_options

__all__ = ["add_parser"]

_EXIT_CODES = """exit codes:
  0    the diagrams are drawn
  2    the grammar, a file or an option cannot be used"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    draw = add_command(
        commands,
        "draw",
        _draw,
        summary="draw railroad diagrams of a grammar",
        description="Draw railroad diagrams of all rules of a .lark grammar.",
        exit_codes=_EXIT_CODES,
    )
    add_lark_file(draw)
    draw.add_argument(
        "-o", "--out", metavar="FILE", type=Path, help="what is written: .svg or .html; without it, an SVG is printed"
    )


def _draw(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    format = _format(options.out)
    with lark_file(options.grammar) as file:
        drawn = grammarspec.draw_lark(file, format=format, **lark_options(options))
    if options.out is None:
        print(drawn, end="")
    else:
        options.out.write_text(drawn, encoding="utf-8")
    return 0


def _format(out: Path | None) -> Literal["svg", "html"]:
    """The format that the name of a file stands for."""
    match out.suffix if out is not None else ".svg":
        case ".svg":
            return "svg"
        case ".html":
            return "html"
    raise ValueError(f"{out}: diagrams are written to files that end in .svg or .html")
