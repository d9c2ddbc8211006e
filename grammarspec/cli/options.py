"""Functions that the parsers of all commands share: adding a command, and options that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

__all__ = [
    "Commands",
    "add_command",
    "add_lark_file",
    "add_lark_options",
    "add_output",
    "add_schema_options",
    "lark_options",
]

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The object to which commands are added: what ``add_subparsers`` of :mod:`argparse` returns."""


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    summary: str,
    description: str,
    exit_codes: str,
) -> argparse.ArgumentParser:
    """Add a command to the command line.

    Args:
        commands: the object to which it is added.
        name: the name of the command.
        run: runs the command with the parsed options, and returns the exit code. It is the attribute ``run`` of these.
        summary: what the command does, for the list of commands.
        description: what the command does, for its own help.
        exit_codes: the end of its help.

    Returns:
        the parser of the command, to which options can be added.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=exit_codes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_schema_options(options: argparse._ActionsContainer) -> None:
    """Add ``--refs``, whose files :func:`~.files.registry` reads, and ``--whitespace``."""
    options.add_argument(
        "--refs",
        metavar="PATH",
        type=Path,
        action="append",
        help="a file that $ref may name by its $id or as one beside the schema, or a folder of such; may be repeated",
    )
    options.add_argument(
        "--whitespace",
        choices=("flexible", "compact", "pretty"),
        default="flexible",
        help="between JSON tokens; pretty: indented by 2 (%(default)s)",
    )


def add_lark_file(options: argparse._ActionsContainer) -> None:
    """Add the file of a ``.lark`` grammar as the first argument, and the options of such grammars."""
    options.add_argument(
        "grammar",
        metavar="FILE",
        type=Path,
        help="a grammar in lark's syntax, or the name of a shipped one (json, sql, ...); - is standard input",
    )
    add_lark_options(options)


def add_lark_options(options: argparse._ActionsContainer) -> None:
    """Add the options of ``.lark`` grammars, which :func:`lark_options` reads."""
    options.add_argument("--parser", choices=("earley", "lalr"), help="lark's parser (earley; a shipped grammar's own)")
    lexers = ("dynamic", "dynamic_complete", "contextual", "basic")
    options.add_argument("--lexer", choices=lexers, help="lark's lexer (dynamic; contextual for lalr)")
    options.add_argument("--start", metavar="RULE", action="append", help="where texts start (start); may be repeated")
    options.add_argument(
        "--import-path", metavar="FOLDER", action="append", help="with grammars that it may import; may be repeated"
    )
    options.add_argument("--strict", action="store_true", help="lark refuses terminals that collide")


def lark_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that :func:`add_lark_options` adds, as far as they were given, for :func:`grammarspec.lark`."""
    named = {
        "parser": options.parser,
        "lexer": options.lexer,
        "start": options.start,
        "import_paths": options.import_path,
        "strict": options.strict or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def add_output(options: argparse._ActionsContainer) -> None:
    """Add ``--output``: whether a command prints text or JSON."""
    options.add_argument("--output", choices=("text", "json"), default="text", help="(%(default)s)")
