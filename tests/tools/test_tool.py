"""Tools: declared by functions, classes and JSON; what models are told, what is enforced, what is called."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Literal, TypeVar

import annotated_types as at
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.json_schema import SkipJsonSchema

import grammarspec as gs
from grammarspec.tools.sources import as_tool, as_tools

T = TypeVar("T")


def run(tool: gs.Tool[..., Any], arguments: dict[str, Any]) -> Any:
    """What a call that a model writes comes to."""
    return tool.call(gs.ToolCall("call_1", tool.name, arguments, tool.read(arguments)))


@gs.tool
def weather(
    city: Annotated[str, at.Len(1, 20)], day: date, *, unit: Literal["C", "F"] = "C", then: Later | None = None
) -> str:
    """Tell the weather.

    Args:
        city: The city,
            by its English name.
        unit: Of temperatures.
    """
    return f"{city} {day:%d.%m.} {unit} {then}"


class Later(pydantic.BaseModel):
    """So long after.

    Attributes:
        hours: At most a day.
    """

    hours: int = pydantic.Field(ge=0, le=24)


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Node(msgspec.Struct):
    value: int
    rest: Node | None = None


def test_functions_stay_functions() -> None:
    assert weather("Rome", date(2026, 11, 2)) == "Rome 02.11. C None"
    assert weather.__name__ == "weather"
    assert weather.__doc__ is not None and weather.__doc__.startswith("Tell the weather.")
    assert repr(weather) == "<tool weather>"
    assert as_tool(weather) is weather


def test_what_models_are_told() -> None:
    assert weather.to_openai() == {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tell the weather.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {
                        "type": "string", "minLength": 1, "maxLength": 20,
                        "description": "The city, by its English name.",
                    },
                    "day": {"type": "string", "format": "date"},
                    "unit": {"type": "string", "enum": ["C", "F"], "default": "C", "description": "Of temperatures."},
                    "then": {"anyOf": [{"$ref": "#/$defs/Later"}, {"type": "null"}], "default": None},
                },
                "required": ["city", "day"],
                "$defs": {
                    "Later": {
                        "title": "Later",
                        "description": "So long after.\n\nAttributes:\n    hours: At most a day.",
                        "type": "object",
                        "properties": {"hours": {"type": "integer", "minimum": 0, "maximum": 24}},
                        "required": ["hours"],
                    },
                },
            },
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ('{"city": "Rome", "day": "2024-02-29"}', True),
        ('{"city": "Rome", "day": "2026-11-02", "unit": "F", "then": {"hours": 24}}', True),
        ('{"city": "Rome"}', False),
        ('{"city": "", "day": "2026-11-02"}', False),
        ('{"city": "Rome", "day": "2023-02-29"}', False),
        ('{"city": "Rome", "day": "2026-11-02", "unit": "K"}', False),
        ('{"city": "Rome", "day": "2026-11-02", "then": {"hours": 25}}', False),
        ('{"city": "Rome", "day": "2026-11-02", "more": 1}', False),
    ],
)
def test_constraints_are_enforced(text: str, valid: bool) -> None:
    assert weather.grammar.matches(text) == valid
    if valid:
        arguments = json.loads(text)
        assert weather.read(arguments) == weather.grammar.parse(text)
        assert run(weather, arguments).startswith("Rome")


@given(st.integers(0, 10**6))
def test_what_the_grammar_writes_is_read(seed: int) -> None:
    args = weather.grammar.parse(weather.grammar.sample(seed))
    assert 1 <= len(args.city) <= 20 and isinstance(args.day, date) and args.unit in ("C", "F")


def test_arguments_are_typed() -> None:
    args = weather.read({"city": "Rome", "day": "2026-11-02", "then": {"hours": 3}})
    assert (args.city, args.day, args.unit, args.then) == ("Rome", date(2026, 11, 2), "C", Later(hours=3))
    with pytest.raises(ValueError, match="city"):
        weather.read({"day": "2026-11-02"})


def test_defaults_are_the_functions_own() -> None:
    marker = object()

    @gs.tool
    def keep(items: list[int] = [], other: Any = marker, price: Decimal = Decimal("1.5")) -> Any:  # noqa: B006
        return items, other, price

    assert run(keep, {}) == ([], marker, Decimal("1.5"))
    assert run(keep, {"items": [1]})[0] == [1]
    assert [member.get("default", "none") for member in keep.parameters["properties"].values()] == [[], "none", "1.5"]


def test_all_kinds_of_parameters() -> None:
    @gs.tool
    def kinds(first: int, /, _second: int, schema: int = 3, *, model_config: int, self_: int = 5) -> list[int]:
        return [first, _second, schema, model_config, self_]

    assert run(kinds, {"first": 1, "_second": 2, "model_config": 4}) == [1, 2, 3, 4, 5]
    assert kinds.parameters["required"] == ["first", "_second", "model_config"]


def test_names_by_which_models_know_parameters() -> None:
    @gs.tool
    def send(source: Annotated[str, pydantic.Field(alias="from")], text: str) -> str:
        """Send.

        :param source: Who sends.
        :param text: What.
        """
        return source + text

    assert send.parameters["properties"]["from"] == {"type": "string", "description": "Who sends."}
    assert run(send, {"from": "a", "text": "b"}) == "ab" == send("a", "b")


def test_descriptions_in_annotations_come_first() -> None:
    @gs.tool(name="look-up", description="Look it up.")
    def find(word: Annotated[str, pydantic.Field(description="What to find.")]) -> str:
        """Find.

        Args:
            word: A word.
        """
        return word

    assert (find.name, find.description) == ("look-up", "Look it up.")
    assert find.parameters["properties"]["word"]["description"] == "What to find."


class Shelf:
    def __init__(self, size: int) -> None:
        self.size = size

    @gs.tool
    def room(self, taken: int) -> int:
        """How much room there is."""
        return self.size - taken

    @classmethod
    @gs.tool
    def largest(cls, least: int) -> Shelf:
        return cls(max(least, 10))

    @staticmethod
    @gs.tool
    def double(size: int) -> int:
        return 2 * size

    shared = weather
    declared = gs.Tool.from_json({"name": "declared"})


def test_methods() -> None:
    shelf = Shelf(7)
    assert shelf.room(2) == Shelf.room(shelf, 2) == run(shelf.room, {"taken": 2}) == 5
    assert shelf.room.parameters["properties"] == {"taken": {"type": "integer"}}
    assert shelf.room.description == "How much room there is."
    assert run(as_tool(Shelf.largest), {"least": 3}).size == Shelf.largest(3).size == 10
    assert run(shelf.double, {"size": 3}) == Shelf.double(3) == 6
    assert shelf.declared.name == "declared"
    with pytest.raises(TypeError, match="take it from an instance"):
        as_tools([Shelf.room])
    with pytest.raises(TypeError, match="no method"):
        shelf.shared  # noqa: B018
    with pytest.raises(TypeError, match="below @classmethod"):
        gs.tool(classmethod(lambda cls: 1))  # type: ignore[arg-type]


def test_async_functions() -> None:
    @gs.tool
    async def wait(seconds: int) -> int:
        return seconds

    assert wait.is_async and not weather.is_async
    assert asyncio.run(wait(1)) == 1
    assert asyncio.run(run(wait, {"seconds": 2})) == 2


def test_wrapped_functions() -> None:
    @functools.wraps(weather)
    def loud(*args: Any, **kwargs: Any) -> str:
        return str(weather(*args, **kwargs)).upper()

    assert run(gs.tool(loud), {"city": "Rome", "day": "2026-11-02"}) == "ROME 02.11. C NONE"


def starred(*args: int) -> None: ...
def double_starred(**kwargs: int) -> None: ...
def bare(a, b: int) -> None: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (starred, "the parameter args of the tool starred takes any number of arguments"),
        (double_starred, "the parameter kwargs of the tool double_starred takes any number"),
        (bare, "the parameter a of the tool bare has no annotation\n  hint: say its type, as in a: str"),
        (functools.partial(bare, 1), "is no function\n  hint: write one with `def`"),
        (1, "1 is no function"),
        (Point, "Point is a class, and a tool without a decorator"),
        (weather, "the tool weather is one already"),
    ],
)
def test_what_is_no_tool(function: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        gs.tool(function)
    assert said in str(caught.value)


def test_names_are_those_that_models_may_write() -> None:
    with pytest.raises(ValueError, match="'<lambda>' is no name of a tool"):
        gs.tool(lambda: 1)
    assert gs.tool(name="always")(lambda: 1)() == 1
    with pytest.raises(ValueError, match="two tools are named weather"):
        as_tools([weather, {"name": "weather"}])


def test_what_shows_when_a_tool_is_used() -> None:
    @gs.tool
    def odd(good: int, bad: complex) -> None: ...

    @gs.tool
    def deep(good: int, bad: Annotated[int, pydantic.Field(validation_alias=pydantic.AliasPath("a", "b"))]) -> None: ...

    for tool, said in ((odd, "complex"), (deep, "the alias a.b, which is a path")):
        with pytest.raises(gs.UnsupportedFeature, match=said) as caught:
            tool.schema  # noqa: B018
        assert caught.value.where == f"the parameter bad of the tool {tool.name}"

    @gs.tool
    def lost(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="'Nowhere' is not defined"):
        lost.schema  # noqa: B018

    @gs.tool
    def old(a: int = pydantic.Field(3, ge=1)) -> None: ...

    @gs.tool
    def inner(a: Annotated[int, pydantic.Field(default=3)]) -> None: ...

    for tool in (old, inner):
        with pytest.raises(TypeError, match=r"write a: Annotated\[..., Field"):
            tool.schema  # noqa: B018

    @gs.tool
    def hidden(a: int, b: SkipJsonSchema[int] = 3) -> None: ...

    with pytest.raises(TypeError, match="not told of a parameter of the tool hidden"):
        hidden.schema  # noqa: B018


def test_types_of_results_may_be_for_type_checkers_only() -> None:
    @gs.tool
    def guess(a: int) -> Nowhere:  # type: ignore[name-defined]  # noqa: F821
        return a

    assert run(guess, {"a": 1}) == 1


# ---------------------------------------------------------------------- classes
class Page(pydantic.BaseModel, Generic[T]):
    item: T


def test_classes() -> None:
    told = as_tool(Later)
    assert (told.name, told.description) == ("Later", "So long after.")
    assert told.parameters["properties"]["hours"]["description"] == "At most a day."
    assert told.read({"hours": 3}) == Later(hours=3)
    assert not told.is_callable
    with pytest.raises(TypeError, match="the tool Later has no function"):
        run(told, {"hours": 3})
    with pytest.raises(TypeError, match="has no function"):
        told()
    given = as_tool(Later, name="later", description="Wait.", call=lambda later: later.hours + 1)
    assert (given.name, given.description, run(given, {"hours": 3})) == ("later", "Wait.", 4)
    assert as_tool(Point).read({"x": 1}) == Point(1)
    assert as_tool(Point).description == ""
    assert as_tool(Page[int], name="page").read({"item": 1}) == Page[int](item=1)


def test_recursive_classes() -> None:
    node = as_tool(Node)
    assert node.read({"value": 1, "rest": {"value": 2}}) == Node(1, Node(2))
    for schema in (node.schema, node.parameters):
        assert schema["type"] == "object" and list(schema["properties"]) == ["value", "rest"]
    assert node.grammar.matches('{"value": 1, "rest": {"value": 2, "rest": null}}')


def test_structs_as_parameters() -> None:
    @gs.tool
    def total(node: Node, factor: int = 2) -> int:
        """Sum up.

        Args:
            node: The first.
        """
        return factor * (node.value + (total(node.rest, 1) if node.rest else 0))

    assert total.parameters["properties"]["node"]["description"] == "The first."
    assert run(total, {"node": {"value": 1, "rest": {"value": 2}}}) == 6


def test_classes_that_are_no_objects() -> None:
    with pytest.raises(gs.GrammarSyntaxError, match="must be an object, and are: integer") as caught:
        as_tool(int).schema  # noqa: B018
    assert caught.value.where == "the tool int"


# ---------------------------------------------------------------------- JSON
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}
PARTS = {"name": "count", "description": "Count."}


@pytest.mark.parametrize(
    "declared",
    [
        {"type": "function", "function": {**PARTS, "parameters": SCHEMA, "strict": True}},
        {"type": "function", **PARTS, "parameters": SCHEMA, "strict": True},
        {**PARTS, "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
        {"type": "custom", **PARTS, "input_schema": SCHEMA},
        SimpleNamespace(**PARTS, inputSchema=SCHEMA, title=None),
    ],
    ids=["chat", "responses", "mcp", "anthropic", "object"],
)
def test_json(declared: Any) -> None:
    tool = as_tool(declared)
    assert tool.to_openai() == {"type": "function", "function": {**PARTS, "parameters": SCHEMA}}
    assert tool.grammar.parse('{"a": 3}') == {"a": 3}
    assert not tool.grammar.matches('{"a": 2}') and not tool.grammar.matches('{"a": 3, "b": 1}')
    assert not tool.is_callable
    assert run(gs.Tool.from_json(declared, call=lambda arguments: arguments["a"]), {"a": 5}) == 5


def test_json_of_openai_makes_the_same_tool() -> None:
    again = gs.Tool.from_json(weather.to_openai())
    assert again.to_openai() == weather.to_openai()


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_tools_without_parameters(parameters: Any) -> None:
    tool = gs.Tool.from_json({"name": "now", "parameters": parameters})
    assert tool.parameters == {"type": "object", "properties": {}}
    assert tool.grammar.matches("{}") and not tool.grammar.matches('{"a": 1}')


def test_open_objects() -> None:
    tool = gs.Tool.from_json({"name": "set", "parameters": {"type": "object", "additionalProperties": True}})
    assert tool.grammar.matches('{"a": 1}')


@pytest.mark.parametrize("keyword", ["$defs", "definitions"])
def test_references_at_the_top(keyword: str) -> None:
    def tool(reference: str, **definitions: Any) -> gs.Tool[..., Any]:
        return gs.Tool.from_json({"name": "a", "parameters": {"$ref": reference, keyword: definitions}})

    path = f"#/{keyword}"
    assert tool(f"{path}/A", A={"$ref": f"{path}/B"}, B=SCHEMA, C={}).parameters == {**SCHEMA, keyword: {"C": {}}}
    recursive = {"type": "object", "properties": {"a": {"$ref": f"{path}/A"}}}
    assert tool(f"{path}/A", A=recursive).parameters == {**recursive, keyword: {"A": recursive}}
    for reference, kind in ((f"{path}/B", "undefined"), (f"{path}/A", f"{path}/A"), ("#/x", "#/x"), ("#", "#")):
        with pytest.raises(gs.GrammarSyntaxError, match=f"and are: {kind.replace('$', '.')}"):
            tool(reference, A={"$ref": f"{path}/A"})


@pytest.mark.parametrize(
    ("declared", "error", "where"),
    [
        ({}, gs.GrammarSyntaxError, "#/name"),
        ({"type": "function", "function": []}, gs.GrammarSyntaxError, "#/function"),
        ({"type": "function", "function": {"name": 1}}, gs.GrammarSyntaxError, "#/function/name"),
        ({"name": "a", "description": 1}, gs.GrammarSyntaxError, "#/description"),
        ({"name": "a", "inputSchema": []}, gs.GrammarSyntaxError, "#/inputSchema"),
        ({"function": {"name": "a", "parameters": {"type": "array"}}}, gs.GrammarSyntaxError, "#/function/parameters"),
        ({"type": "web_search"}, gs.UnsupportedFeature, "#/type"),
        ({"type": "custom", "name": "a", "format": {"type": "text"}}, gs.UnsupportedFeature, "#/type"),
        ({"type": "custom", "custom": {"name": "a"}}, gs.UnsupportedFeature, "#/type"),
    ],
)
def test_malformed_json(declared: Any, error: type[gs.GrammarError], where: str) -> None:
    with pytest.raises(error) as caught:
        as_tool(declared)
    assert caught.value.where == where


def test_options_go_with_what_they_are_for() -> None:
    with pytest.raises(TypeError, match="is one already"):
        as_tool(weather, name="other")
    with pytest.raises(TypeError, match="a function is called itself"):
        as_tool(starred, call=print)
    given: Callable[..., Any] = as_tool(Shelf(3).double)
    assert given(4) == 8


def test_calls_as_openai_has_them() -> None:
    call = gs.ToolCall("call_1", "weather", {"city": "Zürich"}, None)
    assert call.to_openai() == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Zürich"}'},
    }


def test_json_tools_need_no_pydantic() -> None:
    program = """
import sys
sys.modules["pydantic"] = sys.modules["pydantic_core"] = sys.modules["griffe"] = None
import grammarspec as gs
tool = gs.Tool.from_json({"name": "a", "parameters": {"type": "object", "properties": {"b": {}}}}, call=len)
print(tool.call(gs.ToolCall("1", "a", {"b": 1}, tool.read({"b": 1}))))
try:
    gs.tool(lambda: 1, name="a").schema
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("1\n") and "grammarspec[types]" in found.stdout


def test_what_declares_a_tool_is_the_same_tool_each_time() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    told = as_tool(add).to_openai()
    for one in (add, told, gs.tool(add)):
        assert as_tools([one])["add"] is as_tools([one])["add"]
    assert as_tools([told])["add"] is as_tools([json.loads(json.dumps(told))])["add"]
    malformed: Any = {"name": {1, 2}}
    with pytest.raises(gs.GrammarSyntaxError):
        as_tools([malformed])
