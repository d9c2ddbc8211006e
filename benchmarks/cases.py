"""What is measured: schemas with instances, from a folder of the user's or a few of our own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """A schema and valid instances of it, as texts."""

    name: str
    schema: dict[str, Any]
    texts: list[str]


def from_folder(folder: Path, most: int) -> list[Case]:
    """Files of the form ``{"schema": ..., "tests": [{"valid": true, "data": ...}]}`` (MaskBench's), evenly spread."""
    files = sorted(folder.glob("*.json"))
    cases = []
    for path in files[:: max(1, len(files) // most)][:most]:
        data = json.loads(path.read_text())
        valid = [test["data"] for test in data.get("tests", []) if test.get("valid", True)]
        cases.append(Case(path.stem, data["schema"], [json.dumps(d, ensure_ascii=False) for d in valid]))
    return cases


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), **more}


def built_in() -> list[Case]:
    """Shapes that users have: records, nested lists, enumerations, recursion, free-form parts."""
    string, integer = {"type": "string"}, {"type": "integer"}
    person = _object({"name": string, "age": {**integer, "minimum": 0, "maximum": 150}, "city": string})
    tree: dict[str, Any] = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": _object({"value": integer, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}})
        },
    }
    order = _object(
        {
            "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
            "status": {"enum": ["open", "paid", "shipped", "returned"]},
            "lines": {
                "type": "array",
                "items": _object({"sku": string, "quantity": integer, "price": {"type": "number"}}),
            },
            "note": {"type": "string", "maxLength": 200},
        },
        additionalProperties=False,
    )
    leaf = {"value": 7, "children": []}
    line = {"sku": "AB-1", "quantity": 2, "price": 9.99}
    data: list[tuple[str, dict[str, Any], Any]] = [
        ("person", person, {"name": "Ada Lovelace", "age": 36, "city": "London"}),
        ("extra keys", {"type": "object", "properties": {"a": integer}}, {"a": 1, "b": [1, {"c": None}], "about": "x"}),
        ("tree", tree, {"value": 1, "children": [leaf, {"value": 2, "children": [leaf, leaf]}]}),
        (
            "order",
            order,
            {"id": "AB-0042", "status": "paid", "lines": [line] * 4, "note": "Leave it at the door. " * 4},
        ),
        ("any JSON", {}, {"list": [1, 2.5, "three", None, True], "nested": {"deep": {"deeper": ["x"] * 9}}}),
        ("many choices", {"enum": [f"option number {i}" for i in range(3000)]}, "option number 2718"),
    ]
    return [Case(name, schema, [json.dumps(value)]) for name, schema, value in data]
