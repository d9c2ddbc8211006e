"""Reads the bodies of requests: from JSON to an :class:`Asked`. Each field is supported, or refused.

The fields are those of OpenAI, and those of vLLM where OpenAI has none (``structured_outputs``, ``top_k``, ...).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from grammarspec.decoding import Sampling
from grammarspec.server.fields import RequestFields
from grammarspec.server.refusals import Refused
from grammarspec.server.settings import Settings
from grammarspec.serving.requests import Request

__all__ = ["Asked", "chat", "completion", "parsed"]

_IGNORED = {"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
"""Fields that are accepted but have no effect, as they do not change answers. So is ``store`` if it is false."""

_USE = "structured_outputs takes json, regex, choice, grammar and structural_tag"
_HINTS = {
    "functions": "use tools",
    "function_call": "use tool_choice",
    "guided_json": _USE,
    "guided_regex": _USE,
    "guided_choice": _USE,
    "guided_grammar": _USE,
    "best_of": "use n",
    "verbosity": "say in a message how long the answer has to be",
    "min_tokens": "a grammar can say how long a text has to be",
}
_TEMPLATE = {"enable_thinking", "thinking", "reasoning_effort"}
"""Variables of chat templates that requests may set."""

_SAMPLING = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
_MOST_STOPS = 16
_MOST_TOP = 20  # OpenAI's bound of top_logprobs


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for.

    Attributes:
        prompts: each is a list of messages (of a chat), a text, or a list of tokens.
        sampling: how tokens are chosen.
        n: the number of texts for each prompt.
        answer: the grammar of the answer; ``None``: free text.
        answer_field: the field of the body that has this grammar, for errors.
        tools, tool_choice, parallel: the tools, which of them may be called, and whether several calls may be made.
        template: variables for the chat template.
        reasoning_effort: its variable of this name, if the field of this name gives it.
        stream, include_usage: whether the answer is streamed, and whether the stream ends with the numbers of tokens.
        logprobs: whether log-probabilities are asked for.
        budget_field: the field of the body that gives, or can give, the largest number of tokens, for errors.
    """

    prompts: list[Any]
    sampling: Sampling
    n: int
    answer: Request | None
    answer_field: str | None
    stream: bool
    include_usage: bool
    logprobs: bool
    budget_field: str
    tools: tuple[Any, ...] = ()
    tool_choice: Any = "auto"
    parallel: bool = True
    template: Mapping[str, Any] | None = None
    reasoning_effort: str | None = None


def parsed(data: bytes) -> Any:
    """The JSON of a body.

    Raises:
        Refused: the body is not JSON.
    """

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not valid JSON")

    try:
        return json.loads(data.decode("utf-8"), parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not valid JSON: {error}", code="invalid_json") from None


def chat(body: Any, settings: Settings, special_tokens: Mapping[str, int]) -> Asked:
    """A request for a chat completion.

    Args:
        body: the JSON value of the body.
        settings: the settings of the server.
        special_tokens: the special tokens of the model, by name.

    Raises:
        Refused: a field is unknown, not supported, or has a wrong value; or the server does not have the model.
    """
    fields = RequestFields(body)
    _check_model(fields, settings)
    messages = [_message(one, f"messages[{at}]") for at, one in enumerate(fields.need("messages", list))]
    most, budget = _budget(fields, settings, "max_completion_tokens", "max_tokens")
    if fields.take("modalities", list, default=["text"]) != ["text"]:
        raise Refused('modalities must be ["text"]', "modalities", "unsupported_field")
    logprobs = fields.take("logprobs", bool, default=False)
    top = fields.within("top_logprobs", 0, _MOST_TOP, 0)
    if top and not logprobs:
        raise Refused("top_logprobs is allowed only with logprobs=true", "top_logprobs")
    answer, field = _answer(fields, special_tokens)
    tools = tuple(fields.take("tools", list, default=[]))
    choice = fields.take("tool_choice", str, dict)
    if choice is not None and choice != "none" and not tools:
        raise Refused("tool_choice is given, but the request has no tools", "tool_choice")
    parallel = fields.take("parallel_tool_calls", bool, default=True)
    template, effort = _template(fields)
    stream, usage = _stream(fields)
    sampling, n = _sampling(fields, most, settings, top if logprobs else None)
    fields.drop("verbosity", "medium")
    fields.done(_HINTS)
    choice = choice or "auto"
    asked = Asked([messages], sampling, n, answer, field, stream, usage, logprobs, budget, tools, choice, parallel)
    return replace(asked, template=template, reasoning_effort=effort)


def completion(body: Any, settings: Settings, special_tokens: Mapping[str, int]) -> Asked:
    """A request for a completion; arguments as for :func:`chat`.

    Raises:
        Refused: as :func:`chat`.
    """
    fields = RequestFields(body)
    _check_model(fields, settings)
    given = fields.need("prompt", str, list)
    several = isinstance(given, list) and not (given and all(type(one) is int for one in given))
    prompts = given if several else [given]
    if not prompts:
        raise Refused("prompt must not be empty", "prompt")
    for at, one in enumerate(prompts):
        tokens = isinstance(one, list) and one and all(type(token) is int for token in one)
        if not one or not (isinstance(one, str) or tokens):
            raise Refused(f"prompt[{at}] must be a string or a list of tokens, and not empty", "prompt")
    if fields.take("echo", bool, default=False):
        raise Refused("echo is not supported", "echo", "unsupported_field")
    most, budget = _budget(fields, settings, "max_tokens")
    answer, field = _answer(fields, special_tokens)
    stream, usage = _stream(fields)
    top = fields.within("logprobs", 0, _MOST_TOP, 0) if "logprobs" in fields else None
    sampling, n = _sampling(fields, most, settings, top)
    fields.drop("best_of", n)
    fields.done(_HINTS)
    if n * len(prompts) > settings.max_batch:
        texts = f"the request asks for {n * len(prompts)} texts"
        raise Refused(f"{texts}, but this server generates at most {settings.max_batch} together", "prompt")
    return Asked(list(prompts), sampling, n, answer, field, stream, usage, top is not None, budget)


def _check_model(fields: RequestFields, settings: Settings) -> None:
    for name in _IGNORED:
        fields.take(name)
    if fields.take("store", bool, default=False):
        raise Refused("this server does not store anything", "store", "unsupported_field")
    model = fields.need("model", str)
    if model != settings.name:
        text = f"the model {model!r:.80} does not exist; this server serves {settings.name!r}"
        raise Refused(text, "model", "model_not_found", 404)


def _message(message: Any, where: str) -> Any:
    """A message for the chat template. The role ``developer``, OpenAI's newer name for it, becomes ``system``."""
    if not isinstance(message, dict):
        raise Refused(f"{where} must be an object", where)
    found = {name: value for name, value in message.items() if value is not None or name == "content"}
    if found.get("role") == "developer":
        found["role"] = "system"
    if found.get("annotations") == []:  # clients send back what OpenAI's API has answered
        del found["annotations"]
    return found


def _stream(fields: RequestFields) -> tuple[bool, bool]:
    stream = fields.take("stream", bool, default=False)
    if "stream_options" not in fields:
        return stream, False
    if not stream:
        raise Refused("stream_options are allowed only with stream=true", "stream_options")
    options = RequestFields(fields.take("stream_options"), "stream_options")
    usage = options.take("include_usage", bool, default=False)
    options.take("include_obfuscation", bool)  # with OpenAI, it only adds padding to events
    options.done()
    return stream, usage


def _template(fields: RequestFields) -> tuple[dict[str, Any], str | None]:
    """The variables for the chat template, and the field ``reasoning_effort``, which is another one.

    Raises:
        Refused: a variable cannot be set or has a wrong value, or is given twice.
    """
    given: dict[str, Any] = fields.take("chat_template_kwargs", dict, default={})
    for name, value in given.items():
        if name not in _TEMPLATE or not isinstance(value, bool | str):
            known = ", ".join(sorted(_TEMPLATE))
            text = f"the variables of the chat template that can be set, to a boolean or a string, are {known}"
            raise Refused(text, f"chat_template_kwargs.{name}")
    effort = fields.take("reasoning_effort", str)
    if effort is not None and "reasoning_effort" in given:
        raise Refused("reasoning_effort is also given in chat_template_kwargs: give it once", "reasoning_effort")
    return given, effort


def _budget(fields: RequestFields, settings: Settings, *names: str) -> tuple[int, str]:
    """The largest number of tokens of a text, and the field that gives it.

    Args:
        fields: the fields of the body.
        settings: the settings of the server.
        names: the fields that can give it; the last is the one to set if the request has none of them.

    Raises:
        Refused: a field is out of range, or two fields have different values.
    """
    given = {name: fields.within(name, 1, settings.max_tokens, 1) for name in names if name in fields}
    if len(set(given.values())) > 1:
        raise Refused(f"{' and '.join(given)} have different values: give only one of them", names[-1])
    field, most = next(iter(given.items()), (names[-1], settings.max_tokens))
    return most, field


def _sampling(fields: RequestFields, most: int, settings: Settings, top: int | None) -> tuple[Sampling, int]:
    """How tokens are chosen, and the number of texts.

    Args:
        fields: the fields of the body.
        most: the largest number of tokens of a text.
        settings: the settings of the server.
        top: how many most probable tokens are reported at each position; ``None``: no log-probabilities are asked for.

    Raises:
        Refused: a field has a wrong value, or two fields cannot be combined.
    """
    n = fields.within("n", 1, settings.max_batch, 1)
    options: dict[str, Any] = {name: fields.take(name, float) for name in _SAMPLING}
    options = {"temperature": 1.0, **{name: value for name, value in options.items() if value is not None}}
    top_k = fields.take("top_k", int)
    seed = fields.take("seed", int)
    stop = fields.take("stop", str, list, default=[])
    stops = [stop] if isinstance(stop, str) else stop
    if len(stops) > _MOST_STOPS:
        raise Refused(f"stop has {len(stops)} texts, but at most {_MOST_STOPS} are allowed", "stop")
    closes = fields.among("on_limit", ("cut", "close"), "cut") == "close"
    if top is not None and closes:
        raise Refused(
            'logprobs cannot be combined with on_limit="close", which appends tokens that the model has not scored',
            "logprobs",
        )
    bias = fields.take("logit_bias", dict, default={})
    if n > 1 and options["temperature"] == 0:
        raise Refused("at temperature 0 all texts are the same: set n to 1, or a higher temperature", "n")
    try:
        sampling = Sampling(
            **options,
            top_k=None if top_k in (None, -1, 0) else top_k,
            seed=None if seed is None else seed % (1 << 64),  # OpenAI's seeds may be negative
            max_tokens=most,
            on_limit="close" if closes else "cut",
            stop=stops,
            logit_bias={_token(name): _bias(value) for name, value in bias.items()},
            logprobs=top is not None,
            top_logprobs=top or 0,
        )
    except (TypeError, ValueError) as error:
        raise Refused(str(error), str(error).partition(" ")[0]) from None
    return sampling, n


def _token(name: str) -> int:
    if not (name.isascii() and name.isdigit() and len(name) < 12):
        raise ValueError(f"logit_bias must name tokens by their numbers, not {name!r:.40}")
    return int(name)


def _bias(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -100 <= value <= 100:
        raise ValueError(f"logit_bias must give tokens values from -100 to 100, not {value!r:.40}")
    return float(value)


# ---------------------------------------------------------------------- the grammar of the answer
def _answer(fields: RequestFields, special_tokens: Mapping[str, int]) -> tuple[Request | None, str | None]:
    """The grammar of the answer, and the field that has it; ``None`` twice for free text."""
    form = fields.take("response_format", dict)
    structured = fields.take("structured_outputs", dict)
    if form is None:
        return _structured(structured, special_tokens) if structured is not None else (None, None)
    if structured is not None:
        raise Refused("response_format and structured_outputs cannot be combined", "structured_outputs")
    found = RequestFields(form, "response_format")
    kind = found.need("type", str)
    if kind == "structural_tag":
        return _tag(form, special_tokens), "response_format"
    if kind == "json_schema":
        schema = RequestFields(found.need("json_schema", dict), "response_format.json_schema")
        schema.need("name", str)
        schema.take("description", str)
        schema.take("strict", bool)  # schemas are always enforced
        asked = schema.need("schema", dict, bool)
        schema.done()
        found.done()
        return Request.json_schema(asked), "response_format.json_schema.schema"
    found.done()
    if kind == "json_object":
        return Request.json_object(), "response_format"
    if kind == "text":
        return None, None
    raise Refused(
        f"response_format.type must be text, json_object, json_schema or structural_tag, not {kind!r:.40}",
        "response_format.type",
    )


def _structured(given: dict[str, Any], special_tokens: Mapping[str, int]) -> tuple[Request, str]:
    """vLLM's ``structured_outputs``."""
    where = "structured_outputs"
    fields = RequestFields(given, where)
    options: dict[str, Any] = {}
    if fields.take("disable_any_whitespace", bool, default=False):
        options["whitespace"] = "compact"
    if fields.take("disable_additional_properties", bool, default=False):
        options["additional_properties"] = False
    if (blanks := fields.take("whitespace_pattern", str)) is not None:
        options["whitespace_pattern"] = blanks
    if fields.take("json_object", bool, default=False):
        found = "json_object", Request.json_object(**options)
        fields.done()
        return found[1], f"{where}.json_object"
    present = [name for name in ("json", "regex", "choice", "grammar", "structural_tag") if name in fields]
    if len(present) != 1:
        raise Refused(
            f"{where} must have exactly one of json, json_object, regex, choice, grammar and structural_tag", where
        )
    [kind] = present
    if options and kind != "json":
        raise Refused(f"{where}: options for JSON cannot be combined with {kind}", where)
    if kind == "json":
        request = Request.json_schema(fields.take(kind, dict, bool, str), **options)
    elif kind == "regex":
        request = Request.regex(fields.take(kind, str))
    elif kind == "choice":
        request = Request.choice(fields.take(kind, list))
    elif kind == "grammar":
        request = Request.grammar(fields.take(kind, str))
    else:
        request = _tag(fields.take(kind, dict, str), special_tokens)
    fields.done()
    return request, f"{where}.{kind}"


def _tag(tag: Any, special_tokens: Mapping[str, int]) -> Request:
    """A structural tag, with the special tokens that it names; with all of them if it may name tokens by number."""
    shown = tag if isinstance(tag, str) else json.dumps(tag, ensure_ascii=False)
    by_number = "token" in shown
    named = {name: number for name, number in special_tokens.items() if by_number or name in shown}
    return Request.structural_tag(tag, special_tokens=named)
