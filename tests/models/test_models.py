"""Models asked for values: types and grammars in, values out; batches, streams, budgets, refusals."""

from __future__ import annotations

import asyncio
import pickle
import threading
from dataclasses import FrozenInstanceError
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, Field, ValidationError

import grammarspec as gs

pytest.importorskip("transformers")

from grammarspec.decoding import Statistics
from grammarspec.decoding.proposers import Forced
from tests import tiers


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
    assert result.usage.completion_tokens == 4
    assert result.usage.prompt_tokens == len("Which?") + 1  # the template adds <turn>


def test_batches_give_the_same_as_single_prompts(model: gs.Model) -> None:
    sampling = gs.Sampling(temperature=1.0, seed=3)
    prompts = ["a", "What is it?", [{"role": "user", "content": "b"}]]
    together = model.batch(prompts, Person, sampling=sampling)
    alone = [model.run(prompt, Person, sampling=sampling) for prompt in prompts]
    assert [one.output for one in together] == [one.output for one in alone]
    assert model.batch([], Person) == []


@pytest.mark.usefixtures("drafts_pay")
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
    refused, budgets = [], tiers.some(range(1, 60), least=12)
    for budget in budgets:
        sampling = gs.Sampling(max_tokens=budget, on_limit="close", temperature=1.0, seed=budget)
        try:
            result = model.run("Who?", Person, sampling=sampling)
        except gs.ValidationFailed:
            raise
        except ValueError:
            refused.append(budget)
            continue
        assert isinstance(result.output, Person)
        assert result.usage.completion_tokens <= budget
    largest = len('{"name":"","age":0}')  # the end of the text is a token, too
    assert refused == [budget for budget in budgets if budget <= largest]


def test_errors(model: gs.Model) -> None:
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    with pytest.raises(gs.UnsupportedFeature, match="image_url"):
        model(image, str)
    with pytest.raises(gs.UnsupportedFeature, match="complex"):
        model("a", complex)

    def never(value: int) -> int:
        raise ValueError("not this one")

    with pytest.raises(gs.ValidationFailed, match="not this one"):
        model("a", Annotated[int, Ge(0), Le(9), AfterValidator(never)])


def even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


class Even(BaseModel):
    a: Annotated[int, Ge(0), Le(9), AfterValidator(even)]


def test_wrong_arguments(model: gs.Model) -> None:
    with pytest.raises(TypeError, match=r"draft takes a model that is loaded, not 'lookup'"):
        gs.Model(model.model, model.tokenizer, draft="lookup")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="gamma must be at least 0, not -1"):
        gs.Model(model.model, model.tokenizer, gamma=-1)
    with pytest.raises(TypeError, match=r"limits must be a gs.Limits, not 3"):
        gs.Model(model.model, model.tokenizer, limits=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"sampling must be a gs.Sampling, not {'temperature': 1}"):
        model("Who?", Person, sampling={"temperature": 1})  # type: ignore[typeddict-item]
    with pytest.raises(gs.errors.PromptError, match=r"lone surrogate \(U\+DCFF\)"):
        model("Who is \udcff?", Person)


def test_limits_are_those_of_each_constraint(model: gs.Model) -> None:
    narrow = gs.Model(model.model, model.tokenizer, limits=gs.Limits(max_steps=3))
    with pytest.raises(gs.LimitExceeded, match=r"max_steps \(limit 3\)"):
        narrow("Who?", Person)


def test_options_that_there_are_not(model: gs.Model) -> None:
    calls: list[Any] = [
        lambda: model.run("a", int, samplng=gs.Sampling()),  # type: ignore[call-overload]
        lambda: model.stream("a", int, samplng=gs.Sampling()),  # type: ignore[call-overload]
        lambda: model.batch(["a"], int, samplng=gs.Sampling()),  # type: ignore[call-overload]
        lambda: model.samples("a", int, 2, samplng=gs.Sampling()),  # type: ignore[call-overload]
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"there is no option samplng\n  hint: did you mean sampling"):
            call()
    with pytest.raises(TypeError, match="tools cannot be given here"):
        model.batch(["a"], int, tools=[len])  # type: ignore[call-overload]


def test_results(model: gs.Model) -> None:
    result = model.run("Who?", Person)
    assert result.message == {"role": "assistant", "content": result.text}
    assert (result.reasoning, result.tool_calls, result.attempts) == (None, (), 1)
    usage, timing = result.usage, result.timing
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert timing.first_token is not None and 0 < timing.first_token <= timing.total
    assert 0 < sum(timing.phases.values()) <= timing.total
    assert "target" in timing.phases
    with pytest.raises(FrozenInstanceError):
        result.text = ""  # type: ignore[misc]


def test_reports(model: gs.Model) -> None:
    report = model.run("Who?", Person).report
    assert report is not None and report.ok
    assert {"#/properties/name/maxLength", "#/properties/age/maximum"} <= {one.pointer for one in report.entries}
    assert not any("validated" in note for note in report.notes)
    other = gs.Result(
        **{name: getattr(model.run("a", int), name) for name in ("output", "text", "captures", "usage")},
        finish_reason="stop",
        statistics=Statistics(),
        type=Even,
    )
    assert other.report is not None and other.report.notes[-1] == "validated when whole: even"
    schema = model.run("a", gs.json_schema({"type": "integer", "minimum": 0, "maximum": 9})).report
    assert schema is not None and "#/maximum" in {one.pointer for one in schema.entries}
    assert model.run("a", gs.regex("a")).report is None


def test_what_validators_refuse(model: gs.Model) -> None:
    def seeded(seed: int) -> gs.Sampling:
        return gs.Sampling(temperature=1.0, seed=seed)

    refused: dict[int, gs.ValidationFailed] = {}
    for seed in range(8):
        try:
            assert model("a", Even, sampling=seeded(seed)).a % 2 == 0
        except gs.ValidationFailed as error:
            refused[seed] = error
    assert 0 < len(refused) < 8
    for error in refused.values():
        assert error.errors == (("#/a", "Value error, must be even"),)
        assert error.attempts == 1
        assert "retries=2" in str(error)
        assert isinstance(error.__cause__, ValidationError)
        again = pickle.loads(pickle.dumps(error))
        assert (again.text, again.errors, again.attempts) == (error.text, error.errors, 1)
    said: list[str] = []

    def second(value: str) -> str:
        said.append(value)
        if len(said) == 1:
            raise ValueError("not yet")
        return value

    result = model.run("a", gs.regex("[a-e]").map(second), retries=1)
    assert (result.output, result.attempts, result.timing.first_token) == (said[1], 2, None)
    assert result.usage.completion_tokens == 4, "all attempts count"
    with pytest.raises(gs.ValidationFailed, match="after 3 attempts") as failure:
        model("a", gs.literal("a").map(int), retries=2)
    assert failure.value.attempts == 3


def test_errors_of_transformers_are_told_as_those_of_validators(model: gs.Model) -> None:
    lark = pytest.importorskip("lark")

    class Never(lark.Transformer):  # type: ignore[misc, name-defined]
        def start(self, children: Any) -> Any:
            raise KeyError("x")

    with pytest.raises(gs.ValidationFailed, match=r"(?s)after 2 attempts.*KeyError: 'x' \(in start") as failure:
        model("a", gs.lark('start: "a"', transformer=Never), retries=1)
    assert isinstance(failure.value.__cause__, KeyError)
    assert (failure.value.text, failure.value.attempts) == ("a", 2)


def test_what_models_are_told(model: gs.Model) -> None:
    """The prompt of a retry is the chat so far, the answer, and what is wrong with it."""
    asked: list[str] = []

    def never(value: str) -> str:
        raise ValueError(f"{value} is not nice")

    plain = model.tokenizer.apply_chat_template

    def listen(messages: Any, **options: Any) -> Any:
        asked.append("|".join(f"{one['role']}: {one['content']}" for one in messages))
        return plain(messages, **options)

    picky = gs.Model(model.model, model.tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(picky.tokenizer, "apply_chat_template", listen)
        with pytest.raises(gs.ValidationFailed):
            picky("Say", gs.literal("a").map(never), system="Hi", retries=1)
    feedback = "Your answer is not valid:\n- a is not nice\nAnswer again with this corrected."
    assert asked == ["system: Hi|user: Say", f"system: Hi|user: Say|assistant: a|user: {feedback}"]


def test_each_prompt_of_a_batch_retries_by_itself(model: gs.Model) -> None:
    asked: list[str] = []

    def third(value: str) -> str:
        asked.append(value)
        if len(asked) == 2:
            raise ValueError("not this one")
        return value

    results = model.batch(["x", "y", "z"], gs.regex("[a-e]{3}").map(third), retries=1)
    assert [one.attempts for one in results] == [1, 2, 1]
    assert [one.output for one in results] == [asked[0], asked[3], asked[2]]
    with pytest.raises(ValueError, match="retries=-1 must be at least 0"):
        model("a", Even, retries=-1)
    with pytest.raises(ValueError, match="a stream cannot retry"):
        model.stream("a", Even, retries=1)
    with pytest.raises(TypeError, match=r"write batch\(\[prompt\]"):
        model.batch("a", Even)


def test_errors_of_msgspec_and_of_functions(model: gs.Model) -> None:
    import msgspec

    def refuse(text: str) -> Any:
        raise msgspec.ValidationError(f"{text} is none")

    with pytest.raises(gs.ValidationFailed, match="a is none"):
        model("a", gs.literal("a").map(refuse))
    with pytest.raises(ZeroDivisionError):
        model("a", gs.literal("a").map(lambda _: 1 // 0))


def test_samples(model: gs.Model) -> None:
    sampling = gs.Sampling(temperature=1.0, seed=3)
    results = model.samples("Who?", Person, 4, sampling=sampling)
    assert len({one.text for one in results}) > 1
    assert results[0].output == model("Who?", Person, sampling=sampling)
    again = asyncio.run(model.asamples("Who?", Person, 4, sampling=sampling))
    assert [one.output for one in again] == [one.output for one in results]
    with pytest.raises(ValueError, match="n must be at least 1, not 0"):
        model.samples("a", Person, 0)
    with pytest.raises(ValueError, match="all answers are the same"):
        model.samples("a", Person, 2)


def test_cancelled_tasks_stop_generation(model: gs.Model) -> None:
    long = gs.regex("[ab]{200}")
    passes = 0
    forward = model.model.forward

    @wraps(forward)
    def count(*args: Any, **options: Any) -> Any:
        nonlocal passes
        passes += 1
        return forward(*args, **options)

    async def cancel(work: Any) -> None:
        task = asyncio.ensure_future(work)
        while not passes and not task.done():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    plain = gs.Model(model.model, model.tokenizer, draft=[])
    for begin in (
        lambda: plain.arun("a", long),
        lambda: plain.abatch(["a"], long),
        lambda: plain.stream("a", long).aresult(),
    ):
        passes = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model.model, "forward", count)
            asyncio.run(cancel(begin()))
            assert plain("a", Literal["a"]) == "a", "its turn came"
            assert passes < 200


def test_constraints_are_compiled_once(model: gs.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    model("a", Person)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr("grammarspec.models.generator.compile", never)
    assert isinstance(model("b", Person), Person)
    with pytest.raises(AssertionError, match="again"):
        model("b", list[Person])


def test_what_is_whole_where_the_budget_ends(model: gs.Model) -> None:
    for texts, reason in ((["a", "b"], "stop"), (["abc", "a"], "length")):
        result = model.run("Who?", gs.choice(texts), sampling=gs.Sampling(max_tokens=1))
        assert (result.output in texts, result.finish_reason) == (True, reason)
    whole = model.run("Who?", Person)
    budget = whole.usage.completion_tokens - 1  # there is no room for the end-of-text token
    assert model("Who?", Person, sampling=gs.Sampling(max_tokens=budget)) == whole.output
    stream = model.stream("Who?", Person, sampling=gs.Sampling(max_tokens=budget))
    assert "".join(stream) == whole.text and stream.result.finish_reason == "stop"
    with pytest.raises(gs.Truncated):
        model("Who?", Person, sampling=gs.Sampling(max_tokens=budget - 1))


def test_free_text_ends_where_its_budget_does(model: gs.Model) -> None:
    for budget in (1, 7, 30):
        sampling = gs.Sampling(max_tokens=budget, temperature=1.0, seed=budget)
        result = model.run("Who?", sampling=sampling)
        assert "\ufffd" not in result.text
        assert result.finish_reason == ("length" if result.usage.completion_tokens == budget else "stop")
        stream = model.stream("Who?", sampling=sampling)
        assert "".join(stream) == result.text == model("Who?", sampling=sampling)
    with pytest.raises(gs.Truncated):
        model("Who?", sampling=gs.Sampling(max_tokens=7, on_limit="raise", logit_bias={256: -100.0}))


def test_fields_of_a_sampling_as_keywords(model: gs.Model) -> None:
    fields: Any = {"temperature": 1.0, "seed": 3, "max_tokens": 100}
    whole = model("Who?", Person, sampling=gs.Sampling(**fields))
    assert model("Who?", Person, **fields) == model.run("Who?", Person, **fields).output == whole
    assert model.stream("Who?", Person, **fields).result.output == whole
    assert [one.output for one in model.batch(["Who?"], Person, **fields)] == [whole]
    assert model.samples("Who?", Person, 2, **fields)[0].output == whole

    async def awaited() -> list[gs.Result[Person]]:
        return [
            await model.arun("Who?", Person, **fields),
            *await model.abatch(["Who?"], Person, **fields),
            (await model.asamples("Who?", Person, 2, **fields))[0],
            await model.astream("Who?", Person, **fields).aresult(),
        ]

    assert [one.output for one in asyncio.run(awaited())] == [whole] * 4
    with pytest.raises(TypeError, match=r"sampling= and seed, temperature are given"):
        model("Who?", Person, sampling=gs.Sampling(), temperature=1.0, seed=3)
    with pytest.raises(ValueError, match="temperature must be 0 or at least"):
        model("Who?", Person, temperature=-1.0)


def test_answers_that_fail_on_their_own(model: gs.Model) -> None:
    asked: list[str] = []

    def second(value: str) -> str:
        asked.append(value)
        if len(asked) == 2:
            raise ValueError("not this one")
        return value

    checked = gs.regex("[a-e]{3}").map(second)
    long, image = "x" * 300, [{"role": "user", "content": [{"type": "image_url"}]}]
    found = model.batch(["a", long, "b", image, "c"], checked, return_exceptions=True)
    assert [type(one).__name__ for one in found] == [
        "Result", "PromptError", "ValidationFailed", "UnsupportedFeature", "Result",
    ]  # fmt: skip
    assert [one.index for one in found if isinstance(one, gs.GrammarspecError)] == [1, 2, 3]
    assert str(found[1]).startswith("answer 1 (counted from 0): the prompt has 301 tokens")
    asked.clear()
    with pytest.raises(gs.ValidationFailed, match=r"answer 1 \(counted from 0\): the answer is not valid") as failure:
        model.batch(["a", "b", "c"], checked)
    again = pickle.loads(pickle.dumps(failure.value))
    assert (again.index, str(again)) == (1, str(failure.value))
    asked.clear()
    retried = asyncio.run(model.abatch(["a", "b", "c"], checked, return_exceptions=True, retries=1))
    assert [one.attempts for one in retried if isinstance(one, gs.Result)] == [1, 2, 1]
    asked.clear()
    sampled = model.samples("a", checked, 3, return_exceptions=True, temperature=1.0)
    assert [isinstance(one, gs.ValidationFailed) for one in sampled] == [False, True, False]
    assert len(asyncio.run(model.asamples("a", checked, 2, return_exceptions=True, temperature=1.0))) == 2
    with pytest.raises(ZeroDivisionError) as foreign:
        model.batch(["a", "b"], gs.literal("a").map(lambda _: 1 // 0))
    assert foreign.value.__notes__ == ["answer 0 (counted from 0)"]
    with pytest.raises(gs.errors.PromptError, match=r"^the prompt has 301 tokens"):
        model.stream(long, checked)
    with pytest.raises(TypeError, match="there is no option return_exceptions"):
        model.run("a", checked, return_exceptions=True)  # type: ignore[call-overload]
