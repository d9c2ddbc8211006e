"""Functions that ask a model: as functions, methods, coroutines; where their model comes from."""

from __future__ import annotations

import asyncio
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


def test_coroutines(model: gs.Model) -> None:
    async def both() -> tuple[str, str, str]:
        with gs.use(model):
            here = await answer("Now?")
        return here, await answer.using(model)("Now?"), await Game("b").move.using(model)()

    here, there, move = asyncio.run(both())
    assert here == there == model("Now?", Literal["yes", "no"], system="Be short.")
    assert move in ("a", "b")
    assert asyncio.run(answer.prompt("x")) == [{"role": "user", "content": "x"}]


def test_without_a_model() -> None:
    with pytest.raises(LookupError, match=r"guess has no model: write guess\.using"):
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
