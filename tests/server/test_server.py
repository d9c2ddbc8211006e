"""The server, asked by OpenAI's own client: answers, streams, tools, refusals, limits, clients that leave."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, Field

import grammarspec as gs
from grammarspec.server.bodies import Asked
from grammarspec.server.prepared import Preparer
from tests.server.conftest import Running, serving

openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx")

ASK: list[Any] = [{"role": "user", "content": "Who?"}]
LONG = {"structured_outputs": {"regex": "[a-z]{1500,}"}}


class Person(BaseModel):
    name: str = Field(max_length=5)
    age: int = Field(ge=0, le=120)


def ask(server: Running, **options: Any) -> Any:
    given = {"model": "tiny", "messages": ASK, "max_tokens": 100, "temperature": 0, **options}
    return server.client().chat.completions.create(**given)


def tool(name: str, **properties: Any) -> Any:
    parameters = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS = [tool("add", a={"type": "integer", "maximum": 9}, b={"enum": [1, 2]}), tool("sky", city={"enum": ["Oslo"]})]


# ---------------------------------------------------------------------- answers
def test_typed_answers(tiny: Running) -> None:
    given = {"model": "tiny", "messages": ASK, "max_tokens": 100, "temperature": 1, "seed": -3}
    found = tiny.client().chat.completions.parse(response_format=Person, **given)
    assert isinstance(found.choices[0].message.parsed, Person)
    assert found.choices[0].finish_reason == "stop"
    with tiny.client().chat.completions.stream(response_format=Person, **given) as stream:
        events = list(stream)
        assert stream.get_final_completion().choices[0].message.parsed == found.choices[0].message.parsed
    assert sum(event.type == "content.delta" for event in events) > 1


def test_free_text_and_its_tokens(tiny: Running) -> None:
    found = ask(tiny, max_tokens=7)
    assert found.choices[0].finish_reason == "length"
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (len("Who?") + 1, 7)
    assert found.model == "tiny" and found.object == "chat.completion"
    pieces = list(ask(tiny, max_tokens=7, stream=True, stream_options={"include_usage": True}))
    assert (
        "".join(one.choices[0].delta.content or "" for one in pieces if one.choices) == found.choices[0].message.content
    )
    assert pieces[-1].usage == found.usage and pieces[-1].choices == []
    assert [one.usage for one in pieces[:-1]] == [None] * (len(pieces) - 1)


@pytest.mark.parametrize(
    ("asked", "pattern"),
    [
        ({"regex": "[0-9]{3}-x"}, "[0-9]{3}-x"),
        ({"choice": ["yes", "no"]}, "yes|no"),
        ({"grammar": 'start: "a" B+\nB: /[bc]/\n'}, "a[bc]+"),
        ({"grammar": 'root ::= "x" [0-9] "y"\n'}, "x[0-9]y"),
        ({"json": {"enum": [1, 22]}}, "1|22"),
        ({"json": '{"const": "k"}', "disable_any_whitespace": True}, '"k"'),
        ({"json_object": True}, r"\{.*"),
        ({"structural_tag": {"type": "structural_tag", "format": {"type": "const_string", "value": "v"}}}, "v"),
    ],
)
def test_structured_outputs(tiny: Running, asked: dict[str, Any], pattern: str) -> None:
    found = ask(tiny, max_tokens=30, extra_body={"structured_outputs": asked, "on_limit": "close"})
    assert re.fullmatch(pattern, found.choices[0].message.content, re.DOTALL)
    assert found.choices[0].finish_reason == "stop"


def test_json_objects_and_plain_text_are_formats(tiny: Running) -> None:
    found = ask(tiny, response_format={"type": "json_object"}, extra_body={"on_limit": "close"}, max_tokens=40)
    assert isinstance(json.loads(found.choices[0].message.content), dict)
    assert ask(tiny, response_format={"type": "text"}, max_tokens=2).usage.completion_tokens == 2


def test_several_texts(tiny: Running) -> None:
    asked = {"structured_outputs": {"regex": "[a-z]{8}"}}
    found = ask(tiny, n=3, temperature=2, seed=1, extra_body=asked)
    texts = [choice.message.content for choice in found.choices]
    assert [choice.index for choice in found.choices] == [0, 1, 2] and len(set(texts)) == 3
    again: dict[int, str] = {}
    for piece in ask(tiny, n=3, temperature=2, seed=1, extra_body=asked, stream=True):
        for choice in piece.choices:
            again[choice.index] = again.get(choice.index, "") + (choice.delta.content or "")
    assert [again[index] for index in range(3)] == texts


def test_stop_and_logprobs(tiny: Running) -> None:
    asked = {"structured_outputs": {"regex": "ab;cd"}}
    found = ask(tiny, stop=";", extra_body=asked, logprobs=True).choices[0]
    assert (found.message.content, found.finish_reason) == ("ab", "stop")
    assert [one.token for one in found.logprobs.content] == ["a", "b", ";"]
    assert all(one.logprob <= 0 for one in found.logprobs.content)


def assert_near(some: Any, others: Any) -> None:
    """Tokens and their alternatives are the same, and as probable but for the rounding behind other drafts."""
    for one, other in zip(some, others, strict=True):
        assert (one.token, one.bytes, one.logprob) == (other.token, other.bytes, pytest.approx(other.logprob, abs=1e-4))
        assert_near(getattr(one, "top_logprobs", ()), getattr(other, "top_logprobs", ()))


def test_log_probabilities_of_other_tokens(tiny: Running, tiny_model: gs.Model) -> None:
    """They are those of the model's logits, in a stream too, where the last event of a text has them."""
    import torch

    options = {
        "logprobs": True,
        "top_logprobs": 4,
        "max_tokens": 9,
        "extra_body": {"structured_outputs": {"regex": "[a-f]{5}"}},
    }
    found = ask(tiny, **options).choices[0]
    rendered = tiny_model.tokenizer.apply_chat_template(ASK, tokenize=False, add_generation_prompt=True)
    prompt = [*tiny_model.tokenizer.encode(rendered, add_special_tokens=False)]
    assert len(prompt) == ask(tiny, max_tokens=1).usage.prompt_tokens
    for one in found.logprobs.content:
        with torch.no_grad():
            logits = tiny_model.model(torch.tensor([prompt])).logits[0, -1]
        best = logits.log_softmax(-1)[: tiny_model.vocabulary.size].topk(4)
        assert [each.logprob for each in one.top_logprobs] == pytest.approx(best.values.tolist(), abs=1e-4)
        assert [bytes(each.bytes) for each in one.top_logprobs] == [
            tiny_model.vocabulary.decode([token]) for token in best.indices.tolist()
        ]
        assert one.logprob <= one.top_logprobs[0].logprob
        prompt += tiny_model.tokenizer.encode(one.token)
    events = [piece.choices[0] for piece in ask(tiny, stream=True, **options)]
    assert [one.logprobs is None for one in events] == [True] * (len(events) - 1) + [False]
    assert_near(events[-1].logprobs.content, found.logprobs.content)
    with tiny.client().chat.completions.stream(model="tiny", messages=ASK, temperature=0, **options) as stream:
        last = stream.get_final_completion().choices[0].logprobs
    assert_near(last.content, found.logprobs.content)

    given = {"model": "tiny", "prompt": "ab", "temperature": 0, "max_tokens": 6, "extra_body": options["extra_body"]}
    text = tiny.client().completions.create(logprobs=2, **given).choices[0]
    assert "".join(text.logprobs.tokens) == text.text and text.logprobs.text_offset == [0, 1, 2, 3, 4]
    assert all(len(one) <= 2 for one in text.logprobs.top_logprobs) and len(text.logprobs.token_logprobs) == 5
    plain = tiny.client().completions.create(logprobs=0, **given).choices[0].logprobs
    assert plain.top_logprobs == [{}] * 5
    assert plain.token_logprobs == pytest.approx(text.logprobs.token_logprobs, abs=1e-4)


def test_completions(tiny: Running, tiny_model: gs.Model) -> None:
    client = tiny.client()
    asked = {"structured_outputs": {"regex": "[a-z]{4}"}}
    one = client.completions.create(model="tiny", prompt="ab", temperature=0, extra_body=asked)
    same = client.completions.create(
        model="tiny", prompt=tiny_model.tokenizer.encode("ab"), temperature=0, extra_body=asked
    )
    assert one.choices[0].text == same.choices[0].text and re.fullmatch("[a-z]{4}", one.choices[0].text)
    assert one.usage.prompt_tokens == 2
    several = client.completions.create(model="tiny", prompt=["ab", "cd"], n=2, seed=1, extra_body=asked)
    assert [choice.index for choice in several.choices] == [0, 1, 2, 3]
    pieces = client.completions.create(model="tiny", prompt="ab", temperature=0, extra_body=asked, stream=True)
    assert "".join(piece.choices[0].text for piece in pieces) == one.choices[0].text


# ---------------------------------------------------------------------- tools
def joined(pieces: Any) -> list[Any]:
    """The calls of the pieces of one text."""
    calls: list[Any] = []
    for piece in pieces:
        for call in piece.choices[0].delta.tool_calls or []:
            if call.id is not None:
                calls.append(call)
            else:
                calls[call.index].function.arguments += call.function.arguments
    return calls


SKY = {"type": "function", "function": {"name": "sky"}}


def one_of(mode: str, *tools: Any) -> Any:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


@pytest.mark.parametrize("choice", ["required", SKY, "none", "auto", one_of("required", SKY), one_of("auto", SKY)])
@pytest.mark.parametrize("stream", [False, True])
def test_tools(tiny: Running, choice: Any, stream: bool) -> None:
    options = {"tools": TOOLS, "tool_choice": choice, "parallel_tool_calls": False, "extra_body": {"on_limit": "close"}}
    found = ask(tiny, stream=stream, **options)
    if stream:
        pieces = list(found)
        calls, reason = joined(pieces), pieces[-1].choices[0].finish_reason
    else:
        calls, reason = found.choices[0].message.tool_calls or [], found.choices[0].finish_reason
    if choice == "none":
        assert not calls
    if choice not in ("auto", "none", one_of("auto", SKY)):
        assert len(calls) == 1 and reason == "tool_calls"
    for call in calls:
        parameters = {one["function"]["name"]: one["function"]["parameters"] for one in TOOLS}[call.function.name]
        jsonschema.validate(json.loads(call.function.arguments), parameters)
        assert choice in ("required", "auto") or call.function.name == "sky"  # a choice may be a dict


def test_calls_are_streamed_while_they_are_written(tiny: Running) -> None:
    """Each piece of arguments is an event; OpenAI's client joins them to the same call as is not streamed."""
    options = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
    whole = ask(tiny, **options).choices[0].message.tool_calls[0].function
    events = [piece.choices[0] for piece in ask(tiny, stream=True, **options)]
    calls = [call for one in events for call in one.delta.tool_calls or []]
    assert (calls[0].function.name, calls[0].type, calls[0].id[:5]) == (whole.name, "function", "call_")
    assert len(calls) > 3 and {call.index for call in calls} == {0}
    assert all(call.id is None and call.function.name is None and call.function.arguments for call in calls[1:])
    assert json.loads("".join(call.function.arguments for call in calls)) == json.loads(whole.arguments)
    assert [one.finish_reason for one in events if one.finish_reason] == ["tool_calls"]

    given: dict[str, Any] = {"model": "tiny", "messages": ASK, "temperature": 0, "tools": TOOLS, "max_tokens": 100}
    with tiny.client().chat.completions.stream(tool_choice="required", parallel_tool_calls=False, **given) as stream:
        [call] = stream.get_final_completion().choices[0].message.tool_calls
    assert call.function.name == whole.name and json.loads(call.function.arguments) == json.loads(whole.arguments)


def test_several_calls_are_streamed_apart(tiny: Running, tiny_model: gs.Model) -> None:
    """The model is kept from ending, and the calls are closed within the budget: so there are several."""
    bias = {str(end): -100 for end in tiny_model.vocabulary.eos_token_ids}
    options = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 200, "logit_bias": bias}
    options |= {"extra_body": {"on_limit": "close"}}
    calls = joined(ask(tiny, stream=True, **options))
    found = ask(tiny, **options).choices[0].message.tool_calls
    assert len(calls) == len(found) > 1 and len({call.id for call in calls}) == len(calls)
    for call, same in zip(calls, found, strict=True):
        assert call.function.name == same.function.name
        assert json.loads(call.function.arguments) == json.loads(same.function.arguments)


def test_a_call_that_is_cut_short_ends_with_its_reason(tiny: Running) -> None:
    form = {"type": "function", "function": {"name": "add"}}
    events = [piece.choices[0] for piece in ask(tiny, stream=True, tools=TOOLS, tool_choice=form, max_tokens=45)]
    assert "".join(call.function.arguments for one in events for call in one.delta.tool_calls or []).startswith("{")
    assert events[-1].finish_reason == "length"


def test_results_of_tools_go_back(tiny: Running) -> None:
    message = ask(tiny, tools=TOOLS, tool_choice="required", parallel_tool_calls=False).choices[0].message
    chat = [
        *ASK,
        {**message.model_dump(), "annotations": []},
        {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "3"},
    ]
    found = ask(tiny, messages=chat, tools=TOOLS, tool_choice="none", response_format={"type": "json_schema",
                "json_schema": {"name": "n", "strict": True, "schema": {"enum": [7]}}})  # fmt: skip
    assert found.choices[0].message.content == "7"


# ---------------------------------------------------------------------- refusals
def called(arguments: str) -> dict[str, Any]:
    """A message with a call of a tool."""
    function = {"name": "add", "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


@pytest.mark.parametrize(
    ("options", "param", "said"),
    [
        ({"no_such_field": 1}, "no_such_field", "not supported"),
        ({"guided_json": {}}, "guided_json", "hint: structured_outputs"),
        ({"top_logprobs": 3}, "top_logprobs", "only with logprobs"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs", "from 0 to 20"),
        ({"logprobs": 3}, "logprobs", "a boolean"),
        ({"temperature": "hot"}, "temperature", "must be a number"),
        ({"temperature": -1}, "temperature", "temperature must be 0"),
        ({"top_p": 0}, "top_p", "above 0"),
        ({"n": 2}, "n", "at temperature 0"),
        ({"n": 17, "temperature": 1}, "n", "from 1 to 16"),
        ({"max_tokens": 5000}, "max_tokens", "2048"),
        ({"max_tokens": True}, "max_tokens", "an integer"),
        ({"max_completion_tokens": 5000}, "max_completion_tokens", "max_completion_tokens must be from 1 to 2048"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens", "different values"),
        ({"stop": [1]}, "stop", "texts"),
        ({"stop": ["\ud800"]}, "stop", "lone surrogates"),
        ({"best_of": 2}, "best_of", "hint: use n"),
        ({"verbosity": "low"}, "verbosity", "hint: say in a message"),
        ({"logit_bias": {"x": 1}}, "logit_bias", "by their numbers"),
        ({"logit_bias": {"9999": 1}}, "logit_bias", "9999"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "only with stream=true"),
        ({"store": True}, "store", "does not store"),
        ({"modalities": ["audio"]}, "modalities", 'must be ["text"]'),
        ({"messages": []}, "messages", "no messages"),
        ({"messages": [{"role": "user"}]}, "messages", "content"),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, "messages", "context"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages", "surrogate"),
        ({"messages": ["hi"]}, "messages[0]", "object"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, "messages[0].role", "'wizard' is not supported"),
        ({"messages": [{"role": "user", "content": "hi", "name": [[]]}]}, "messages", "name must be a text"),
        ({"messages": [*ASK, called("[" * 900 + "]" * 900)]}, "messages", "object"),
        ({"messages": [*ASK, called("[" * 50_000)]}, "messages", "nested too deeply"),
        ({"messages": [*ASK, called('{"a": ' * 900 + "1" + "}" * 900)]}, "messages", "nested too deeply"),
        ({"messages": [{"role": "user", "content": "hi", "prefix": True}]}, "messages[0].prefix", "not supported"),
        ({"messages": [*ASK, {"role": "assistant", "content": "x", "refusal": "no"}]}, "messages[1].refusal", "not"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b",
          "cache_control": {}}]}]}, "messages[0].content[1].cache_control", "not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
         "messages", "no images"),
        ({"chat_template_kwargs": {"chat_template": "x"}}, "chat_template_kwargs.chat_template", "can be set"),
        ({"reasoning_effort": "low"}, "reasoning_effort", "no variable"),
        ({"chat_template_kwargs": {"reasoning_effort": "low"}}, "chat_template_kwargs.reasoning_effort", "no variable"),
        (
            {"chat_template_kwargs": {"reasoning_effort": "low"}, "reasoning_effort": "high"},
            "reasoning_effort",
            "give it once",
        ),
        ({"tool_choice": "auto"}, "tool_choice", "no tools"),
        ({"tools": [{"type": "code"}]}, "tools[0]", "function"),
        ({"tools": TOOLS, "tool_choice": "no_such"}, "tool_choice", "no_such"),
        ({"tools": TOOLS, "tool_choice": one_of("auto", tool("no_such"))}, "tool_choice", "no_such"),
        ({"tools": TOOLS, "tool_choice": one_of("auto")}, "tool_choice", "tools of allowed_tools"),
        ({"tools": TOOLS, "tool_choice": one_of("none", SKY)}, "tool_choice", "mode"),
        ({"tools": [tool("f", a={"type": "nothing"})]}, "tools", "#/properties/a/type"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "xml"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "missing"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "#/no"}}}},
            "response_format.json_schema.schema",
            "#/$ref",
        ),
        ({"structured_outputs": {"regex": "("}}, "structured_outputs.regex", "line 1, column"),
        ({"structured_outputs": {"regex": r"(a)\1"}}, "structured_outputs.regex", "backreference"),
        ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs", "one of"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice", "no texts"),
        ({"structured_outputs": {"choice": [1]}}, "structured_outputs.choice", "element 0"),
        ({"structured_outputs": {"grammar": "start: x"}}, "structured_outputs.grammar", "x"),
        ({"structured_outputs": {"json": {"allOf": [{"type": "string"}, {"type": "null"}]}}},
         "structured_outputs.json", "no"),
        ({"structured_outputs": {"regex": "a{30}"}, "max_tokens": 5, "on_limit": "close"}, "max_tokens", "raise"),
        ({"messages": [{"role": "user", "content": "x" * 3000}], "structured_outputs": {"regex": "a{1800}"},
          "on_limit": "close"}, "messages", "shorten the prompt"),
        ({"structured_outputs": {"json": {"oneOf": [{"type": "string", "pattern": f"a.{{{n}}}b"} for n in range(60)]}}},
         "structured_outputs.json", "limits are set where it is started"),
        ({"structured_outputs": {"regex": "a{30}"}, "max_completion_tokens": 5, "on_limit": "close"},
         "max_completion_tokens", "raise"),
    ],
)  # fmt: skip
def test_what_is_refused(tiny: Running, options: dict[str, Any], param: str, said: str) -> None:
    response = tiny.post(json.dumps({"model": "tiny", "messages": ASK, "temperature": 0, **options}).encode())
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (400, "invalid_request_error"), error
    assert said in error["message"], error
    assert error["param"] == param, error
    assert error["code"]


def test_bodies_that_are_none(tiny: Running) -> None:
    for body in (b"", b"{", b"[]", b'{"model": NaN}', b"[" * 100_000, b"\xff", b"null", b"1" * 10_000):
        assert tiny.post(body).status_code == 400, body[:20]
    assert tiny.post(b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert tiny.post(b"{}", "/v1/embeddings").status_code == 404
    assert tiny.post({"messages": ASK}).json()["error"]["param"] == "model"
    with pytest.raises(openai.NotFoundError) as error:
        ask(tiny, model="gpt-9")
    assert error.value.code == "model_not_found"


@pytest.mark.parametrize(
    "body",
    [
        rb'{"model":"tiny","messages":[],"\ud800":1}',
        rb'{"model":"tiny","messages":[{"role":"user","content":"a","\ud800":1}]}',
    ],
)
def test_names_that_are_no_text_are_refused(tiny: Running, body: bytes) -> None:
    """The error holds what has no bytes; and the request waits no longer."""
    response = tiny.post(body)
    assert response.status_code == 400
    assert "\\ud800" in response.text
    tiny.wait_for("grammarspec_waiting_requests", 0)


def test_models_health_and_unknown_pages(tiny: Running) -> None:
    assert [one.id for one in tiny.client().models.list()] == ["tiny"]
    assert tiny.client().models.retrieve("tiny").owned_by == "grammarspec"
    with pytest.raises(openai.NotFoundError):
        tiny.client().models.retrieve("other")
    assert httpx.get(f"{tiny.url}/health").json() == {"status": "ok"}
    error = httpx.get(f"{tiny.url}/no").json()["error"]
    assert (error["code"], error["message"]) == ("not_found", "/no does not exist on this server")
    response = httpx.get(f"{tiny.url}/v1/completions")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.json()["error"]["message"] == "/v1/completions takes POST, not GET"


def test_keys(tiny_model: gs.Model) -> None:
    with serving(tiny_model, api_key="secret") as server:
        for key in ("none", "secre", "sécret"):
            sent = {"authorization": f"Bearer {key}".encode()}
            assert server.post({"model": "tiny", "messages": ASK}, headers=sent).status_code == 401
        assert httpx.get(f"{server.url}/v1/models").status_code == 401
        assert server.client(api_key="secret").models.list().data
        assert httpx.get(f"{server.url}/health").status_code == 200


# ---------------------------------------------------------------------- together
def test_one_that_fails_leaves_the_others_alone(tiny: Running) -> None:
    """Schemas that differ, hostile ones and clients that leave, in one running batch."""
    nested: Any = {"type": "string"}
    for _ in range(5):
        nested = {"type": "array", "items": nested, "maxItems": 99}
    patterns = {"type": "string", "allOf": [{"pattern": f"a.{{{n}}}b.{{{n + 1}}}"} for n in range(60, 90)]}

    def good(number: int) -> bool:
        schema = {"type": "object", "properties": {f"p{number}": {"enum": [number, "x"]}}, "required": [f"p{number}"],
                  "additionalProperties": False}  # fmt: skip
        form = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
        jsonschema.validate(json.loads(ask(tiny, response_format=form).choices[0].message.content), schema)
        return True

    def bad(schema: Any) -> bool:
        try:
            ask(tiny, extra_body={"structured_outputs": {"json": schema}}, max_tokens=5)
        except openai.BadRequestError as error:
            return error.code == "limit-exceeded"
        return True  # it could be done

    with ThreadPoolExecutor(16) as pool:
        found = [pool.submit(good, number) for number in range(10)]
        found += [
            pool.submit(bad, schema) for schema in (nested, patterns, {"type": "string", "pattern": "(a?){900}a{900}"})
        ]
        assert all(one.result(timeout=120) for one in found)


def test_clients_that_leave_end_their_texts(tiny_model: gs.Model) -> None:
    with serving(tiny_model) as server:
        stream = ask(server, max_tokens=2000, extra_body=LONG, stream=True)
        next(iter(stream))
        assert server.metrics()["grammarspec_running_texts"] == 1
        stream.close()
        server.wait_for("grammarspec_running_texts", 0)
        body = {"model": "tiny", "messages": ASK, "max_tokens": 2000, **LONG}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=0.3)
        server.wait_for("grammarspec_cancelled_total", 2)
        server.wait_for("grammarspec_running_texts", 0)
        assert server.metrics()["grammarspec_generated_tokens_total"] == 0  # of texts that have ended
        assert ask(server, max_tokens=3).usage.completion_tokens == 3


def test_the_queue_is_bounded(tiny_model: gs.Model) -> None:
    with serving(tiny_model, max_batch=1, max_waiting=1) as server:
        stream = ask(server, max_tokens=2000, extra_body=LONG, stream=True)
        next(iter(stream))
        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(ask, server, max_tokens=2)
            server.wait_for("grammarspec_waiting_requests", 1)
            with pytest.raises(openai.RateLimitError) as error:
                ask(server)
            assert error.value.response.headers["retry-after"] == "1" and error.value.code == "queue_full"
            stream.close()
            assert waits.result(timeout=60).usage.completion_tokens == 2


def test_bodies_that_do_not_arrive_hold_no_place(tiny_model: gs.Model) -> None:
    with serving(tiny_model, max_waiting=1, max_body=1000) as server, ExitStack() as stack:
        host, port = server.url.removeprefix("http://").split(":")

        def begin(sent: int) -> socket.socket:
            slow = stack.enter_context(socket.create_connection((host, int(port))))
            slow.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                         b"Content-Length: 999\r\n\r\n" + b" " * sent)  # fmt: skip
            return slow

        for _ in range(9):
            begin(1)
        assert ask(server, max_tokens=2).usage.completion_tokens == 2
        begin(900)
        begin(900)
        assert b"429" in begin(900).recv(99)  # there is no memory for so many


def test_known_grammars_wait_for_no_new_ones(tiny_model: gs.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    works, go_on = Preparer._works, threading.Event()

    def slow(self: Preparer, asked: Asked, *others: Any) -> Any:
        if asked.answer is not None and asked.answer.declaration == "[cd]":
            go_on.wait(60)
        return works(self, asked, *others)

    monkeypatch.setattr(Preparer, "_works", slow)
    known, new = ({"structured_outputs": {"regex": pattern}} for pattern in ("[ab]", "[cd]"))
    with serving(tiny_model) as server, ThreadPoolExecutor(4) as pool:
        ask(server, extra_body=known)
        waiting = [pool.submit(ask, server, extra_body=new) for _ in range(4)]
        server.wait_for("grammarspec_waiting_requests", 4)
        assert ask(server, extra_body=known).choices[0].message.content in ("a", "b")
        assert ask(server, max_tokens=2).usage.completion_tokens == 2
        assert not any(one.done() for one in waiting)
        go_on.set()
        assert all(one.result().choices[0].message.content in ("c", "d") for one in waiting)


def test_requests_with_several_prompts_wait_as_one(tiny_model: gs.Model) -> None:
    def complete(server: Running, count: int, **options: Any) -> Any:
        prompts = [f"prompt {number}" for number in range(count)]
        return server.client().completions.create(model="tiny", prompt=prompts, temperature=0, **options)

    with serving(tiny_model, max_batch=3, max_waiting=1) as server, ThreadPoolExecutor(1) as pool:
        stream = complete(server, 3, max_tokens=2000, extra_body=LONG, stream=True)
        next(iter(stream))
        server.wait_for("grammarspec_waiting_requests", 0)
        waits = pool.submit(complete, server, 2, max_tokens=2)
        server.wait_for("grammarspec_waiting_requests", 1)
        with pytest.raises(openai.RateLimitError):
            complete(server, 2)
        stream.close()
        assert len(waits.result(timeout=60).choices) == 2
        server.wait_for("grammarspec_waiting_requests", 0)
    with serving(tiny_model, max_batch=3) as server, ThreadPoolExecutor(1) as pool:
        stream = complete(server, 2, max_tokens=2000, extra_body=LONG, stream=True)
        next(iter(stream))
        waits = pool.submit(complete, server, 2, max_tokens=500, extra_body=LONG)
        server.wait_for("grammarspec_running_texts", 3)
        assert server.metrics()["grammarspec_waiting_requests"] == 1  # for its second text
        stream.close()
        assert len(waits.result(timeout=60).choices) == 2


def test_long_and_slow_bodies(tiny_model: gs.Model) -> None:
    with serving(tiny_model, max_body=1000, body_timeout=0.3) as server:
        response = server.post({"model": "tiny", "messages": [{"role": "user", "content": "x" * 1000}]})
        assert (response.status_code, response.json()["error"]["code"]) == (413, "body_too_large")
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                         b"Content-Length: 99\r\n\r\n{")  # fmt: skip
            assert b"408" in slow.recv(99)


def test_stopping_the_server_ends_what_is_under_way(tiny_model: gs.Model) -> None:
    ends: list[Any] = []

    def read(stream: Any) -> None:
        try:
            ends.append(list(stream))
        except (openai.APIError, httpx.HTTPError) as error:
            ends.append(error)

    with serving(tiny_model) as server:
        stream = ask(server, max_tokens=12, extra_body={"structured_outputs": {"regex": "[a-z]{10}"}}, stream=True)
        next(iter(stream))
        reader = threading.Thread(target=read, args=[stream])
        reader.start()
        time.sleep(0.05)
    reader.join(10)
    assert isinstance(ends[0], list)  # there was time for it


def test_metrics(tiny_model: gs.Model) -> None:
    with serving(tiny_model) as server:
        ask(
            server, response_format={"type": "json_schema", "json_schema": {"name": "p", "schema": {"const": "abcdef"}}}
        )
        server.post({"model": "tiny", "messages": []})
        found = server.metrics()
        assert found['grammarspec_requests_total{endpoint="chat",status="200"}'] == 1
        assert found['grammarspec_requests_total{endpoint="chat",status="400"}'] == 1
        assert found["grammarspec_running_texts"] == found["grammarspec_waiting_requests"] == 0
        assert found["grammarspec_generated_tokens_total"] == len('"abcdef"') + 1
        assert found["grammarspec_prompt_tokens_total"] == len("Who?") + 1
        assert found["grammarspec_rounds_total"] > 0
        assert found['grammarspec_phase_seconds_total{phase="mask"}'] > 0
        assert found["grammarspec_request_seconds_count"] == 2
        assert found["grammarspec_cache_misses_total"] == found["grammarspec_cache_entries"] == 1
        assert found["grammarspec_cache_hits_total"] == found["grammarspec_cache_failures_total"] == 0
        assert found["grammarspec_cache_bytes"] > 1000
