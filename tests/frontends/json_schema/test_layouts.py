"""Free whitespace has every layout that ``json.dumps`` writes."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import grammarspec as gs

VALUE = {"a": [1, {"b": [], "c": {}}, "x"], "d": {"e": {"f": None}}, "g": [[True]]}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array", "uniqueItems": True}, "d": {"type": "object", "minProperties": 1}, "g": {}},
    "required": ["a"],
    "additionalProperties": False,
}
INDENTS = [None, -1, 0, 1, 2, 4, 8, "\t", "  "]
SEPARATORS = [None, (",", ":"), (", ", ": "), (",", ": "), (" , ", " : "), (",\t", ":\n")]
LAYOUTS: list[dict[str, Any]] = [
    {"indent": indent, "separators": separators} for indent, separators in itertools.product(INDENTS, SEPARATORS)
]


@pytest.mark.parametrize("schema", [True, SCHEMA, {"const": VALUE}], ids=["any", "schema", "constant"])
def test_flexible_whitespace_has_what_json_dumps_writes(schema: Any) -> None:
    grammar = gs.json_schema(schema)
    for layout in LAYOUTS:
        assert grammar.matches(json.dumps(VALUE, **layout)), layout
    assert not grammar.matches(json.dumps(VALUE) + "\n")


@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_as_deep_as_documented(indent: int | str) -> None:
    grammar = gs.json_value()
    nested: Any = []
    for depth in range(1, 30):
        nested = {"a": nested} if depth % 2 else [nested]
    deepest = [[nested]]
    for separators in ((", ", ": "), (",", ":")):
        assert grammar.matches(json.dumps([nested, nested], indent=indent, separators=separators))
    assert grammar.matches(json.dumps(deepest, indent=indent)) == (indent != 4)  # 31 levels of 4 blanks


def test_bounds() -> None:
    grammar = gs.json_value()
    for blanks in (" " * 8, "\t\r\n" + "\t" * 120):
        assert grammar.matches(f"[1,{blanks}2]"), blanks
    for blanks in (" " * 9, "\n" + " " * 121, "\n\n", "  \n"):
        assert not grammar.matches(f"[1,{blanks}2]"), blanks
