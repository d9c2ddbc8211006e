"""The ``grammarspec`` command line.

Each command is a module with a function ``add_parser``: :mod:`.generate`, :mod:`.serve`, :mod:`.check`, :mod:`.bench`,
and, for ``.lark`` grammars, :mod:`.sample`, :mod:`.explain` and :mod:`.draw`. This module parses the arguments, runs
the command, and prints its errors as one line on standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

import grammarspec

__all__ = ["main"]

UNUSABLE, INTERRUPTED, UNREAD = 2, 130, 141
"""Exit codes: an argument or a file cannot be used; interrupted; the reader of the output has closed it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the arguments without the name of the program; by default those in ``sys.argv``.

    Returns:
        The exit code.
    """
    try:
        options = _parser().parse_args(arguments)
        run: Callable[[argparse.Namespace], int] = options.run
        code = run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Python must not try again to write the rest of the output when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except (grammarspec.GrammarspecError, OSError, ImportError, ValueError) as error:
        print(f"grammarspec: error: {_one_line(error)}", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(note, file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        print("\ngrammarspec: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    # Imported here, where an interrupt is caught, as these imports take most of the time to start.
    from grammarspec.cli import bench, check, draw, explain, generate, sample, serve

    parser = argparse.ArgumentParser(prog="grammarspec", description="Model output that conforms to a grammar.")
    parser.add_argument("--version", action="version", version=f"grammarspec {grammarspec.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    generate.add_parser(commands)
    for command in (serve, check, sample, explain, draw, bench):
        command.add_parser(commands)
    return parser


def _one_line(error: Exception) -> str:
    """An error as one line: what is wrong, where, what to do about it, and the code."""
    if isinstance(error, grammarspec.GrammarspecError):
        # Of the place, only the line and the column are kept. The excerpt below them is indented.
        place = " ".join(line.strip() for line in error.where.splitlines() if not line.startswith("    "))
        hint = f"; hint: {error.hint}" if error.hint else ""
        return " ".join(error.message.split()) + (f" (at {place})" if place else "") + f"{hint} [{error.code}]"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    return " ".join(str(error).split())
