"""Answers given that they are valid (``law="conditional"``): what they carry, and what is refused."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import astuple
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, Field

import grammarspec as gs

pytest.importorskip("transformers")

from grammarspec.models.streaming import Stopped


class Person(BaseModel):
    name: str = Field(max_length=5)
    age: Annotated[int, Ge(0), Le(120)]


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> gs.Model:
    return gs.Model.from_pretrained(tiny_model_directory)


def test_results(model: gs.Model) -> None:
    found = model.run("Who?", Person, law="conditional", particles=4, temperature=1.0, seed=1)
    assert isinstance(found.output, Person)
    assert found.evidence is not None
    assert found.evidence.particles == 4
    assert 0 < found.evidence.effective <= 4
    assert found.evidence.log_valid < 0
    again = model.run("Who?", Person, law="conditional", particles=4, sampling=gs.Sampling(temperature=1.0, seed=1))
    assert (again.text, again.evidence) == (found.text, found.evidence)
    assert model.run("Who?", Person).evidence is None


def test_one_particle_is_the_masked_answer(model: gs.Model) -> None:
    for seed in range(5):
        one = model.run("Who?", Person, law="conditional", particles=1, temperature=1.0, seed=seed)
        assert one.text == model.run("Who?", Person, temperature=1.0, seed=seed).text


def test_batches_and_samples(model: gs.Model) -> None:
    kind = Literal["yes", "no", "maybe"]
    found = model.batch(["a", "b"], kind, law="conditional", temperature=1.0, seed=1)
    assert [one.evidence.particles for one in found if one.evidence] == [8, 8]
    samples = model.samples("a", kind, 3, law="conditional", particles=2, temperature=1.0, seed=1)
    assert {one.output for one in samples} <= {"yes", "no", "maybe"}
    awaited = asyncio.run(model.arun("a", kind, law="conditional", temperature=1.0, seed=1))
    assert awaited.evidence and found[0].evidence
    assert awaited.text == found[0].text
    # Passes over other numbers of rows round sums in other ways.
    assert astuple(awaited.evidence) == pytest.approx(astuple(found[0].evidence), rel=1e-6)
    assert model("a", kind, law="conditional", temperature=1.0) in ("yes", "no", "maybe")


def test_retries_and_budgets(model: gs.Model) -> None:
    def odd(value: int) -> int:
        assert value % 2, "must be odd"
        return value

    digit = Annotated[int, Ge(0), Le(9), AfterValidator(odd)]
    found = model.run("n", digit, law="conditional", temperature=1.0, seed=2, retries=20)
    assert found.output % 2
    with pytest.raises(gs.Truncated):
        model.run("n", gs.regex("[a-z]{20}"), law="conditional", temperature=1.0, max_tokens=5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"law": "conditional"}, ValueError, "temperature is 0"),
        ({"law": "conditional", "temperature": 1.0, "top_p": 0.9}, ValueError, "top_p cuts"),
        ({"law": "conditional", "temperature": 1.0, "on_limit": "close"}, ValueError, "on_limit='close'"),
        ({"law": "conditional", "temperature": 1.0, "particles": 0}, ValueError, "at least 1, not 0"),
        ({"law": "conditional", "temperature": 1.0, "particles": "8"}, TypeError, "whole number, not '8'"),
        ({"law": "exact"}, ValueError, "law must be 'masked' or 'conditional', not 'exact'"),
        ({"particles": 4}, ValueError, "law='masked' writes one text, not particles=4"),
        ({"law": "masked", "particles": 4}, ValueError, "give law='conditional'"),
    ],
)
def test_refused(model: gs.Model, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        model.run("Who?", Person, **options)


def test_streams_are_refused(model: gs.Model) -> None:
    with pytest.raises(ValueError, match="a stream cannot choose among particles"):
        model.stream("Who?", Person, law="conditional", temperature=1.0)
    with pytest.raises(TypeError, match="there is no option law"):
        gs.run_tools(model, "Who?", [], type=Person, law="conditional")  # type: ignore[call-arg]


def test_stopping(model: gs.Model) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        model._generator.conditional([], 2, stop)


@pytest.mark.slow
def test_threads(model: gs.Model) -> None:
    """Calls take turns, and give what they give alone."""
    alone = [model.run("a", Person, law="conditional", temperature=1.0, seed=seed).text for seed in range(4)]
    found: dict[int, str] = {}

    def work(seed: int) -> None:
        found[seed] = model.run("a", Person, law="conditional", temperature=1.0, seed=seed).text

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [found[seed] for seed in range(4)] == alone
