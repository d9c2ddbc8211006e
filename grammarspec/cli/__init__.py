"""The ``grammarspec`` command: ``generate`` and ``check``, each in a file of its own."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

import grammarspec
from grammarspec.cli import check, generate

__all__ = ["main"]

REFUSED, INTERRUPTED, UNREAD = 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. ``sys.argv`` is read if no arguments are given."""
    options = _parser().parse_args(arguments)
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        code = run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # What is still to be written must not be tried again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except (grammarspec.GrammarspecError, OSError, ImportError, ValueError) as error:
        print(f"grammarspec: error: {_one_line(error)}", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(note, file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("\ngrammarspec: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="grammarspec", description="Model output that conforms to a grammar.")
    parser.add_argument("--version", action="version", version=f"grammarspec {grammarspec.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    generate.add_parser(commands)
    check.add_parser(commands)
    return parser


def _one_line(error: Exception) -> str:
    """What is wrong, where, what to do about it, and the error's code, on one line."""
    if isinstance(error, grammarspec.GrammarspecError):
        # The place in a text goes on with the text itself and a caret, indented.
        place = " ".join(line.strip() for line in error.where.splitlines() if not line.startswith("    "))
        hint = f"; hint: {error.hint}" if error.hint else ""
        return " ".join(error.message.split()) + (f" (at {place})" if place else "") + f"{hint} [{error.code}]"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    return " ".join(str(error).split())
