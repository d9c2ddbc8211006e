"""The command ``grammarspec check``: what becomes of each keyword of a schema, with places in its file.

The file of a schema comes in; a report goes out, as text or as JSON.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import grammarspec
from grammarspec.cli.files import registry, schema_text
from grammarspec.cli.options import Commands, add_command, add_output, add_schema_options
from grammarspec.positions import excerpt, locate

__all__ = ["add_parser"]

ACCEPTED, REFUSED = 0, 1
_EXIT_CODES = """exit codes:
  0    the schema is taken: everything is enforced, narrowed, an annotation, or (--unsupported warn) left out
  1    something is refused, malformed or satisfied by no value; with --openai-strict: there are problems
  2    the file or an option cannot be used, or the file is not JSON"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    check = add_command(
        commands,
        "check",
        _check,
        summary="say what becomes of each keyword of a JSON Schema",
        description="Say of each keyword of a JSON Schema whether it is enforced, narrowed, an annotation or refused.",
        exit_codes=_EXIT_CODES,
    )
    check.add_argument("schema", metavar="FILE", type=Path, help="a JSON Schema; - is standard input")
    add_output(check)
    check.add_argument(
        "--openai-strict", action="store_true", help="say instead whether OpenAI's structured outputs would take it"
    )
    options = check.add_argument_group("options", "Those of json_schema in Python.")
    add_schema_options(options)
    dialects = ("draft2020-12", "draft2019-09", "draft7", "draft6", "draft4")
    options.add_argument("--dialect", choices=dialects, help="what $schema says, or the latest")
    options.add_argument("--format", choices=("assert", "annotation"), default="assert", help="(%(default)s)")
    options.add_argument("--property-order", choices=("declared", "any"), default="declared", help="(%(default)s)")
    options.add_argument(
        "--no-additional-properties", action="store_true", help="objects with properties have no others by default"
    )
    options.add_argument("--ensure-ascii", action="store_true", help="escape characters beyond ASCII")
    options.add_argument("--escapes", choices=("any", "minimal"), default="any", help="(%(default)s)")
    options.add_argument("--numbers", choices=("any", "plain"), default="any", help="(%(default)s)")
    options.add_argument(
        "--unsupported", choices=("error", "warn"), default="error", help="warn: leave it out (%(default)s)"
    )


def _check(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    with schema_text(options.schema) as text:
        if options.openai_strict:
            return _openai(options, text)
        report = grammarspec.check(
            text,
            dialect=options.dialect,
            registry=registry(options.refs, text),
            format=options.format,
            property_order=options.property_order,
            additional_properties=not options.no_additional_properties,
            whitespace=options.whitespace,
            ensure_ascii=options.ensure_ascii,
            escapes=options.escapes,
            numbers=options.numbers,
            unsupported=options.unsupported,
        )
    if options.output == "json":
        found = report.as_dict()
        _add_positions(found["entries"], text)
        print(json.dumps(found, ensure_ascii=False))
    else:
        print(report)
        for entry in report.of("refused"):
            _show(options.schema, text, entry.pointer, entry.detail)
    return ACCEPTED if report.ok else REFUSED


def _openai(options: argparse.Namespace, text: str) -> int:
    """Print what OpenAI's structured outputs would refuse of the schema; returns the exit code."""
    problems = grammarspec.check_openai_strict(text)
    if options.output == "json":
        found = [{"pointer": p.pointer, "message": p.message, "hint": p.hint} for p in problems]
        _add_positions(found, text)
        print(json.dumps({"ok": not problems, "problems": found}, ensure_ascii=False))
    else:
        for problem in problems:
            print(problem)
        print(f"{len(problems)} problems" if problems else "OpenAI's structured outputs would take the schema")
        for problem in problems:
            _show(options.schema, text, problem.pointer, problem.message)
    return REFUSED if problems else ACCEPTED


def _add_positions(entries: list[dict[str, Any]], text: str) -> None:
    """Add the line and column in the file to each entry that has a JSON pointer to a place in it."""
    for entry in entries:
        position = locate(text, entry["pointer"])
        if position is not None:
            entry |= {"line": position.line, "column": position.column}


def _show(path: Path, text: str, pointer: str, message: str) -> None:
    """Print what is wrong at a place of the file, and its line, if the pointer leads to one."""
    position = locate(text, pointer)
    if position is not None:
        print(f"\n{path}:{position.line}:{position.column}: {' '.join(message.split())}\n{excerpt(text, position)}")
