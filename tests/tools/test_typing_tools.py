"""What type checkers make of tools: mypy reads this file, running it only shows that it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack, assert_type, overload

import grammarspec as gs
from grammarspec.models.tool_loop import Answer, AsyncToolModel, Conversation, arun_tools

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from grammarspec.models.chat import Prompt
    from grammarspec.models.options import Options

T = TypeVar("T")


class Point(NamedTuple):
    x: int
    y: int = 0


@gs.tool
def where(name: str, *, near: bool = False) -> Point:
    return Point(len(name), near)


@gs.tool(name="how-many", description="Count.")
async def how_many(what: str) -> int:
    return len(what)


class Map:
    @gs.tool
    def distance(self, to: str) -> float:
        return len(to)


def test_tools() -> None:
    assert_type(where("a", near=True), Point)
    assert_type(Map().distance("a"), float)
    assert_type(where.parameters, dict[str, Any])
    assert_type(gs.Tool.from_json({"name": "a"}), gs.Tool[..., Any])

    async def ask(call: gs.ToolCall) -> None:
        assert_type(await how_many("a"), int)
        assert_type(where.call(call), Point)
        where(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Map().distance()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    assert callable(ask)


class Typed:
    """A model whose options are typed."""

    @overload
    def run(self, prompt: Prompt, type: gs.Grammar[T], **options: Unpack[Options]) -> Answer: ...
    @overload
    def run(self, prompt: Prompt, type: TypeForm[T], **options: Unpack[Options]) -> Answer: ...
    def run(self, prompt: Prompt, type: Any, **options: Unpack[Options]) -> Answer:
        raise AssertionError


def test_loops() -> None:
    async def ask(model: Typed, other: AsyncToolModel) -> None:
        tools = [where, Map().distance, Point, {"name": "a"}]
        assert_type(gs.run_tools(model, "a", tools), Conversation[str])
        assert_type(gs.run_tools(model, "a", [where], type=Point), Conversation[Point])
        assert_type(gs.run_tools(model, "a", [where], type=int | None).output, int | None)
        assert_type(gs.run_tools(model, "a", [where], type=gs.regex("a").map(len)), Conversation[int])
        assert_type(await arun_tools(other, "a", [how_many], type=list[int]), Conversation[list[int]])

    assert callable(ask)
