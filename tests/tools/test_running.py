"""The loop of a model and its tools, with models that follow a script."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass, field
from typing import Any

import pydantic
import pytest

import grammarspec as gs
from grammarspec.models.messages import to_template_messages
from grammarspec.models.tool_loop import Conversation, FinishedCall, ToolLimitExceeded, arun_tools


class City(pydantic.BaseModel):
    name: str
    people: int


@gs.tool
def find(name: str) -> City:
    """Find a city."""
    return City(name=name, people=5)


@gs.tool
def double(number: int) -> str:
    """Double a number."""
    return f"{2 * number}"


@gs.tool
def fail(text: str) -> None:
    """Fail."""
    raise KeyError(text)


TOOLS = [find, double, fail]


@dataclass
class Said:
    """An answer of a script."""

    output: Any = None
    tool_calls: list[gs.ToolCall] = field(default_factory=list)

    @property
    def message(self) -> dict[str, Any]:
        if not self.tool_calls:
            return {"role": "assistant", "content": str(self.output)}
        calls = [call.to_openai() for call in self.tool_calls]
        return {"role": "assistant", "content": None, "tool_calls": calls}


class Script:
    """A model that says what it was given, and notes what it was asked."""

    def __init__(self, *answers: Said) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def run(self, prompt: Any, type: Any, /, **options: Any) -> Said:
        to_template_messages(prompt)  # a model reads them so
        self.asked.append({"prompt": list(prompt), "type": type, **options})
        return self.answers.pop(0)

    async def arun(self, prompt: Any, type: Any, /, **options: Any) -> Said:
        return self.run(prompt, type, **options)


def calls(*wanted: tuple[gs.Tool[..., Any], dict[str, Any]]) -> Said:
    return Said(
        None, [gs.ToolCall(f"call_{at}", tool.name, given, tool.read(given)) for at, (tool, given) in enumerate(wanted)]
    )


def loop(kind: str, script: Script, prompt: Any, **options: Any) -> Conversation[Any]:
    if kind == "sync":
        return gs.run_tools(script, prompt, TOOLS, **options)
    return asyncio.run(arun_tools(script, prompt, TOOLS, **options))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_two_steps(kind: str) -> None:
    script = Script(calls((find, {"name": "Rome"}), (fail, {"text": "x"})), calls((double, {"number": 5})), Said(10))
    before: list[str] = []
    options: Any = {"type": int, "on_call": lambda call: before.append(call.name), "parallel": True}
    found = loop(kind, script, "Twice as many as in Rome?", **options)
    assert (found.output, found.rounds) == (10, 3)
    assert before == ["find", "fail", "double"] == [one.call.name for one in found.calls]
    assert [one.result for one in found.calls] == [City(name="Rome", people=5), None, "10"]
    assert isinstance(found.calls[1].error, KeyError)
    assert found.messages == [
        {"role": "user", "content": "Twice as many as in Rome?"},
        calls((find, {"name": "Rome"}), (fail, {"text": "x"})).message,
        {"role": "tool", "tool_call_id": "call_0", "name": "find", "content": '{"name":"Rome","people":5}'},
        {"role": "tool", "tool_call_id": "call_1", "name": "fail", "content": "Error: KeyError: 'x'"},
        calls((double, {"number": 5})).message,
        {"role": "tool", "tool_call_id": "call_0", "name": "double", "content": "10"},
        {"role": "assistant", "content": "10"},
    ]
    assert [len(one["prompt"]) for one in script.asked] == [1, 4, 6]
    assert all((one["type"], one["tools"], one["parallel"]) == (int, TOOLS, True) for one in script.asked)


def test_messages_are_gone_on_with() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]
    found = gs.run_tools(Script(Said("Hello.")), messages, TOOLS)
    assert found.messages == [*messages, {"role": "assistant", "content": "Hello."}]
    assert (found.output, found.calls, found.rounds, len(messages)) == ("Hello.", [], 1, 2)


def _one_of(mode: str) -> dict[str, Any]:
    listed = [{"type": "function", "function": {"name": "find"}}]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}


@pytest.mark.parametrize(
    ("choice", "then"),
    [
        ("required", ["required", "auto"]),
        ("find", ["find", "auto"]),
        ("auto", ["auto"] * 2),
        ("none", ["none"] * 2),
        (_one_of("required"), [_one_of("required"), _one_of("auto")]),
    ],
)
def test_demands_hold_once(choice: Any, then: list[Any]) -> None:
    script = Script(calls((find, {"name": "Rome"})), Said("5"))
    gs.run_tools(script, "Hi.", TOOLS, tool_choice=choice)
    assert [one["tool_choice"] for one in script.asked] == then


def test_no_option_is_made_up() -> None:
    script = Script(calls((find, {"name": "Rome"})), Said("5"))
    gs.run_tools(script, "Hi.", TOOLS)
    assert all(one.keys() == {"prompt", "type", "tools"} and one["type"] is str for one in script.asked)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_limit(kind: str) -> None:
    script = Script(*[calls((double, {"number": 1}))] * 3)
    with pytest.raises(ToolLimitExceeded, match="no answer after 2 rounds") as caught:
        loop(kind, script, "Hi.", max_rounds=2)
    assert [one["role"] for one in caught.value.messages] == ["user", *["assistant", "tool"] * 2]
    assert len(script.answers) == 1
    assert pickle.loads(pickle.dumps(caught.value)).messages == caught.value.messages
    with pytest.raises(ValueError, match="max_rounds must be at least 1"):
        gs.run_tools(script, "Hi.", TOOLS, max_rounds=0)
    with pytest.raises(ValueError, match="on_error must be"):
        gs.run_tools(script, "Hi.", TOOLS, on_error="ignore")  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_errors_are_raised_if_wanted(kind: str) -> None:
    script = Script(calls((double, {"number": 1}), (fail, {"text": "x"})))
    with pytest.raises(KeyError, match="x"):
        loop(kind, script, "Hi.", on_error="raise")


def test_on_call_can_refuse() -> None:
    def refuse(call: gs.ToolCall) -> None:
        raise PermissionError(call.name)

    with pytest.raises(PermissionError, match="double"):
        gs.run_tools(Script(calls((double, {"number": 1}))), "Hi.", TOOLS, on_call=refuse)


def test_parallel_calls_run_at_the_same_time() -> None:
    async def main() -> list[Any]:
        met = asyncio.Barrier(2)

        @gs.tool
        async def meet(name: str) -> str:
            await met.wait()
            return name

        script = Script(calls((meet, {"name": "a"}), (meet, {"name": "b"})), Said("both"))
        found = await asyncio.wait_for(arun_tools(script, "Hi.", [meet]), 60)
        return [one.result for one in found.calls]

    assert asyncio.run(main()) == ["a", "b"]


@gs.tool
async def wait(seconds: int) -> int:
    """Wait."""
    return seconds


def test_async_tools_need_the_async_loop() -> None:
    with pytest.raises(TypeError, match=r"the tool wait is async\n  hint: await .*arun_tools"):
        gs.run_tools(Script(), "Hi.", [wait])

    @gs.tool
    def hidden(seconds: int) -> Any:
        return wait(seconds)

    with pytest.raises(TypeError, match="the tool hidden gave a coroutine"):
        gs.run_tools(Script(calls((hidden, {"seconds": 1}))), "Hi.", [hidden])
    found = asyncio.run(arun_tools(Script(calls((hidden, {"seconds": 1})), Said("1")), "Hi.", [hidden]))
    assert [one.result for one in found.calls] == [1]


def test_tools_of_json() -> None:
    declared = {"name": "size", "inputSchema": {"type": "object", "properties": {"of": {"type": "string"}}}}
    with pytest.raises(TypeError, match="the tool size has no function to run"):
        gs.run_tools(Script(), "Hi.", [declared])
    size = gs.Tool.from_json(declared, call=lambda arguments: len(arguments["of"]))
    found = gs.run_tools(Script(calls((size, {"of": "abc"})), Said("3")), "Hi.", [size])
    assert found.messages[2]["content"] == "3"


@pytest.mark.parametrize(
    ("result", "content"),
    [("ä\n", "ä\n"), (None, "null"), ({"ä": [1.5, City(name="a", people=1)]}, '{"ä":[1.5,{"name":"a","people":1}]}')],
)
def test_results_as_messages(result: Any, content: str) -> None:
    call = gs.ToolCall("1", "f", {}, None)
    assert FinishedCall(call, result, None).message["content"] == content


def test_results_without_json() -> None:
    with pytest.raises(TypeError, match="the result of the tool f has no JSON"):
        FinishedCall(gs.ToolCall("1", "f", {}, None), object(), None).message  # noqa: B018


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_results_that_the_model_cannot_be_told(kind: str) -> None:
    circle: list[Any] = []
    circle.append(circle)
    results: list[Any] = [object(), circle, "\udcff"]

    @gs.tool
    def give(number: int) -> Any:
        return results[number]

    def script() -> Script:
        return Script(calls(*[(give, {"number": number}) for number in range(3)]), Said("done", []))

    def run(**options: Any) -> Conversation[Any]:
        if kind == "sync":
            return gs.run_tools(script(), "Give!", [give], **options)
        return asyncio.run(arun_tools(script(), "Give!", [give], **options))

    found = run()
    assert [type(one.error) for one in found.calls] == [TypeError] * 3
    told = [message["content"] for message in found.messages if message["role"] == "tool"]
    assert all(content.startswith("Error: TypeError: the result of the tool give has") for content in told)
    with pytest.raises(TypeError, match="the result of the tool give has no JSON"):
        run(on_error="raise")


def test_options_of_the_loop() -> None:
    with pytest.raises(TypeError, match="there is no option max_round\n  hint: did you mean max_rounds"):
        gs.run_tools(Script(), "a", TOOLS, max_round=1)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"sampling=gs.Sampling\(on_limit='close'\)"):
        gs.run_tools(Script(), "a", TOOLS, on_limit="close")  # type: ignore[call-overload]
