"""Where the parts of a type stand in it, as a Python programmer would write it: ``Order.lines[].price``.

The core schema of a type, as Pydantic has it, goes in; for each of its parts a place comes out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["Places"]

_NOT_PARTS = frozenset({"serialization", "metadata", "definitions", "default", "config", "expected", "members"})


class Places:
    """The places of the parts of a type.

    Args:
        name: the name of the type.
        core: its core schema.
    """

    def __init__(self, name: str, core: Any) -> None:
        self._name = name
        self._found: dict[int, str] = {}
        definitions: dict[str, Any] = {}
        waiting = deque([(core, name)])
        while waiting:
            part, place = waiting.popleft()
            if isinstance(part, list | tuple):
                waiting += [(inner, place) for inner in part]
            elif isinstance(part, dict) and id(part) not in self._found:
                self._found[id(part)] = place
                definitions |= {inner["ref"]: inner for inner in part.get("definitions", ())}
                if part.get("type") == "definition-ref" and part["schema_ref"] in definitions:
                    waiting.append((definitions[part["schema_ref"]], place))
                waiting += _inside(part, place)

    def of(self, parts: Sequence[Any]) -> str:
        """The place of the last of these parts that is known; ``the type NAME`` if that is no field."""
        found = next((self._found[id(part)] for part in reversed(parts) if id(part) in self._found), self._name)
        return found if found.startswith(f"{self._name}.") or "]." in found else f"the type {self._name}"


def _inside(part: dict[str, Any], place: str) -> Iterator[tuple[Any, str]]:
    """The parts of a part, each with its place."""
    for name, inner in part.items():
        if name in _NOT_PARTS:
            continue
        if name == "fields" and isinstance(inner, dict):
            yield from ((field, f"{place}.{key}") for key, field in inner.items())
        elif name in ("fields", "arguments_schema") and isinstance(inner, list):
            yield from ((field, f"{place}.{field['name']}") for field in inner if isinstance(field, dict))
        elif name in ("items_schema", "keys_schema", "values_schema"):
            yield inner, f"{place}[]"
        elif isinstance(inner, dict) and name == "choices":
            yield from ((choice, place) for choice in inner.values())
        elif isinstance(inner, dict | list | tuple):
            yield inner, place
