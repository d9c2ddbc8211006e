"""Files that the commands read: schemas, grammars, and what references name; errors get their place in the file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import grammarspec
from grammarspec.errors import needed_by
from grammarspec.positions import Position, excerpt, locate

if TYPE_CHECKING:
    import referencing

__all__ = ["STDIN", "about", "file_text", "lark_file", "registry", "schema_text"]

STDIN = "-"
"""What stands for standard input in place of a file, or of the prompt."""


@contextmanager
def about(name: str) -> Iterator[None]:
    """Errors of grammarspec within the block say what they are about, such as an entry of a file.

    Raises:
        GrammarspecError: the error of the block, with the name before its message.
    """
    try:
        yield
    except grammarspec.GrammarspecError as error:
        error.message = f"{name}: {error.message}"
        raise


def file_text(path: Path) -> str:
    """The text of a file, or of standard input.

    Args:
        path: the file; :data:`STDIN` for standard input.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not UTF-8.
    """
    data = sys.stdin.buffer.read() if str(path) == STDIN else path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8") from None


def registry(paths: list[Path] | None, schema: str) -> referencing.Registry[Any] | None:
    """The JSON documents of these files and folders, by their ``$id`` and by their names beside the schema.

    Raises:
        OSError: one cannot be read.
        ValueError: one is not JSON.
        MissingPackage: the package ``referencing`` is missing.
    """
    if not paths:
        return None
    with needed_by("--refs"):
        import referencing
        from referencing.jsonschema import DRAFT202012

    base = _identifier(schema)
    found = referencing.Registry[Any]()
    for path in paths:
        for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
            try:
                contents = json.loads(file.read_bytes())
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from None
            document = referencing.Resource.from_contents(contents, default_specification=DRAFT202012)
            name = file.relative_to(path if path.is_dir() else path.parent).as_posix()
            for uri in (name, urljoin(base, name), document.id()):
                if uri is not None:
                    found = found.with_resource(uri, document)
    return found


def _identifier(schema: str) -> str:
    """The URI that references of a schema are relative to."""
    try:
        contents = json.loads(schema)
    except ValueError:  # json_schema raises this error with its place
        return ""
    own = contents.get("$id", contents.get("id", "")) if isinstance(contents, dict) else ""
    return own if isinstance(own, str) else ""


@contextmanager
def schema_text(path: Path) -> Iterator[str]:
    """The text of a schema's file (:func:`file_text`); errors about it get a note with their place in it.

    Raises:
        OSError, ValueError: as :func:`file_text`.
    """
    text = file_text(path)
    try:
        yield text
    except grammarspec.GrammarError as error:
        position = _position(error.where, text)
        if position is not None:
            error.add_note(f"{path}:{position.line}:{position.column}:\n{excerpt(text, position)}")
        raise


@contextmanager
def lark_file(path: Path) -> Iterator[str | Path]:
    """A ``.lark`` grammar as the functions of grammarspec take it: a path, or the text that is standard input.

    Errors about it get a note with their place in it.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not UTF-8.
    """
    try:
        yield file_text(path) if str(path) == STDIN else path
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8") from None
    except grammarspec.GrammarError as error:
        if found := re.match(r"line (\d+), column (\d+)\n", error.where):
            error.add_note(f"{path}:{found[1]}:{found[2]}:\n{error.where[found.end() :]}")
        raise


def _position(where: str, text: str) -> Position | None:
    """Where in a schema's text an error is, by its ``where``: a JSON pointer, or line and column."""
    if not where.startswith("#"):
        numbers = re.fullmatch(r"line (\d+), column (\d+)", where)
        if numbers is None:
            pointer = where.partition("\n  at #")[2]
            return locate(text, "#" + pointer) if pointer else None
        lines = text.split("\n")
        start = sum(len(line) + 1 for line in lines[: int(numbers[1]) - 1]) + int(numbers[2]) - 1
        return Position.of(text, start, start + 1)
    return locate(text, where)
