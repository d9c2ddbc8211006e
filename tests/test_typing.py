"""What type checkers make of the public generics: mypy reads this file, running it only shows that it runs."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, assert_type

import pytest

import grammarspec as gs
from grammarspec.models.tool_loop import Conversation, arun_tools


def test_grammars() -> None:
    word = gs.regex("[a-z]+")
    number = gs.regex("[0-9]+").map(int)
    assert_type(gs.literal("a"), gs.Grammar[str])
    assert_type(gs.choice(["a", "b"]), gs.Grammar[str])
    assert_type(gs.text(until="."), gs.Grammar[str])
    assert_type(gs.json_schema(True), gs.Grammar[Any])
    assert_type(gs.json_value(), gs.Grammar[Any])
    assert_type(word, gs.Grammar[str])
    assert_type(number, gs.Grammar[int])
    assert_type(number + ",", gs.Grammar[str])
    assert_type("<" + number, gs.Grammar[str])
    assert_type(number | word, gs.Grammar[int | str])
    assert_type(number | "none", gs.Grammar[int | str])
    assert_type("none" | number, gs.Grammar[str | int])
    assert_type(number & word, gs.Grammar[int])
    assert_type(~number, gs.Grammar[str])
    assert_type(number.repeat(1, sep=","), gs.Grammar[list[int]])
    assert_type(number.optional(), gs.Grammar[int | None])
    assert_type(number.named("n"), gs.Grammar[int])
    assert_type(number.parse("12"), int)
    assert_type(number.match("12"), gs.Match[int])
    assert_type(number.match("12").value, int)
    assert_type(number.sample(1), str)


def test_lark() -> None:
    pytest.importorskip("lark")
    from lark import Token, Transformer, Tree

    class Length(Transformer[Token, int]):
        def start(self, children: list[Token]) -> int:
            return len(children)

    text = 'start: "x"'
    assert_type(gs.lark(text), gs.Grammar[str])
    assert_type(gs.lark(text, captures=["start"], terminals={}), gs.Grammar[str])
    assert_type(gs.lark(text, tree=True), gs.Grammar[Tree[Any]])
    assert_type(gs.lark(text, tree=True).parse("x"), Tree[Any])
    assert_type(gs.lark(text, tree=bool(text)), gs.Grammar[Any])
    assert_type(gs.lark(text, transformer=Length), gs.Grammar[int])
    assert_type(gs.lark(text, transformer=Transformer[Token, Tree[Token]]() * Length()), gs.Grammar[int])
    assert_type(gs.lark(text, transformer=Length()).parse("x"), int)
    assert_type(gs.load("json", tree=True), gs.Grammar[Any])


class Point(NamedTuple):
    x: int
    y: int = 0


def test_types() -> None:
    assert_type(gs.grammar(int), gs.Grammar[int])
    assert_type(gs.grammar(Point), gs.Grammar[Point])
    assert_type(gs.grammar(Point).parse("[1, 2]"), Point)
    assert_type(gs.grammar(list[Point]), gs.Grammar[list[Point]])
    assert_type(gs.grammar(int | None), gs.Grammar[int | None])
    assert_type(gs.grammar(Literal["a", "b"]), gs.Grammar[Literal["a", "b"]])
    assert_type(gs.grammar(Point) | gs.literal("none"), gs.Grammar[Point | str])
    assert_type(gs.grammar(Point).named("point").repeat().parse("[1, 2]"), list[Point])


def test_grammars_are_covariant() -> None:
    def value(grammar: gs.Grammar[int | str], text: str) -> int | str:
        return grammar.parse(text)

    assert value(gs.regex("[0-9]+").map(int), "12") == 12


@gs.tool
def ping(host: str) -> bool:
    return bool(host)


def test_models() -> None:
    def ask(model: gs.Model) -> None:
        assert_type(model("a", int), int)
        assert_type(model("a", list[int]), list[int])
        assert_type(model("a", int | None), int | None)
        assert_type(model("a", Literal["a", "b"]), Literal["a", "b"])
        assert_type(model("a", gs.regex("a").map(len)), int)
        assert_type(model.run("a", Point), gs.Result[Point])
        assert_type(model.run("a", Point).output, Point)
        assert_type(model.batch(["a"], gs.regex("a")), list[gs.Result[str]])
        assert_type(model.run("a", Point).message, dict[str, Any])
        assert_type(model.samples("a", Point, 3), list[gs.Result[Point]])
        assert_type(model.samples("a", gs.regex("a"), 3), list[gs.Result[str]])
        assert_type(model.batch(["a"], Point, return_exceptions=True), list[gs.Result[Point] | Exception])
        assert_type(model.samples("a", gs.regex("a"), 3, return_exceptions=True), list[gs.Result[str] | Exception])
        assert_type(model.stream("a", str), gs.Stream[str])
        assert_type(model.astream("a", Point), gs.Stream[Point])
        assert_type(model.stream("a", Point).result, gs.Result[Point])
        assert_type(next(model.stream("a", Point)), str)
        model("a", int, retries=1, reasoning="auto", template={"a": 1}, max_reasoning_chars=9)
        assert_type(model("a", int, temperature=0.5, max_tokens=200), int)
        assert_type(model.run("a", Point, top_p=0.9, seed=None, on_limit="close"), gs.Result[Point])
        assert_type(model.batch(["a"], Point, top_k=3, stop=["."]), list[gs.Result[Point]])
        assert_type(model.samples("a", Point, 3, temperature=1), list[gs.Result[Point]])
        assert_type(model.stream("a", max_tokens=5, logit_bias={1: 2.0}), gs.Stream[str])
        model("a", int, temperature="hot")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
        model("a", int, on_limit="answer")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
        gs.run_tools(model, "a", [ping], temperature=0.5, on_limit="answer")
        assert_type(model("a"), str)
        assert_type(model.run("a"), gs.Result[str])
        assert_type(model.stream("a"), gs.Stream[str])
        assert_type(model.run("a", tools=[ping]), gs.Result[str | None])
        assert_type(model.run("a", Point, tools=[ping], tool_choice="required"), gs.Result[Point | None])
        assert_type(model.run("a", gs.regex("a").map(len), tools=[ping]), gs.Result[int | None])
        assert_type(model.stream("a", tools=[ping, Point, {"name": "f"}]), gs.Stream[str | None])
        assert_type(model.stream("a", Point, tools=[ping]).result.output, Point | None)
        assert_type(model.run("a", tools=[ping]).tool_calls, tuple[gs.ToolCall, ...])
        assert_type(gs.run_tools(model, "a", [ping], type=Point), Conversation[Point])
        assert_type(gs.run_tools(model, where.prompt("a"), [ping]).output, str)
        model("a", int, tools=[ping])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
        model.batch(["a"], int, tools=[ping])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
        model("a", int, retry=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]

    async def await_(model: gs.Model) -> None:
        assert_type(await model.arun("a", Point), gs.Result[Point])
        assert_type(await model.arun("a"), gs.Result[str])
        assert_type(await model.arun("a", tools=[ping]), gs.Result[str | None])
        assert_type(await model.arun("a", int | None, tools=[ping]), gs.Result[int | None])
        assert_type(await arun_tools(model, "a", [ping], type=Point), Conversation[Point])
        assert_type(await model.abatch(["a"], int | None), list[gs.Result[int | None]])
        assert_type(await model.asamples("a", gs.regex("a"), 2), list[gs.Result[str]])
        assert_type(await model.abatch(["a"], Point, return_exceptions=True), list[gs.Result[Point] | Exception])
        assert_type(await model.asamples("a", int, 2, return_exceptions=True), list[gs.Result[int] | Exception])
        assert_type(await model.stream("a", Point).aresult(), gs.Result[Point])
        async with model.stream("a", Point) as stream:
            assert_type([piece async for piece in stream], list[str])

    assert callable(ask) and callable(await_)


@gs.output(Point)
def where(name: str, *, near: bool = False) -> str:
    return name + "?" * near


@gs.output(gs.regex("[0-9]+").map(int))
async def how_many(what: str) -> str:
    return what


class Map:
    @gs.output(int | None)
    def distance(self, to: str) -> list[dict[str, Any]]:
        return [{"role": "user", "content": to}]


def test_decorators() -> None:
    async def ask(model: gs.Model) -> None:
        assert_type(where("a", near=True), Point)
        assert_type(where.using(model).run("a"), gs.Result[Point])
        assert_type(where.stream("a"), gs.Stream[Point])
        assert_type(await how_many("a"), int)
        assert_type(await how_many.using(model).run("a"), gs.Result[int])
        assert_type(Map().distance("a"), int | None)
        assert_type(where.using(model, retries=2, temperature=0.5)("a"), Point)
        assert_type(await how_many.stream("a"), gs.Stream[int])
        where(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        Map().distance()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    assert callable(ask)
