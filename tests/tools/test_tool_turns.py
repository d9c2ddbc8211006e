"""Models that may call tools: what random logits say in each format is read right, streamed right, and gone on with."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, Field

import grammarspec as gs
from grammarspec.models.tool_loop import arun_tools
from grammarspec.tools.formats import FORMATS, tool_format
from tests import tiers
from tests.tools.asked import of_family, tiny
from tests.tools.declared import PING, WEATHER, tool
from tests.tools.rendering import TEMPLATES

pytest.importorskip("transformers")

TOOLS = {one.name: one for one in (WEATHER, PING)}
BOTH = [WEATHER, PING]
FAMILIES = [(name, special) for name in FORMATS for special in ((False, True) if FORMATS[name].markers else (False,))]
Family = Callable[[str, bool], gs.Model]


class Sky(BaseModel):
    sky: str = Field(max_length=4)


@pytest.fixture(scope="module")
def family(tiny_model_directory: Path) -> Family:
    """The models of the families, by format and whether the markers are special tokens."""
    return cache(lambda name, special: of_family(tiny_model_directory, name, special=special))


@pytest.fixture(scope="module")
def plain(tiny_model_directory: Path) -> gs.Model:
    """A model whose chat template knows no tools."""
    return tiny(tiny_model_directory, "{% for m in messages %}[{{ m.role }}]{{ m.content }}<turn>{% endfor %}")


def sampling(seed: int = 1, max_tokens: int = 200, temperature: float = 1.5, **options: Any) -> gs.Sampling:
    return gs.Sampling(temperature=temperature, seed=seed, max_tokens=max_tokens, on_limit="close", **options)


HOT = 100.0
"""A temperature at which the model's own logits mean nothing."""


def towards(model: gs.Model, **biases: float) -> dict[int, float]:
    """Biases of tokens by what they say."""
    return {model.tokenizer.convert_tokens_to_ids(token): bias for token, bias in biases.items()}


def towards_calls(model: gs.Model, name: str) -> dict[int, float]:
    """A bias that makes calls and answers both likely."""
    form = FORMATS[name]
    first = form.markers[0] if form.markers and form.markers[0] in model.vocabulary.special_tokens else form.starts[:1]
    if not first or name == "harmony":
        return {}
    return {model.tokenizer.convert_tokens_to_ids(first if isinstance(first, str) else first[0][0]): 5.0}


@contextmanager
def prompts(model: gs.Model) -> Iterator[list[str]]:
    """What the chat template makes of messages meanwhile."""
    rendered: list[str] = []
    plainly = model.tokenizer.apply_chat_template

    def listen(messages: Any, **options: Any) -> Any:
        rendered.append(plainly(messages, **options))
        return rendered[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.tokenizer, "apply_chat_template", listen)
        yield rendered


def check(result: gs.Result[Any], kind: Any, choice: str, *, parallel: bool) -> None:
    """A result says what it may."""
    for call in result.tool_calls:
        Draft202012Validator(TOOLS[call.name].schema).validate(call.arguments)
        assert call.args == call.arguments
    if result.tool_calls:
        assert choice != "none" and result.output is None and result.captures == {}
        assert choice in ("auto", "required") or [call.name for call in result.tool_calls] == [choice]
        assert (parallel and choice not in TOOLS) or len(result.tool_calls) == 1
        assert [one["function"]["name"] for one in result.message["tool_calls"]] == [
            call.name for call in result.tool_calls
        ]
        assert result.message["content"] == (result.text or None)
    else:
        assert choice in ("auto", "none") and isinstance(result.output, kind)
        assert result.output == (result.text if kind is str else kind.model_validate_json(result.text))
        assert result.message["content"] == result.text


@pytest.mark.combined
# ---------------------------------------------------------------------- all formats, random logits
@pytest.mark.parametrize(("name", "special"), tiers.some(FAMILIES, least=6))
@pytest.mark.property
def test_what_is_said_is_streamed_read_and_gone_on_with(family: Family, name: str, special: bool) -> None:
    model = family(name, special)
    bias = towards_calls(model, name)
    called = set()
    asked = [*((kind, choice) for kind in (str, Sky) for choice in ("required", "auto", "none")), (str, "get_weather")]
    for number, (kind, choice) in enumerate(asked if tiers.selected().whole else asked[:3:2]):
        parallel = number % 2 == 0
        options: dict[str, Any] = {"tools": BOTH, "tool_choice": choice, "parallel": parallel}
        budget = 60 if choice == "none" else 400  # without calls, there are only answers
        stream = model.stream("Hi", kind, sampling=sampling(number, budget, logit_bias=bias), **options)
        said = "".join(stream)
        result = stream.result
        assert said == result.text
        check(result, kind, choice, parallel=parallel)
        called.add(bool(result.tool_calls))
        if number < tiers.draws(2):
            more = [{"role": "tool", "tool_call_id": call.id, "content": "7"} for call in result.tool_calls]
            messages = [{"role": "user", "content": "Hi"}, result.message, *more, {"role": "user", "content": "So?"}]
            check(model.run(messages, Sky, tools=BOTH, sampling=sampling()), Sky, "auto", parallel=True)
    assert called == {True, False}


@pytest.mark.parametrize("name", ["hermes", "json", "llama-json", "harmony", "qwen-xml"])
def test_budgets_are_kept_or_refused(family: Family, name: str) -> None:
    model = family(name, bool(FORMATS[name].markers))
    refused, budgets = [], tiers.some(range(1, 61))
    for budget in budgets:
        try:
            result = model.run("Hi", Sky, tools=BOTH, sampling=sampling(budget, budget))
        except gs.errors.BudgetTooSmall:
            refused.append(budget)
            continue
        check(result, Sky, "auto", parallel=True)
        assert result.usage.completion_tokens <= budget
    frame = 8 if name == "harmony" else 0  # <|channel|>final<|message|>, and the token that ends the text
    largest = len('{"sky":""}') + frame - (frame > 0)
    assert refused == [budget for budget in budgets if budget <= largest]


@pytest.mark.parametrize("name", ["hermes", "json", "harmony"])
@pytest.mark.parametrize("nested", [True, False])  # as Chat Completions write it, or as Responses do
def test_only_allowed_tools_are_called(family: Family, name: str, nested: bool) -> None:
    model = family(name, bool(FORMATS[name].markers))
    tool = {"type": "function", "function": {"name": "ping"}} if nested else {"type": "function", "name": "ping"}
    which = {"mode": "required", "tools": [tool]}
    allowed = {"type": "allowed_tools", **({"allowed_tools": which} if nested else which)}
    with prompts(model) as said:
        for seed in range(4):
            result = model.run("Hi", tools=BOTH, tool_choice=allowed, sampling=sampling(seed))
            assert {call.name for call in result.tool_calls} == {"ping"}
    assert all("get_weather" in prompt for prompt in said)  # the model is told of all


# ---------------------------------------------------------------------- texts that spell markers
QUOTES = {
    "qwen-xml": "</parameter>",
    "glm-4.5": "</arg_value>",
    "glm-4.7": "</arg_value>",
    "minimax-m2": "</parameter>",
    "deepseek-v3.2": "</｜DSML｜parameter>",
    "deepseek-v4": "</｜DSML｜parameter>",
    "kimi-k3": "<|close|>",
    "cohere-xml": "</cofl:value>",
    "gemma-4": '<|"|>',
    "function-gemma": "<escape>",
}
"""What ends texts without escapes."""


@pytest.mark.combined
@pytest.mark.parametrize(("name", "special"), tiers.some(FAMILIES, least=6))
@pytest.mark.property
def test_texts_that_spell_markers_are_texts(family: Family, name: str, special: bool) -> None:
    model = family(name, special)
    ends = [*FORMATS[name].markers, "<|channel|>final<|message|>x", "</tool_call>", '"}', "\n</function>", "[x](y)"]
    texts = [f"{end}z" for end in ends if end not in QUOTES.values()]
    spelled = tool("spell", {"properties": {"text": {"enum": texts}}, "required": ["text"]})
    found = set()
    bias = towards(model, **{"<|end|>": 400.0}) if name == "harmony" and special else {}
    for seed in range(tiers.draws(6, least=5)):
        stream = model.stream(
            "Hi", tools=[spelled], tool_choice="required", sampling=sampling(seed, 400, HOT, logit_bias=bias)
        )
        said = "".join(stream)
        assert said == stream.result.text
        for call in stream.result.tool_calls:
            assert call.arguments["text"] in texts
            found.add(call.arguments["text"])
    thinks = name in ("harmony", "kimi-k3")  # until the budget leaves room for the shortest call
    assert len(found) > (special or not thinks)


@pytest.mark.parametrize(("name", "quote"), QUOTES.items())
@pytest.mark.parametrize("special", [False, True])
def test_texts_without_escapes_cannot_spell_their_end(family: Family, name: str, quote: str, special: bool) -> None:
    model = family(name, special)
    text = {"type": "string", "pattern": f"^({re.escape(quote)}|ok)$"}
    spelled = tool("spell", {"properties": {"text": text}, "required": ["text"]})
    for seed in range(3):
        result = model.run("Hi", tools=[spelled], tool_choice="spell", sampling=sampling(seed, 300))
        assert [call.arguments for call in result.tool_calls] == [{"text": "ok"}]
    constant = tool("spell", {"properties": {"text": {"const": quote}}})
    with pytest.raises(gs.UnsupportedFeature, match=f"where no string can hold .*, in tool calls of the format {name}"):
        model.run("Hi", tools=[constant], sampling=sampling())


def test_markers_that_begin_alike(tiny_model_directory: Path) -> None:
    """What is forced is the beginning of a name then, and no token."""
    model = tiny(tiny_model_directory, None, ("<aa>", "<ab>"))
    for seed in range(4):
        found = model("Hi", "x" + (gs.special("<aa>") | gs.special("<ab>")), sampling=sampling(seed))
        assert found in ("x<aa>", "x<ab>")


# ---------------------------------------------------------------------- chat templates without tools
def test_models_without_a_format_are_told_of_one(plain: gs.Model) -> None:
    with prompts(plain) as said:
        plain.run("Hi", tools=[PING], system="Be brief.", sampling=sampling(max_tokens=40))
        plain.run("Hi", tools=[PING], sampling=sampling(max_tokens=40))
        plain.run("Hi", tools=[PING], tool_choice="none", system="Be brief.", sampling=sampling(max_tokens=40))
    told = tool_format("json").instructions([PING])
    assert said[0] == f"[system]Be brief.\n\n{told}<turn>[user]Hi<turn>"
    assert said[1] == f"[system]{told}<turn>[user]Hi<turn>"
    assert said[2] == "[system]Be brief.<turn>[user]Hi<turn>"


def test_calls_and_results_become_texts(plain: gs.Model) -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "ping", "arguments": "{}"}},
        {
            "id": "b",
            "type": "function",
            "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 1}},
        },
    ]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "pong"},
        {"role": "tool", "tool_call_id": "b", "content": "rain"},
        {"role": "assistant", "content": "Once more.", "tool_calls": calls[:1]},
        {"role": "tool", "tool_call_id": "a", "content": "pong"},
        {"role": "user", "content": "And?"},
    ]
    before = json.dumps(messages)
    with prompts(plain) as said:
        check(plain.run(messages, Sky, tools=BOTH, sampling=sampling()), Sky, "auto", parallel=True)
    ping = '{"name": "ping", "arguments": {}}'
    weather = '{"name": "get_weather", "arguments": {"city": "Zürich", "days": 1}}'
    assert said == [
        f"[system]Be brief.\n\n{tool_format('json').instructions(BOTH)}<turn>[user]Hi<turn>[assistant]{ping}\n{weather}"
        f"<turn>[user]ping returned: pong\nget_weather returned: rain<turn>[assistant]Once more.\n{ping}<turn>"
        "[user]ping returned: pong\nAnd?<turn>"
    ]
    assert json.dumps(messages) == before


def test_templates_of_unknown_formats_are_not_told_of_tools(tiny_model_directory: Path) -> None:
    """They would have the model write calls in a format that is not ours."""
    template = "{% if tools %}Write <arg_key>!{% endif %}{% for m in messages %}{{ m.content }}<turn>{% endfor %}"
    model = tiny(tiny_model_directory, template)
    with prompts(model) as said:
        model.run("Hi", tools=[PING], sampling=sampling())
        family = tiny(tiny_model_directory, (TEMPLATES / "hermes.jinja").read_text())
    assert said == [f"{tool_format('json').instructions([PING])}<turn>Hi<turn>"]
    with prompts(family) as said:
        result = family.run("Hi", tools=[PING], tool_choice="ping", tool_format="json", sampling=sampling())
    assert "<tool_call>" not in said[0] and tool_format("json").instructions([PING]) in said[0]
    assert result.tool_calls[0].name == "ping"


def test_templates_for_tools_are_used_if_there_are_any(tiny_model_directory: Path) -> None:
    """Some tokenizers have two chat templates, by name."""
    chat = "{% for m in messages %}{{ m.content }}<turn>{% endfor %}"
    hermes = (TEMPLATES / "hermes.jinja").read_text()
    model = tiny(tiny_model_directory, {"default": chat, "tool_use": hermes})
    with prompts(model) as said:
        result = model.run("Hi", tools=[PING], tool_choice="ping", sampling=sampling())
        model.run("Hi", Sky, sampling=sampling())
    assert said[0].startswith("<|im_start|>system\nTools:\n") and said[1] == "Hi<turn>"
    assert result.tool_calls[0].name == "ping"
    model.tokenizer.chat_template = chat
    with prompts(model) as said:
        model.run("Hi", tools=[PING], sampling=sampling())
    assert said[0].startswith("You may call"), "another template is another turn"


# ---------------------------------------------------------------------- the loop
@pytest.mark.parametrize(
    ("name", "special"),
    tiers.some(
        [
            ("hermes", True),
            ("hermes", False),
            tiers.slow("harmony", True),
            ("mistral-v3", True),
            ("deepseek-v3", True),
            ("json", False),
        ],
        least=3,
    ),
)
def test_the_loop_comes_to_an_answer(family: Family, name: str, special: bool) -> None:
    model, ran = family(name, special), []

    @gs.tool
    def add(a: Annotated[int, Field(ge=0, le=9)], b: Annotated[int, Field(ge=0, le=9)]) -> int:
        """Add two numbers."""
        ran.append((a, b))
        return a + b

    options: dict[str, Any] = {
        "type": Sky, "tool_choice": "required", "max_rounds": 3, "on_limit": "answer", "sampling": sampling(),
    }  # fmt: skip
    found = gs.run_tools(model, "How much?", [add], **options)
    awaited = asyncio.run(arun_tools(model, "How much?", [add], **options))
    for one in (found, awaited):
        assert isinstance(one.output, Sky)
        assert [call.result for call in one.calls] == [call.call.args.a + call.call.args.b for call in one.calls] != []
        roles = [message["role"] for message in one.messages]
        assert roles[:3] == ["user", "assistant", "tool"] and roles[-1] == "assistant" and one.rounds > 1
    assert ran == [(one.call.args.a, one.call.args.b) for one in (*found.calls, *awaited.calls)]
    with (
        pytest.raises(gs.errors.ToolLimitExceeded)
        if hasattr(gs.errors, "ToolLimitExceeded")
        else pytest.raises(gs.GrammarspecError, match="no answer after 1 rounds")
    ):
        gs.run_tools(model, "How much?", [add], **{**options, "max_rounds": 1, "on_limit": "raise"})


# ---------------------------------------------------------------------- reasoning
THINKS = (
    TEMPLATES / "hermes.jinja"
).read_text() + "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"


@pytest.mark.combined
@pytest.mark.parametrize("special", [(), ("<think>", "</think>", "<tool_call>", "</tool_call>")])
@pytest.mark.parametrize("kind", [str, Sky])
def test_models_think_before_they_call(tiny_model_directory: Path, special: tuple[str, ...], kind: Any) -> None:
    model = tiny(tiny_model_directory, THINKS, special)
    for seed, choice in enumerate(("auto", "required", "ping", "none")):
        options: dict[str, Any] = {
            "tools": BOTH, "tool_choice": choice, "reasoning": True, "max_reasoning_chars": 12,
        }  # fmt: skip
        stream = model.stream("Hi", kind, sampling=sampling(seed), **options)
        assert "".join(stream) == stream.result.text
        check(stream.result, kind, choice, parallel=True)
        assert stream.result.reasoning is not None and len(stream.result.reasoning) <= 12
        assert stream.result.message["reasoning_content"] == stream.result.reasoning
        assert 0 < stream.result.usage.reasoning_tokens < stream.result.usage.completion_tokens
    result = model.run("Hi", tools=BOTH, tool_choice="ping", reasoning=False, sampling=sampling())
    assert result.reasoning is None and result.tool_calls[0].name == "ping"


@pytest.mark.slow
@pytest.mark.property
def test_harmony_has_a_place_for_thoughts(family: Family) -> None:
    model = family("harmony", True)
    bias = towards(model, **{"<|end|>": 400.0})
    thought = set()
    for seed in range(tiers.draws(24, least=10)):
        kind = (str, Sky)[seed % 2]
        stream = model.stream("Hi", kind, tools=BOTH, sampling=sampling(seed, 200, HOT, logit_bias=bias))
        said = "".join(stream)
        assert said == stream.result.text
        check(stream.result, kind, "auto", parallel=True)
        thought.add((bool(stream.result.reasoning), bool(stream.result.tool_calls), bool(stream.result.text)))
    assert len(thought) > 3, "with and without thoughts, calls, texts"
    for options in ({"reasoning": True}, {"reasoning": False}, {"max_reasoning_chars": 9}):
        with pytest.raises(gs.UnsupportedFeature, match=rf"{next(iter(options))}(?s:.*)reasoning_effort"):
            model.run("Hi", tools=BOTH, sampling=sampling(), **options)  # type: ignore[call-overload]


def test_thoughts_are_told_again(family: Family) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "reasoning_content": "Ping it.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "pong"},
    ]
    with prompts(family("harmony", True)) as said:
        family("harmony", True).run(messages, tools=[PING], sampling=sampling())
    assert "<|channel|>analysis<|message|>Ping it.<|end|>" in said[0]


@pytest.mark.slow
def test_harmony_frames_answers_without_tools(family: Family) -> None:
    for special in (False, True):
        model = family("harmony", special)
        for result in model.samples("Hi", Sky, 3, sampling=sampling(5, 100)):
            check(result, Sky, "none", parallel=True)
        [one, other] = model.batch(["Hi", "Ho"], gs.regex("[a-c]").named("letter"), sampling=sampling())
        assert (one.captures, other.captures) == ({"letter": one.text}, {"letter": other.text})


# ---------------------------------------------------------------------- validators
def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("must be odd")
    return value


@gs.tool
def halve(number: Annotated[int, Field(ge=0, le=9), AfterValidator(odd)]) -> int:
    """Halve a number."""
    return number // 2


@pytest.mark.parametrize(
    ("name", "special"),
    tiers.some(
        [("hermes", True), ("hermes", False), tiers.slow("harmony", True), ("mistral-v3", True), ("json", False)],
        least=3,
    ),
)
def test_refused_arguments_are_told_to_the_model(family: Family, name: str, special: bool) -> None:
    model = family(name, special)
    options: dict[str, Any] = {"tools": [halve, PING], "tool_choice": "halve"}
    refused = 0
    even_or_odd = towards(model, **{"3": 1000.0, "4": 1000.0})
    for seed in range(8):
        try:
            result = model.run("Hi", sampling=sampling(seed, 200, HOT, logit_bias=even_or_odd), **options)
        except gs.ValidationFailed:
            refused += 1
        else:
            assert result.tool_calls[0].args.number % 2 == 1
    assert 0 < refused < 8
    with prompts(model) as said, pytest.raises(gs.ValidationFailed, match="after 3 attempts") as caught:
        model.run(
            "Hi", sampling=gs.Sampling(logit_bias=towards(model, **{"4": 99.0}), on_limit="close"), retries=2, **options
        )
    assert caught.value.errors == (("#/tool_calls/0/function/arguments/number", "Value error, must be odd"),)
    assert "number" in caught.value.text and "halve" in caught.value.text
    assert said[1].count("must be odd") == 1 and said[2].count("must be odd") == 2
    if name != "json":
        assert "halve returned" not in said[2]
    with pytest.raises(ValueError, match="cannot retry"):
        model.stream("Hi", retries=1, **options)


@pytest.mark.slow
@pytest.mark.property
def test_other_calls_are_not_run_where_one_is_refused(family: Family) -> None:
    model = family("hermes", True)
    bias = towards(model, **{"Ċ": 500.0, "4": 1000.0})
    with prompts(model) as said:
        for seed in range(tiers.draws(12, least=4)):
            with suppress(gs.ValidationFailed):
                model.run(
                    "Hi", tools=[halve, PING], tool_choice="required", retries=1,
                    sampling=sampling(seed, 300, HOT, logit_bias=bias),
                )  # fmt: skip
    assert any("This was not called" in one and "must be odd" in one for one in said)


def test_refused_answers_are_told_by_themselves(family: Family) -> None:
    model = family("harmony", True)
    digit = Annotated[int, Field(ge=0, le=9), AfterValidator(odd)]
    sample = sampling(logit_bias=towards(model, **{"4": 99.0, "f": 20.0}))
    with prompts(model) as said, pytest.raises(gs.ValidationFailed) as caught:
        model.run("Hi", digit, retries=1, tools=[PING], tool_choice="none", sampling=sample)
    assert caught.value.text == "4"
    assert said[1].count("<|channel|>") == 1, "no frame within the message"


# ---------------------------------------------------------------------- results
def test_captures_and_mapped_texts(family: Family) -> None:
    model = family("hermes", True)
    options: dict[str, Any] = {"tools": BOTH, "tool_choice": "none", "sampling": sampling(3, 20)}
    result = model.run("Hi", gs.text().map(len).named("length"), **options)
    assert result.output == len(result.text) and result.captures == {"length": result.output}
    result = model.run("Hi", "x" + gs.regex("[0-9]").map(int).named("digit"), **options)
    assert result.text == f"x{result.captures['digit']}" == result.output


def test_streams_show_answers_as_they_come(family: Family) -> None:
    for name, kind in (("json", dict[Literal["name", "note"], str]), ("hermes", Sky), ("harmony", Sky)):
        model = family(name, False)
        bias = towards(model, n=20.0) if name == "json" else {}
        for seed in range(20):
            stream = model.stream("Hi", kind, tools=BOTH, sampling=sampling(seed, logit_bias=bias))
            pieces = list(stream)
            assert "".join(pieces) == stream.result.text
            if not stream.result.tool_calls and len(pieces) > 3:
                break
        else:
            pytest.fail("no answer came in pieces")


def test_templates_know_their_variables(tiny_model_directory: Path) -> None:
    model = tiny(tiny_model_directory, (TEMPLATES / "hermes.jinja").read_text() + "{{ mood }}")
    with prompts(model) as said:
        model.run("Hi", tools=[PING], template={"mood": "glad"}, sampling=sampling())
    assert said[0].endswith("glad") and '"name": "ping"' in said[0]


@pytest.mark.combined
@pytest.mark.parametrize("arguments", ['{"city": "Rome", "days": 2}', {"city": "Rome", "days": 2}])
@pytest.mark.parametrize("content", [None, "I look.", [{"type": "text", "text": "I look."}]])
@pytest.mark.parametrize("name", ["hermes", "qwen-xml", "gemma-4", "mistral-v11", "pythonic"])
def test_earlier_calls(family: Family, name: str, arguments: Any, content: Any) -> None:
    call = {"id": "abcDEF123", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcDEF123", "content": [{"type": "text", "text": "rain"}]},
    ]
    with prompts(family(name, True)) as said:
        check(family(name, True).run(messages, Sky, tools=BOTH, sampling=sampling()), Sky, "auto", parallel=True)
    assert "Rome" in said[0] and "rain" in said[0] and "\\" not in said[0].replace("\\n", "")


# ---------------------------------------------------------------------- choices and mistakes
def test_choices_as_openai_has_them(family: Family) -> None:
    model = family("hermes", True)
    for choice in (
        {"type": "function", "function": {"name": "ping"}},
        {"type": "function", "name": "ping"},
        "ping",
    ):
        result = model.run("Hi", tools=BOTH, tool_choice=choice, sampling=sampling())  # type: ignore[call-overload]
        assert [call.name for call in result.tool_calls] == ["ping"]
    declared = {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}}
    assert model.run("Hi", tools=[declared], tool_choice="required", sampling=sampling()).tool_calls[0].args == {}


def test_mistakes(family: Family, plain: gs.Model, tiny_model_directory: Path) -> None:
    model = family("hermes", True)

    def refused(error: type[Exception], match: str, **options: Any) -> None:
        with pytest.raises(error, match=match):
            model.run("Hi", **options)
        with pytest.raises(error, match=match):
            model.stream("Hi", **options)

    refused(ValueError, r"tool_choice must be .*\(get_weather, ping\), not 'pong'", tools=BOTH, tool_choice="pong")
    refused(ValueError, "there are none, not 'required'", tool_choice="required")
    refused(ValueError, "there are none, not {'type'", tool_choice={"type": "function", "function": {"name": "ping"}})
    refused(ValueError, "chosen by its name or", tools=BOTH, tool_choice={"type": "custom"})
    refused(ValueError, "mode of allowed_tools", tools=BOTH, tool_choice={"type": "allowed_tools"})
    refused(ValueError, "tool_choice must be .* not None", tools=BOTH, tool_choice=None)
    refused(ValueError, "two tools are named ping", tools=[PING, PING])
    refused(ValueError, "no format of tool calls named 'homer'.* hermes", tools=BOTH, tool_format="homer")
    refused(ValueError, "no format of tool calls named 'homer'", tool_format="homer")
    refused(TypeError, r"write \[tool\]", tools=PING)
    refused(TypeError, r"write \[tool\]", tools=len)
    refused(TypeError, r"write \[tool\]", tools=PING.to_openai())
    refused(TypeError, "no function", tools=["ping"])
    refused(TypeError, "no option tool_choise\n.*tool_choice", tools=BOTH, tool_choise="none")
    with pytest.raises(gs.UnsupportedFeature, match="the chat template leaves out the tools get_weather, ping"):
        plain.run("Hi", tools=BOTH, tool_format="hermes")
    with pytest.raises(gs.GrammarspecError, match="has no chat template"):
        tiny(tiny_model_directory, None).run("Hi", tools=BOTH)
    unlike = tool("f", {"properties": {"a b": {"type": "string"}}})
    with pytest.raises(gs.UnsupportedFeature, match=r"'a b' in an XML tag, in tool calls of the format qwen-xml"):
        model.run("Hi", tools=[unlike], tool_format="qwen-xml")


def test_where_tools_cannot_be_given(plain: gs.Model) -> None:
    options: dict[str, Any] = {"tools": BOTH}
    for call in (
        lambda: plain("Hi", Sky, **options),
        lambda: plain.batch(["Hi"], Sky, **options),
        lambda: plain.samples("Hi", Sky, 2, sampling=sampling(), **options),
        lambda: asyncio.run(plain.abatch(["Hi"], Sky, **options)),
        lambda: asyncio.run(plain.asamples("Hi", Sky, 2, sampling=sampling(), **options)),
        lambda: gs.output(Sky, **options),
        lambda: gs.output(Sky)(str).using(plain, **options),
    ):
        with pytest.raises(TypeError, match=r"tools cannot be given here(?s:.*)gs\.run_tools"):
            call()


def test_options_of_tools_without_tools(plain: gs.Model) -> None:
    result = plain.run("Hi", Sky, tool_choice="auto", parallel=False, tool_format="hermes", sampling=sampling())
    for again in (
        plain.run("Hi", Sky, tool_choice="none", sampling=sampling()),
        plain.run("Hi", Sky, tools=[], sampling=sampling()),
        plain.run("Hi", Sky, sampling=sampling()),
    ):
        assert again.output == result.output and again.tool_calls == ()
