"""What the parsers of the commands share: how a command is added, and the options that several of them have."""

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
"""What the parser of the command line adds its commands to."""


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
        commands: what it is added to.
        name: the command.
        run: runs the command with its parsed options, which have it as ``run``, and returns the exit code.
        summary: what the command does, in the list of commands.
        description: the same, in its own help.
        exit_codes: the end of its help.

    Returns:
        the command's parser, without any options yet.
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
    """Add ``--refs``, which :func:`~.files.registry` reads, and ``--whitespace``."""
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
    """Add a grammar's file as the first argument, and its options."""
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
    """What :func:`add_lark_options` has added and was given, as options of :func:`grammarspec.lark`."""
    named = {
        "parser": options.parser,
        "lexer": options.lexer,
        "start": options.start,
        "import_paths": options.import_path,
        "strict": options.strict or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def add_output(options: argparse._ActionsContainer) -> None:
    """Add ``--output``, the form of what a command prints."""
    options.add_argument("--output", choices=("text", "json"), default="text", help="(%(default)s)")
