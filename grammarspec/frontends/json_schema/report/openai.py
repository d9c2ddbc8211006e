"""Checks a schema against the rules of the strict mode of OpenAI's structured outputs, as they are published.

The rules are those of OpenAI's guide "Structured model outputs", section "Supported schemas", as of 2026
(https://developers.openai.com/api/docs/guides/structured-outputs). Where it is silent, the answers of their API
decide: ``default``, ``minLength`` and ``maxLength`` are refused (openai/openai-node, pull request 1988), and so are
``propertyNames`` ("is not permitted"), schemas without a type, arrays without ``items``, and keywords beside ``$ref``,
which OpenAI's own libraries take apart before they send a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from grammarspec.errors import GrammarError
from grammarspec.frontends.json_schema.document.loading import load
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.tables import read
from grammarspec.frontends.json_schema.relaxing.graph import Graph
from grammarspec.positions import pointer_token

__all__ = ["Problem", "check_openai_strict"]

MAX_DEPTH: Final = 10
"""The most objects nested inside each other, the root included."""
MAX_PROPERTIES: Final = 5_000
MAX_ENUM: Final = 1_000
"""The most values of all ``enum`` together."""
MAX_CHARACTERS: Final = 120_000
"""The most characters of names of properties and definitions and of strings in ``enum`` and ``const``, together."""
MAX_LARGE_ENUM: Final = 250, 15_000
"""An ``enum`` with more values than the first number may have at most as many characters as the second."""
_MAX_LEVELS: Final = 200  # of nested subschemas of any kind; deeper ones are not checked

_DEFINITIONS: Final = ("$defs", "definitions")
_TYPES: Final = ("string", "number", "boolean", "integer", "object", "array", "null")
_FORMATS: Final = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
_KEYWORDS: Final = frozenset(
    ("$schema", "$ref", "$defs", "definitions", "title", "description", "type", "enum", "const", "anyOf",
     "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "pattern", "format",
     "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
)  # fmt: skip
_HINTS: Final = {
    "oneOf": "use anyOf",
    "allOf": "write the subschemas as one",
    "default": "say it in the description",
    "minLength": "use pattern",
    "maxLength": "use pattern",
    "patternProperties": "use an array of objects with a name and a value",
    "propertyNames": "use an array of objects with a name and a value",
    "prefixItems": "use an object with a property for each item",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason why the strict mode refuses a schema.

    Attributes:
        pointer: the JSON pointer of the keyword or subschema.
        message: what is wrong.
        hint: what to do about it, or ``""``.
    """

    pointer: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}" + (f" (hint: {self.hint})" if self.hint else "")


def check_openai_strict(schema: Mapping[str, Any] | bool | str | bytes) -> list[Problem]:
    """The reasons why OpenAI's structured outputs (``strict: true``) refuse a schema; empty if they accept it.

    The rules, in short: the root is an object and no ``anyOf``; every object has ``additionalProperties: false`` and
    requires all its properties; there are only the keywords, types and formats of the guide; at most 10 objects inside
    one another, 5,000 properties, 1,000 values of ``enum``, 120,000 characters of names and constants. ``$ref`` within
    the document and recursion are allowed; the depth is that of the schema as written. The guide does not say how
    levels are counted; here the root is the first. Source: OpenAI's guide "Structured model outputs", section
    "Supported schemas", https://developers.openai.com/api/docs/guides/structured-outputs (read in 2026).

    Args:
        schema: as in :func:`grammarspec.json_schema`.

    Raises:
        GrammarSyntaxError: the text is not JSON.
        LimitExceeded: it nests too deeply to be read.
    """
    root = load(schema)
    if not isinstance(root, dict):
        return [Problem("#", "the root must be an object schema", 'begin with "type": "object"')]
    graph = Graph(read(root, "draft2020-12", None, dynamic=False))
    problems = list(_of_root(root))
    levels: dict[Subschema, int] = {}
    for place in graph.edges:  # a subschema comes after those that contain it
        level = levels[place] = 0 if place.parent is None else levels[place.parent] + 1
        if level > _MAX_LEVELS:
            problems.append(Problem("#", f"more than {_MAX_LEVELS} levels of subschemas", "nest less deeply"))
            break
        problems += _of_keywords(place)
        problems += _of_types(place)
        problems += _of_reference(place, graph)
    problems += _of_sizes(graph)
    return problems


def _of_root(root: dict[str, Any]) -> Iterator[Problem]:
    if root.get("type") != "object":
        pointer = "#/type" if "type" in root else "#"
        yield Problem(pointer, "the root must be an object", 'put the schema into a property of {"type": "object"}')
    if "anyOf" in root:
        yield Problem("#/anyOf", "the root must not be anyOf", "put it into a property of an object")


def _of_keywords(place: Subschema) -> Iterator[Problem]:
    """The problems of single keywords: keywords that are not supported, and values that are not allowed."""
    schema = place.keywords
    for keyword, value in schema.items():
        pointer = f"{place.pointer}/{pointer_token(keyword)}"
        if keyword not in _KEYWORDS:
            yield Problem(pointer, f"the keyword {keyword!r:.60} is not supported", _HINTS.get(keyword, "leave it out"))
        elif keyword == "format" and value not in _FORMATS:
            yield Problem(pointer, f"the format {value!r:.60} is not supported", f"one of {', '.join(_FORMATS)}")
        elif keyword == "items" and not isinstance(value, dict):
            yield Problem(pointer, "items must be a schema with a type")
        elif keyword in ("properties", *_DEFINITIONS) and isinstance(value, dict):
            for name, part in value.items():
                if not isinstance(part, dict):
                    yield Problem(f"{pointer}/{pointer_token(name)}", "a subschema must be an object with a type")


def _of_types(place: Subschema) -> Iterator[Problem]:
    """The problems of a subschema's types, and of what objects and arrays must have."""
    schema, pointer = place.keywords, place.pointer
    if not {"type", "anyOf", "$ref", "enum", "const", "oneOf", "allOf"} & schema.keys():
        if place.parent is not None:
            yield Problem(pointer, "a subschema must have a type", f"one of {', '.join(_TYPES)}")
        return
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    for name in types:
        if name not in _TYPES:
            yield Problem(f"{pointer}/type", f"the type {name!r:.60} is not supported", f"one of {', '.join(_TYPES)}")
    if "object" in types or "properties" in schema:
        yield from _of_object(schema, pointer)
    if "array" in types and "items" not in schema:
        yield Problem(pointer, "an array must have items", 'add "items" with the schema of an item')


def _of_object(schema: Mapping[str, Any], pointer: str) -> Iterator[Problem]:
    if schema.get("additionalProperties") is not False:
        where = f"{pointer}/additionalProperties" if "additionalProperties" in schema else pointer
        yield Problem(where, "additionalProperties must be false", 'add "additionalProperties": false')
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return
    listed = {name for name in required if isinstance(name, str)}
    where = f"{pointer}/required" if "required" in schema else pointer
    missing = [name for name in properties if name not in listed]
    if missing:
        names = ", ".join(repr(name) for name in missing[:5]) + (", …" if len(missing) > 5 else "")
        hint = 'list it in "required"; let it be null where it is optional: "type": ["string", "null"]'
        yield Problem(where, f"all properties must be required, but not {names}", hint)
    for name in sorted(listed - properties.keys()):
        yield Problem(where, f"required names {name!r:.60}, which is no property", "declare it in properties")


def _of_reference(place: Subschema, graph: Graph) -> Iterator[Problem]:
    schema = place.keywords
    if "$ref" not in schema:
        return
    pointer = f"{place.pointer}/$ref"
    if not isinstance(schema["$ref"], str) or not schema["$ref"].startswith("#"):
        yield Problem(pointer, "$ref must point into the schema itself", "copy what it points to into $defs")
        return
    try:
        graph.document.resolve(place, schema["$ref"])
    except GrammarError as error:
        yield Problem(pointer, error.message)
    others = [str(keyword) for keyword in schema if keyword not in ("$ref", *_DEFINITIONS)]
    if others:
        yield Problem(pointer, f"beside $ref there must be no other keywords: {', '.join(others):.60}", "remove them")


def _of_sizes(graph: Graph) -> Iterator[Problem]:
    properties = values = characters = 0
    depths: dict[Subschema, int] = {}
    too_deep: Subschema | None = None
    for place in graph.edges:  # a subschema comes after those that contain it
        schema = place.keywords
        declared, named = _names(schema)
        properties += declared
        characters += named
        enum = schema.get("enum")
        constants = enum if isinstance(enum, list) else []
        texts = sum(len(constant) for constant in constants if isinstance(constant, str))
        values += len(constants)
        characters += texts + (len(schema["const"]) if isinstance(schema.get("const"), str) else 0)
        if len(constants) > MAX_LARGE_ENUM[0] and texts > MAX_LARGE_ENUM[1]:
            message = f"an enum of more than {MAX_LARGE_ENUM[0]} values has {texts} characters (at most "
            yield Problem(f"{place.pointer}/enum", f"{message}{MAX_LARGE_ENUM[1]})", "use fewer or shorter values")
        outside = 0 if place.parent is None else depths[place.parent]
        depth = depths[place] = outside + ("properties" in schema or schema.get("type") == "object")
        if depth > MAX_DEPTH and too_deep is None:
            too_deep = place
    if too_deep is not None:
        yield Problem(too_deep.pointer, f"more than {MAX_DEPTH} levels of nested objects", "nest less deeply")
    if properties > MAX_PROPERTIES:
        yield Problem("#", f"{properties} properties (at most {MAX_PROPERTIES})", "declare fewer")
    if values > MAX_ENUM:
        yield Problem("#", f"{values} values of enum (at most {MAX_ENUM})", "use fewer, or a string instead")
    if characters > MAX_CHARACTERS:
        message = f"{characters} characters of names and constants (at most {MAX_CHARACTERS})"
        yield Problem("#", message, "use fewer or shorter ones")


def _names(schema: Mapping[str, Any]) -> tuple[int, int]:
    """The number of properties of a schema, and the characters of their names and of the names of definitions."""
    declared = schema.get("properties")
    maps = [m for m in (declared, *(schema.get(keyword) for keyword in _DEFINITIONS)) if isinstance(m, dict)]
    count = len(declared) if isinstance(declared, dict) else 0
    return count, sum(len(str(name)) for names in maps for name in names)
