"""Tools for tests, declared by their schemas."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from grammarspec.tools.sources import as_tool
from grammarspec.tools.tool import Tool


def tool(name: str, schema: dict[str, Any]) -> Tool[..., Any]:
    return as_tool({"type": "function", "function": {"name": name, "description": "", "parameters": schema}})


WEATHER = tool(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
            "unit": {"enum": ["C", "F"]},
        },
        "required": ["city", "days"],
    },
)
PING = tool("ping", {"type": "object", "properties": {}})

_LEAVES: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 5},
    {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
    {"type": "string", "format": "date"},
    {"enum": ["metric", "imperial", 'it\'s "both"']},
    {"const": "fixed"},
    {"type": "integer"},
    {"type": "integer", "minimum": -3, "maximum": 12},
    {"type": "number", "minimum": 0, "maximum": 10, "multipleOf": 0.25},
    {"type": "boolean"},
    {"$ref": "#/$defs/shade"},
    {"enum": ["a", 1, True]},
]
_DEFINITIONS = {"shade": {"enum": ["dark", "light"]}}
_NAMES = st.from_regex(r"[a-z][a-zA-Z0-9_]{0,6}x", fullmatch=True)


def _objects(values: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def made(properties: dict[str, Any], required: list[bool]) -> dict[str, Any]:
        kept = [name for name, wanted in zip(properties, required, strict=False) if wanted]
        return {"type": "object", "properties": properties, "required": kept}

    return st.builds(made, st.dictionaries(_NAMES, values, max_size=4), st.lists(st.booleans(), min_size=4))


_VALUES = st.recursive(
    st.sampled_from(_LEAVES),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items, "maxItems": 3}, inner),
        st.builds(lambda value: {"anyOf": [value, {"type": "null"}]}, inner),
        _objects(inner),
    ),
    max_leaves=5,
)


@st.composite
def tools(draw: st.DrawFn) -> list[Tool[..., Any]]:
    """One to three tools with schemas of the usual kinds."""
    schemas = draw(st.lists(_objects(_VALUES), min_size=1, max_size=3))
    return [tool(f"tool_{i}", {**schema, "$defs": _DEFINITIONS}) for i, schema in enumerate(schemas)]
