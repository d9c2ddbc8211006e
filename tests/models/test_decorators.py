"""Functions that ask a model: as functions, methods, coroutines; where their model comes from."""

from __future__ import annotations

import asyncio
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Le

import grammarspec as gs

pytest.importorskip("transformers")

Digit = Annotated[int, Ge(0), Le(9)]


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> gs.Model:
    return gs.Model.from_pretrained(tiny_model_directory)


@gs.output(Digit)
def guess(what: str, *, polite: bool = False) -> str:
    """Guess a digit."""
    return f"{'Please guess' if polite else 'Guess'} {what}!"


@gs.output(Literal["yes", "no"], system="Be short.")
async def answer(question: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": question}]


class Game:
    def __init__(self, name: str) -> None:
        self.name = name

    @gs.output(Digit)
    def turn(self, number: int) -> str:
        return f"{self.name}: {number}"

    @gs.output(gs.regex("[ab]"))
    async def move(self) -> str:
        return self.name


def test_functions(model: gs.Model) -> None:
    with gs.use(model):
        assert guess("a number", polite=True) == model("Please guess a number!", Digit)
        result = guess.run("it")
        assert result.output == model("Guess it!", Digit)
        assert "".join(guess.stream("it")) == result.text
    assert guess.using(model)("it") == result.output
    assert guess.prompt("it") == "Guess it!"
    assert (guess.__name__, guess.__doc__) == ("guess", "Guess a digit.")
    with pytest.raises(TypeError, match="what"):
        guess.prompt()  # type: ignore[call-arg]


def test_methods(model: gs.Model) -> None:
    game = Game("chess")
    assert game.turn.prompt(3) == "chess: 3"
    with gs.use(model):
        assert game.turn(3) == model("chess: 3", Digit)
    assert game.turn.using(model)(3) == Game.turn.using(model)(game, 3)


class Board:
    size = 8

    @gs.output(Digit)
    @classmethod
    def whole(cls, what: str) -> str:
        return f"{what} of {cls.size}"

    @gs.output(Digit)
    @staticmethod
    def any(what: str) -> str:
        return what


class Small(Board):
    size = 4


def test_methods_of_classes(model: gs.Model) -> None:
    whole: Any = Small.whole
    assert whole.prompt("rows") == Small().whole.prompt("rows") == "rows of 4"  # type: ignore[call-arg,arg-type,misc]
    assert whole.using(model)("rows") == model("rows of 4", Digit)
    several: Any = Board.any
    assert several.prompt("a") == Board().any.prompt("a") == "a"  # type: ignore[call-arg]


def test_options(model: gs.Model) -> None:
    sampling = gs.Sampling(temperature=1.0, seed=1)
    polite = guess.using(model, system="Be polite.", sampling=sampling)
    assert polite("it") == model("Guess it!", Digit, system="Be polite.", sampling=sampling)
    assert polite.using(system=None)("it") == model("Guess it!", Digit, sampling=sampling)
    assert polite.using(system=None, seed=2)("it") == model("Guess it!", Digit, temperature=1.0, seed=2)
    with gs.use(model):
        assert guess.using(sampling=sampling)("it") == polite.using(system=None)("it")
        assert asyncio.run(answer.using(system="Be long.")("Now?")) in ("yes", "no")


def test_functions_are_what_they_were() -> None:
    def parameters(function: Any) -> list[str]:
        return list(signature(function).parameters)

    assert parameters(guess) == parameters(guess.using(system="a")) == ["what", "polite"]
    assert parameters(Game.turn) == ["self", "number"]
    assert parameters(Game("a").turn) == ["number"]
    assert parameters(Small.whole) == ["what"]
    assert repr(guess) == "<OutputFunction guess>"
    assert repr(answer) == "<AsyncOutputFunction answer>"
    assert pickle.loads(pickle.dumps(guess)) is guess
    assert copy.deepcopy(guess) is guess
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(guess.using(system="a"))


def test_decorators_that_are_misused(model: gs.Model) -> None:
    with pytest.raises(TypeError, match=r"write @gs\.output\(str\) before what"):

        @gs.output  # type: ignore[call-overload, untyped-decorator]
        def what() -> str:
            return "a"

    with pytest.raises(TypeError, match="takes a function that returns a prompt, not int"):
        gs.output(int)(3)  # type: ignore[call-overload]
    nothing: Any = gs.output(int)(lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="a prompt must be a text or a sequence of messages, not NoneType"):
        nothing.using(model).run()


def test_coroutines(model: gs.Model) -> None:
    async def both() -> tuple[str, str, str]:
        with gs.use(model):
            here = await answer("Now?")
        return here, await answer.using(model)("Now?"), await Game("b").move.using(model)()

    here, there, move = asyncio.run(both())
    assert here == there == model("Now?", Literal["yes", "no"], system="Be short.")
    assert move in ("a", "b")

    async def pieces() -> str:
        return "".join([piece async for piece in await answer.using(model).stream("Now?")])

    assert asyncio.run(pieces()) == here
    assert asyncio.run(answer.prompt("x")) == [{"role": "user", "content": "x"}]


def test_without_a_model() -> None:
    with pytest.raises(LookupError, match=r"guess has no model\n  hint: write guess\.using"):
        guess("it")
    with pytest.raises(LookupError, match="turn has no model"):
        Game("a").turn(1)


def test_blocks_nest(model: gs.Model) -> None:
    other = gs.Model(model.model, model.tokenizer, draft=[])
    with gs.use(model):
        with gs.use(other) as inner:
            assert inner is other
            assert guess.run("it").statistics.tokens_per_pass == 1
        assert guess.run("it").output == guess.using(other)("it")


def test_options_are_known() -> None:
    options: dict[str, Any] = {"retry": 1}
    with pytest.raises(TypeError, match=r"there is no option retry\n  hint: did you mean retries"):
        gs.output(Digit, **options)
    with pytest.raises(TypeError, match="there is no option retry"):
        guess.using(**options)
    tools: dict[str, Any] = {"tools": [guess]}
    for decorate in (lambda: gs.output(Digit, **tools), lambda: guess.using(**tools)):
        with pytest.raises(TypeError, match=r"tools cannot be given here(?s:.*)gs\.run_tools"):
            decorate()


def test_threads(model: gs.Model) -> None:
    expected = guess.using(model)("it")
    with gs.use(model), ThreadPoolExecutor(1) as pool:
        assert pool.submit(copy_context().run, guess, "it").result() == expected
        assert pool.submit(guess.using(model), "it").result() == expected

        async def in_a_thread() -> object:
            return await asyncio.to_thread(guess, "it")

        assert asyncio.run(in_a_thread()) == expected
