"""What the parsers of the commands share: how a command is added, and the options that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

__all__ = ["Commands", "add_command", "add_output", "add_schema_options"]

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


def add_output(options: argparse._ActionsContainer) -> None:
    """Add ``--output``, the form of what a command prints."""
    options.add_argument("--output", choices=("text", "json"), default="text", help="(%(default)s)")
