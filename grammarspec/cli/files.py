"""Reads the files of commands: schemas, grammars, and documents that ``$ref`` names. Errors get their place in them."""

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
"""The argument that stands for standard input, in place of a file or of the prompt."""


@contextmanager
def about(name: str) -> Iterator[None]:
    """Add a name, such as that of an entry of a file, to errors of grammarspec within the block.

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
        ValueError: its contents are not UTF-8.
    """
    data = sys.stdin.buffer.read() if str(path) == STDIN else path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8") from None


def registry(paths: list[Path] | None, schema: str) -> referencing.Registry[Any] | None:
    """The JSON documents in these files and folders, by their ``$id``, and by their names relative to the schema.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not JSON.
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
    """The URI to which the references of a schema are relative."""
    try:
        contents = json.loads(schema)
    except ValueError:  # json_schema will raise this error, with its place
        return ""
    own = contents.get("$id", contents.get("id", "")) if isinstance(contents, dict) else ""
    return own if isinstance(own, str) else ""


@contextmanager
def schema_text(path: Path) -> Iterator[str]:
    """The text of a schema's file (:func:`file_text`); errors within the block get a note with their place in the file.

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
    """A ``.lark`` grammar, for the functions of grammarspec: the path of its file, or the text from standard input.

    Errors within the block get a note with their place in the file.

    Raises:
        OSError: the file cannot be read.
        ValueError: its contents are not UTF-8.
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
    """The position of an error in a schema's text, by its ``where``: a JSON pointer, or a line and a column."""
    if not where.startswith("#"):
        numbers = re.fullmatch(r"line (\d+), column (\d+)", where)
        if numbers is None:
            pointer = where.partition("\n  at #")[2]
            return locate(text, "#" + pointer) if pointer else None
        lines = text.split("\n")
        start = sum(len(line) + 1 for line in lines[: int(numbers[1]) - 1]) + int(numbers[2]) - 1
        return Position.of(text, start, start + 1)
    return locate(text, where)
