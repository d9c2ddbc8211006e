"""Models asked for values: types and grammars in, values out; batches, streams, budgets, refusals."""

from __future__ import annotations

import asyncio
import pickle
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, Field, ValidationError

import grammarspec as gs

pytest.importorskip("transformers")

from grammarspec.decoding.proposers import Forced


class Person(BaseModel):
    name: str = Field(max_length=5)
    age: Annotated[int, Ge(0), Le(120)]


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> gs.Model:
    return gs.Model.from_pretrained(tiny_model_directory)


def test_values_of_types(model: gs.Model) -> None:
    person = model("Who?", Person)
    assert isinstance(person, Person)
    assert model("Who?", Literal["yes", "no"]) in ("yes", "no")
    assert 0 <= model("How many?", Annotated[int, Ge(0), Le(9)]) <= 9
    number = gs.regex("[0-9]{2}").map(int).named("n")
    result = model.run("Which?", "x" + number)
    assert result.captures == {"n": int(result.output[1:])}
    assert result.text == result.output
    assert result.finish_reason == "stop"
    assert result.completion_tokens == 4
    assert result.prompt_tokens == len("Which?") + 1  # the template adds <turn>


def test_batches_give_the_same_as_single_prompts(model: gs.Model) -> None:
    sampling = gs.Sampling(temperature=1.0, seed=3)
    prompts = ["a", "What is it?", [{"role": "user", "content": "b"}]]
    together = model.batch(prompts, Person, sampling=sampling)
    alone = [model.run(prompt, Person, sampling=sampling) for prompt in prompts]
    assert [one.output for one in together] == [one.output for one in alone]
    assert model.batch([], Person) == []


def test_drafts_change_nothing(tiny_model_directory: Path, model: gs.Model) -> None:
    drafting = gs.Model.from_pretrained(tiny_model_directory, draft=tiny_model_directory)
    plain, forced = (gs.Model(model.model, model.tokenizer, draft=draft) for draft in ([], [Forced()]))
    results = [one.run("Who?", Person) for one in (model, drafting, plain, forced)]
    assert len({one.text for one in results}) == 1
    passes = [one.statistics.tokens_per_pass for one in results]
    assert passes[1] > passes[3] > passes[2] == 1


def test_streams(model: gs.Model) -> None:
    whole = model.run("Who?", Person)
    with model.stream("Who?", Person) as stream:
        pieces = list(stream)
        assert "".join(pieces) == whole.text
        assert len(pieces) > 1
        assert list(stream) == []
        assert stream.result.output == whole.output
    assert model.stream("Who?", Person).result.output == whole.output

    async def pieces_of() -> list[str]:
        return [piece async for piece in model.stream("Who?", Person)]

    assert "".join(asyncio.run(pieces_of())) == whole.text
    assert asyncio.run(model.arun("Who?", Person)).output == whole.output


def test_a_stream_that_nobody_reads_stops(model: gs.Model) -> None:
    with model.stream("Who?", gs.text(max_chars=100_000), sampling=gs.Sampling(max_tokens=200)) as stream:
        next(stream)
    assert list(stream) == []
    with pytest.raises(ValueError, match="closed"):
        _ = stream.result
    assert model("Who?", Literal["a"]) == "a"  # its turn came


def test_threads_take_turns(model: gs.Model) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(model("Who?", Person))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [model("Who?", Person)] * 4


def test_budgets(model: gs.Model) -> None:
    with pytest.raises(gs.Truncated, match="max_tokens") as error:
        model("Who?", Person, sampling=gs.Sampling(max_tokens=5))
    assert len(error.value.partial) == 5
    assert pickle.loads(pickle.dumps(error.value)).partial == error.value.partial
    stream = model.stream("Who?", Person, sampling=gs.Sampling(max_tokens=5))
    with pytest.raises(gs.Truncated):
        list(stream)
    with pytest.raises(gs.Truncated):
        _ = stream.result
    refused = 0
    for budget in range(1, 60):
        sampling = gs.Sampling(max_tokens=budget, on_limit="close", temperature=1.0, seed=budget)
        try:
            result = model.run("Who?", Person, sampling=sampling)
        except ValidationError:
            raise
        except ValueError:
            refused += 1
            continue
        assert isinstance(result.output, Person)
        assert result.completion_tokens <= budget
    assert refused == len('{"name":"","age":0}'), "the end of the text is a token, too"


def test_errors(model: gs.Model) -> None:
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    with pytest.raises(gs.UnsupportedFeature, match="image_url"):
        model(image, str)
    with pytest.raises(gs.UnsupportedFeature, match="complex"):
        model("a", complex)

    def never(value: int) -> int:
        raise ValueError("not this one")

    with pytest.raises(ValidationError, match="not this one"):
        model("a", Annotated[int, Ge(0), Le(9), AfterValidator(never)])


def test_constraints_are_compiled_once(model: gs.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    model("a", Person)

    def never(*_: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr("grammarspec.models.compile", never)
    assert isinstance(model("b", Person), Person)
    with pytest.raises(AssertionError, match="again"):
        model("b", list[Person])
