"""The command ``grammarspec check``: reports, as text or JSON, on a JSON Schema or a ``.lark`` grammar.

For a schema, the report says of each keyword whether it is enforced, narrowed, an annotation or refused; for a grammar,
what is refused, and what may be a mistake.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import grammarspec
from grammarspec.cli.files import lark_file, registry, schema_text
from grammarspec.cli.options import (
    Commands,
    add_command,
    add_lark_options,
    add_output,
    add_schema_options,
    lark_options,
)
from grammarspec.frontends.lark.shipped import shipped
from grammarspec.positions import excerpt, locate

__all__ = ["add_parser"]

ACCEPTED, REFUSED = 0, 1
_EXIT_CODES = """exit codes:
  0    the schema is taken: everything is enforced, narrowed, an annotation, or (--unsupported warn) left out;
       the grammar is taken: nothing is refused
  1    something is refused, malformed or satisfied by no value; with --openai-strict: there are problems
  2    the file or an option cannot be used, or a schema's file is not JSON"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    check = add_command(
        commands,
        "check",
        _check,
        summary="say what becomes of each keyword of a JSON Schema, or what is wrong with a grammar",
        description="Say of each keyword of a JSON Schema whether it is enforced, narrowed, an annotation or refused; "
        "of a .lark grammar, what is refused in it, and what may be a mistake.",
        exit_codes=_EXIT_CODES,
    )
    check.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="a JSON Schema; or a .lark file, or the name of a shipped grammar (json, sql, ...); - is standard input",
    )
    check.add_argument("--lark", action="store_true", help="the file is a grammar in lark's syntax, whatever its name")
    add_output(check)
    grammar = check.add_argument_group("options of grammars", "Those of lark in Python.")
    add_lark_options(grammar)
    options = check.add_argument_group("options of schemas", "Those of json_schema in Python.")
    options.add_argument(
        "--openai-strict", action="store_true", help="say instead whether OpenAI's structured outputs would take it"
    )
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
    check.set_defaults(of_grammars=grammar._group_actions, of_schemas=options._group_actions)


def _check(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    is_grammar = options.lark or options.file.suffix == ".lark" or _is_shipped(options.file)
    others = options.of_schemas if is_grammar else options.of_grammars
    given = [action.option_strings[0] for action in others if getattr(options, action.dest) != action.default]
    if given:
        kind = "a .lark grammar" if is_grammar else "a JSON Schema"
        raise ValueError(f"{options.file} is {kind}, which has no options {', '.join(given)}")
    return _grammar(options) if is_grammar else _schema(options)


def _is_shipped(path: Path) -> bool:
    """Whether a path is the name of a shipped grammar, and not of a file."""
    return path.name in shipped() and str(path) == path.name and not path.is_file()


def _grammar(options: argparse.Namespace) -> int:
    """Print the report on a grammar; returns the exit code."""
    with lark_file(options.file) as file:
        report = grammarspec.check_lark(file, **lark_options(options))
    if options.output == "json":
        print(json.dumps(report.as_dict(), ensure_ascii=False))
    else:
        print(report)
        for finding in report.of_kind("refused"):
            if finding.line is not None:
                message = " ".join(finding.message.split())
                print(f"\n{options.file}:{finding.line}:{finding.column}: {message}\n{finding.excerpt}")
    return ACCEPTED if report.ok else REFUSED


def _schema(options: argparse.Namespace) -> int:
    """Print the report on the keywords of a schema; returns the exit code."""
    with schema_text(options.file) as text:
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
            _show(options.file, text, entry.pointer, entry.detail)
    return ACCEPTED if report.ok else REFUSED


def _openai(options: argparse.Namespace, text: str) -> int:
    """Print what OpenAI's structured outputs would refuse in the schema; returns the exit code."""
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
            _show(options.file, text, problem.pointer, problem.message)
    return REFUSED if problems else ACCEPTED


def _add_positions(entries: list[dict[str, Any]], text: str) -> None:
    """Add the line and column in the file to each entry that has a JSON pointer to a place in it."""
    for entry in entries:
        position = locate(text, entry["pointer"])
        if position is not None:
            entry |= {"line": position.line, "column": position.column}


def _show(path: Path, text: str, pointer: str, message: str) -> None:
    """Print an error with its line of the file, if the JSON pointer leads to a place in the file."""
    position = locate(text, pointer)
    if position is not None:
        print(f"\n{path}:{position.line}:{position.column}: {' '.join(message.split())}\n{excerpt(text, position)}")
