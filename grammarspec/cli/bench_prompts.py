"""The prompts for ``grammarspec bench``, with their grammars: those of a file, or a few that are built in.

The file is checked as far as that is possible without a model. Errors name the entry that they are about.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grammarspec
from grammarspec.cli.files import about, file_text

__all__ = ["Entry", "read_prompts"]

_PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}
_ORDER = {
    "type": "object",
    "properties": {
        "customer": {"type": "string"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"product": {"type": "string"}, "quantity": {"type": "integer"}},
                "required": ["product", "quantity"],
                "additionalProperties": False,
            },
            "minItems": 1,
            "maxItems": 4,
        },
        "express": {"type": "boolean"},
    },
    "required": ["customer", "items", "express"],
    "additionalProperties": False,
}
_USUAL: list[dict[str, Any]] = [
    {"prompt": "Alice Moreau is 31 and lives in Lyon. Write what is known of her as JSON.", "schema": _PERSON},
    {"prompt": "Give me an invented person as JSON: name, age, city.", "schema": _PERSON},
    {
        "prompt": "Mr. Okafor orders two lamps, one desk and three chairs, and needs them tomorrow. The order as JSON:",
        "schema": _ORDER,
    },
    {"prompt": "Anna wants a kettle and four cups; there is no hurry. The order as JSON:", "schema": _ORDER},
]


@dataclass(frozen=True, slots=True)
class Entry:
    """A text to be generated.

    Attributes:
        name: the name of the entry in errors.
        prompt: the message of the user.
        grammar: the grammar of the text; ``None``: free text.
    """

    name: str
    prompt: str
    grammar: grammarspec.Grammar[Any] | None


def read_prompts(path: Path | None) -> list[Entry]:
    """The prompts of a file.

    Args:
        path: the file, a JSON list of ``{"prompt": ..., "schema": ...}``; ``None``: the built-in prompts.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has other contents.
        GrammarError: a schema cannot be used.
    """
    entries = _USUAL if path is None else _loaded(path)
    source = "the prompts" if path is None else str(path)
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{source} must hold a JSON list of prompts, of which there is at least one")
    return [_entry(f"{source}: entry {number} (counted from 0)", entry) for number, entry in enumerate(entries)]


def _loaded(path: Path) -> Any:
    """The JSON value in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: its contents are not JSON.
    """
    text = file_text(path)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from None
    except ValueError as error:  # a number of thousands of digits
        raise ValueError(f"{path}: {error}") from None
    except RecursionError:
        raise ValueError(f"{path}: the JSON is too deep") from None


def _entry(name: str, entry: Any) -> Entry:
    """Read an entry of the list.

    Args:
        name: the name of the entry in errors.
        entry: the JSON value of the entry.

    Raises:
        ValueError: the value is malformed.
        GrammarError: its schema cannot be used.
    """
    if not isinstance(entry, dict):
        raise ValueError(f'{name} must be a JSON object, {{"prompt": ..., "schema": ...}}')
    if unknown := sorted(entry.keys() - {"prompt", "schema"}):
        raise ValueError(f"{name} has the unknown key {unknown[0]!r}: it may have a prompt and a schema")
    prompt, schema = entry.get("prompt"), entry.get("schema", True)
    if not isinstance(prompt, str) or not prompt:
        raise ValueError(f"{name} has no text as its prompt")
    if not isinstance(schema, dict | bool):
        raise ValueError(f"{name} has a schema that is neither an object nor true or false")
    if "schema" not in entry:
        return Entry(name, prompt, None)
    with about(name):
        return Entry(name, prompt, grammarspec.json_schema(schema))
