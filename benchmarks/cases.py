"""The cases that are measured: schemas with instances, from a folder of the user's or built in."""

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
    """Cases from files of MaskBench's form, ``{"schema": ..., "tests": [{"valid": true, "data": ...}]}``.

    Args:
        folder: the folder of the files.
        most: the greatest number of files to take; they are spread evenly.
    """
    files = sorted(folder.glob("*.json"))
    cases = []
    for path in files[:: max(1, len(files) // most)][:most]:
        data = json.loads(path.read_text())
        valid = [test["data"] for test in data.get("tests", []) if test.get("valid", True)]
        cases.append(Case(path.stem, data["schema"], [json.dumps(d, ensure_ascii=False) for d in valid]))
    return cases


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def record(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A schema of an object with all of these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), **more}


def built_in() -> list[Case]:
    """Common shapes of schemas: records, nested lists, enumerations, recursion, free-form parts."""
    person = record({"name": STRING, "age": {**INTEGER, "minimum": 0, "maximum": 150}, "city": STRING})
    tree: dict[str, Any] = {
        "$ref": "#/$defs/node",
        "$defs": {"node": record({"value": INTEGER, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}})},
    }
    order = record(
        {
            "id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
            "status": {"enum": ["open", "paid", "shipped", "returned"]},
            "lines": {"type": "array", "items": record({"sku": STRING, "quantity": INTEGER, "price": NUMBER})},
            "note": {"type": "string", "maxLength": 200},
        },
        additionalProperties=False,
    )
    leaf = {"value": 7, "children": []}
    line = {"sku": "AB-1", "quantity": 2, "price": 9.99}
    settings = {"type": "object", "properties": {f"option_{i}": INTEGER for i in range(30)}}
    data: list[tuple[str, dict[str, Any], Any]] = [
        ("person", person, {"name": "Ada Lovelace", "age": 36, "city": "London"}),
        ("extra keys", {"type": "object", "properties": {"a": INTEGER}}, {"a": 1, "b": [1, {"c": None}], "about": "x"}),
        ("settings", settings, {f"option_{i}": i for i in range(0, 30, 2)} | {"other": True}),
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


def growing() -> list[tuple[int, Case]]:
    """Schemas with more and more properties, whose types take turns; each with its number of properties."""
    kinds = [STRING, INTEGER, {"enum": ["red", "green", "blue"]}, {"type": "array", "items": NUMBER}]
    cases = []
    for count in (1, 3, 10, 30, 100, 300, 1000):
        properties = {f"property_{i}": kinds[i % len(kinds)] for i in range(count)}
        cases.append((count, Case(f"{count} properties", record(properties, additionalProperties=False), [])))
    return cases


def long_text() -> Case:
    """A long list of small records."""
    items = [{"id": i, "name": f"item number {i}", "price": i * 1.25, "tags": ["new", "sale"]} for i in range(150)]
    item = record({"id": INTEGER, "name": STRING, "price": NUMBER, "tags": {"type": "array", "items": STRING}})
    return Case("records", {"type": "array", "items": item}, [json.dumps(items)])
