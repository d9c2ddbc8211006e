"""Starts ``vllm serve`` with grammarspec inside, and asks it as clients do: run by the Python of vLLM's environment.

``python -m tests.integrations.vllm_checks MODEL_DIRECTORY``. The server listens on 127.0.0.1, and is stopped at the
end. Every finished text is judged by ``jsonschema``, Python's ``re`` or by comparing, never by grammarspec. A failure
is an ``AssertionError``; at the end, one line of JSON tells what was measured.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import jsonschema
import openai

STARTS_WITHIN, ANSWERS_WITHIN = 1800, 900  # seconds: a busy machine takes long
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"enum": [1, 2, 3]}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
TIME = {
    "type": "function",
    "function": {
        "name": "time",
        "parameters": {
            "type": "object",
            "properties": {"zone": {"enum": ["UTC", "CET"]}},
            "required": ["zone"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
TOOLS = [WEATHER, TIME]


@contextmanager
def server(model: str, log: Path, *options: str, **environment: str) -> Iterator[tuple[openai.OpenAI, int]]:
    """A server of its own: a client of it, and the number of its session, which all of its processes have."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(Path(sys.executable).with_name("vllm")), "serve", model, "--host", "127.0.0.1", "--port", str(port),
        "--served-model-name", "smollm2", "--max-model-len", "1024", "--enforce-eager", "--dtype", "float32",
        "--max-num-seqs", "32", "--structured-outputs-config.backend", "grammarspec", *options,
    ]  # fmt: skip
    variables = {
        **os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1", **environment,
    }  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=variables, start_new_session=True)
    client = openai.OpenAI(
        base_url=f"http://127.0.0.1:{port}/v1", api_key="none", timeout=ANSWERS_WITHIN, max_retries=0
    )
    try:
        until = time.monotonic() + STARTS_WITHIN
        while True:
            try:
                client.models.list()
                break
            except openai.APIConnectionError:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the server did not start:\n{log.read_text()[-5000:]}") from None
                time.sleep(1)
        yield client, process.pid
        assert process.poll() is None, f"the server has ended:\n{log.read_text()[-5000:]}"
    finally:
        process.terminate()  # not its engine, whose end would be an error to it
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def logged(log: Path) -> str:
    """What a server has logged until it was told to stop: vLLM may stop its engine before what waits for it."""
    return log.read_text().partition("[shutdown]")[0]


class Asker:
    """Asks a server, and judges what it answers."""

    def __init__(self, client: openai.OpenAI) -> None:
        self.client = client
        self.finished = self.cut = 0

    def ask(self, prompt: str, *, max_tokens: int = 120, **asked: Any) -> Any:
        """The first choice of an answer."""
        extra = asked.pop("extra", None)
        answer = self.client.chat.completions.create(
            model="smollm2",
            messages=[{"role": "user", "content": prompt}],
            max_tokens=max_tokens,
            temperature=0.7,
            seed=1,
            extra_body=extra,
            **asked,
        )
        choice = answer.choices[0]
        if choice.finish_reason in ("stop", "tool_calls"):
            self.finished += 1
        else:
            assert choice.finish_reason == "length", choice
            self.cut += 1
        return choice

    def text(self, prompt: str, judge: Callable[[str], object], **asked: Any) -> str:
        """A text, which is judged if it was finished."""
        choice = self.ask(prompt, **asked)
        text = choice.message.content or ""
        if choice.finish_reason == "stop":
            judge(text)
        return text

    def schema(self, prompt: str, schema: Any, **asked: Any) -> str:
        """JSON that satisfies a schema."""
        form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
        judge = lambda text: jsonschema.Draft202012Validator(schema).validate(json.loads(text))  # noqa: E731
        return self.text(prompt, judge, response_format=form, **asked)

    def structured(self, prompt: str, judge: Callable[[str], object], max_tokens: int = 120, **what: Any) -> str:
        """A text of one of vLLM's own kinds."""
        return self.text(prompt, judge, max_tokens=max_tokens, extra={"structured_outputs": what})

    def refused(self, said: str, **asked: Any) -> str:
        """The message of a refusal, which is the client's error."""
        told = None
        try:
            self.ask("Hello", **asked)
        except openai.BadRequestError as error:
            told = str(error)
        assert told is not None, f"this was not refused: {asked!r:.200}"
        assert re.search(said, told), (said, told)
        return told


def matching(pattern: str) -> Callable[[str], None]:
    def judge(text: str) -> None:
        assert re.fullmatch(pattern, text), (pattern, text)

    return judge


def each_kind(asker: Asker) -> None:
    """Every kind of request that the OpenAI server has."""
    asker.schema("Alice is 31. Answer in JSON.", PERSON)
    asker.text("A JSON object about Paris.", json.loads, response_format={"type": "json_object"})
    asker.structured("In which year did World War II end?", matching("(19|20)[0-9]{2}"), regex="(19|20)[0-9]{2}")
    asker.structured("Is rain good or bad?", matching("good|bad"), choice=["good", "bad"])
    lark = 'start: "SELECT " NAME " FROM " NAME ";"\nNAME: /[a-z]{1,8}/\n'
    asker.structured("An SQL query.", matching("SELECT [a-z]{1,8} FROM [a-z]{1,8};"), grammar=lark)
    gbnf = 'root ::= "x = " num\nnum ::= [0-9]{1,3}\n'
    asker.structured("What is x?", matching("x = [0-9]{1,3}"), grammar=gbnf)
    asker.structured("JSON about Bob.", lambda text: jsonschema.validate(json.loads(text), PERSON), json=PERSON)
    tag = {
        "type": "structural_tag",
        "format": {
            "type": "tag",
            "begin": "<p>",
            "content": {"type": "json_schema", "json_schema": PERSON},
            "end": "</p>",
        },
    }

    def tagged(text: str) -> None:
        jsonschema.validate(json.loads(text.removeprefix("<p>").removesuffix("</p>")), PERSON)

    asker.structured("Alice is 31.", tagged, structural_tag=json.dumps(tag))
    asker.text("Alice is 31.", tagged, response_format=tag)
    old = {
        "type": "structural_tag",
        "structures": [{"begin": "<p>", "schema": PERSON, "end": "</p>"}],
        "triggers": ["<p>"],
    }
    asker.text("Alice is 31.", lambda text: None, response_format=old, max_tokens=40)
    # a stop token that is none of the tokenizer's own ends: allowed where the text may end, and only there
    stopped = asker.text(
        "Alice is 31. Answer in JSON.",
        lambda text: jsonschema.validate(json.loads(text), PERSON),
        extra={"structured_outputs": {"json": PERSON}, "stop_token_ids": [0, 1], "ignore_eos": False},
    )
    assert stopped


def tools(asker: Asker) -> None:
    """Tools in each choice: the arguments of calls satisfy the tools' schemas."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}  # type: ignore[index]

    def judged(choice: Any, names: set[str], *, least: int) -> None:
        calls = choice.message.tool_calls or []
        if choice.finish_reason == "length":
            return
        assert len(calls) >= least, choice
        for call in calls:
            assert call.function.name in names, call
            jsonschema.validate(json.loads(call.function.arguments), schemas[call.function.name])

    names = set(schemas)
    question = "What is the weather in Oslo in the next 2 days? Call the tool."
    judged(asker.ask(question, tools=TOOLS, tool_choice="required", max_tokens=150), names, least=1)
    one = {"type": "function", "function": {"name": "time"}}
    judged(asker.ask("What time is it?", tools=TOOLS, tool_choice=one, max_tokens=150), {"time"}, least=1)
    judged(asker.ask(question, tools=TOOLS, tool_choice="auto", max_tokens=80), names, least=0)
    choice = asker.ask("Hello", tools=TOOLS, tool_choice="none", max_tokens=10)
    assert not choice.message.tool_calls
    beside = {"type": "json_schema", "json_schema": {"name": "answer", "schema": PERSON}}
    choice = asker.ask("Alice is 31.", tools=TOOLS, tool_choice="auto", response_format=beside, max_tokens=150)
    if choice.finish_reason == "stop" and choice.message.content:
        jsonschema.validate(json.loads(choice.message.content), PERSON)
    judged(choice, names, least=0)


def many(asker: Asker, schemas: int) -> float:
    """So many different schemas at once; returns the seconds."""

    def one(i: int) -> None:
        properties = {f"field{i}": {"type": "integer", "minimum": i, "maximum": i + 9}, "ok": {"type": "boolean"}}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        text = asker.schema(f"Answer in JSON, number {i}.", schema, max_tokens=100)
        assert text

    began = time.monotonic()
    with ThreadPoolExecutor(schemas) as pool:
        list(pool.map(one, range(schemas)))
    return time.monotonic() - began


_COMBINATIONS = {"allOf": [{"anyOf": [{"pattern": f"^(.*{c}){{{n},{n + 9}}}.*$"} for n in range(9)]} for c in "abcdef"]}
REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("#/properties/a/.ref", {"json": {"properties": {"a": {"$ref": "#/nowhere"}}}}),
    ("backreference", {"regex": r"(a)\1"}),
    ("at #", {"json": {"type": "array", "minItems": 3, "maxItems": 2}}),
    ("undefined", {"grammar": "start: undefined"}),
    ("line 1", {"grammar": "root ::= ("}),
    ("structural_tag", {"structural_tag": '{"type": "structural_tag", "format": {"type": "magic"}}'}),  # vLLM's own
    ("max_tokens", {"structural_tag": '{"type": "structural_tag", "format": {"type": "any_text", "max_tokens": 5}}'}),
    ("damaged|lowered", {"grammar": "grammarspec-lowered:AAAA"}),
    ("2000 combinations", {"json": _COMBINATIONS}),
    ("limit exceeded", {"choice": [f"text number {i}" for i in range(500_000)]}),
]


def refusals(asker: Asker) -> None:
    """What is wrong is a 400 with what, where and why."""
    for said, what in REFUSED:
        asker.refused(said, extra={"structured_outputs": what})


HOSTILE: dict[str, dict[str, Any]] = {
    "nested counts": {"regex": "((((a{0,99}){0,99}){0,99}){0,99}){0,99}"},
    "optional properties": {
        "json": {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(3000)}}
    },
    "choice of 100,000": {"choice": [f"text number {i}" for i in range(100_000)]},
}


def hostile(asker: Asker) -> dict[str, list[float]]:
    """Seconds of each hostile request, of a harmless one beside it, and of the harmless one alone."""
    seconds: dict[str, list[float]] = {}

    def timed(work: Callable[[], object]) -> float:
        began = time.monotonic()
        work()
        return time.monotonic() - began

    def attack(what: dict[str, Any]) -> None:
        with suppress(openai.BadRequestError):  # a limit
            asker.structured("Hello", lambda text: None, max_tokens=4, **what)

    def harmless() -> str:
        return asker.schema("Alice is 31. Answer in JSON.", PERSON, max_tokens=30)

    for name, what in HOSTILE.items():
        alone = timed(harmless)
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(timed, lambda w=what: attack(w)), pool.submit(timed, harmless)]
            seconds[name] = [round(one.result(), 2) for one in both] + [round(alone, 2)]
    return seconds


# each further letter multiplies the states by 20: the first masks are cheap, and one of the next is not
GROWING = {"type": "string", "allOf": [{"pattern": f"^(.*{c}){{20}}"} for c in "abcdef"]}


def failing_beside_siblings(asker: Asker) -> None:
    """A sequence that hits a limit while it is written ends alone, as a 500; its siblings end as they should."""

    def fails() -> None:
        try:
            asker.structured("Write many letters.", lambda text: None, json=GROWING)
        except openai.InternalServerError:
            return
        raise AssertionError("a text was answered beyond the limit of a call")

    with ThreadPoolExecutor(6) as pool:
        failing = [pool.submit(fails) for _ in range(2)]
        good = [pool.submit(asker.schema, "Alice is 31. Answer in JSON.", PERSON) for _ in range(4)]
        assert all(one.result() for one in good)
        for one in failing:
            one.result()


def that_thinks(model: Path, folder: Path) -> Path:
    """A copy of SmolLM2 that has tokens for thinking, in the place of two that it does not use."""
    copy = folder / "smollm2-that-thinks"
    copy.mkdir(exist_ok=True)
    for file in model.iterdir():
        there = copy / file.name
        there.unlink(missing_ok=True)
        if file.name != "tokenizer.json":
            there.symlink_to(file.resolve())
            continue
        tokenizer = json.loads(file.read_text().replace("<repo_name>", "<think>").replace("<file_sep>", "</think>"))
        for token in tokenizer["added_tokens"]:
            token["special"] &= "think>" not in token["content"]  # special tokens are left out of the text
        there.write_text(json.dumps(tokenizer))
    return copy


def reasoning(asker: Asker) -> None:
    """The constraint begins behind the thoughts, which are free."""
    # the model was never taught to end its thoughts, and is not to end its answer instead
    bias = {"5": 14.0, "2": -20.0, "0": -20.0}
    thought = 0
    for seed in range(3):
        for extra in ({"structured_outputs": {"json": PERSON}}, {"structured_outputs": {"regex": "[0-9]{1,3}"}}):
            answer = asker.client.chat.completions.create(
                model="smollm2",
                messages=[{"role": "user", "content": "Alice is 31 years old. How old is she?"}],
                max_tokens=120,
                seed=seed,
                logit_bias=bias,  # type: ignore[arg-type]
                extra_body=extra,
            )
            choice = answer.choices[0]
            text, thoughts = choice.message.content or "", getattr(choice.message, "reasoning", None) or ""
            if choice.finish_reason != "stop" or (thoughts and not text):  # cut, or the text ended in the thoughts
                asker.cut += 1
                continue
            asker.finished += 1
            thought += len(thoughts) > 20
            if "json" in extra["structured_outputs"]:
                jsonschema.validate(json.loads(text), PERSON)
            else:
                matching("[0-9]{1,3}")(text)
    assert thought, "the model did not think"


def main(model: str) -> None:
    report: dict[str, Any] = {}

    def run(check: Callable[[Asker], object], asker: Asker, suffix: str = "") -> None:
        began = time.monotonic()
        check(asker)
        report[check.__name__ + suffix] = round(time.monotonic() - began, 1)
        print(check.__name__ + suffix, report[check.__name__ + suffix], file=sys.stderr, flush=True)

    folder = Path(os.environ.get("TMPDIR", "/tmp"))
    parser = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    tight = {"GRAMMARSPEC_VLLM_MAX_CALL_STEPS": "200000"}
    with server(model, folder / "vllm-checks-plain.log", *parser, **tight) as (client, _):
        asker = Asker(client)
        for check in (each_kind, tools, refusals, failing_beside_siblings):
            run(check, asker)
        report["16 schemas at once"] = [round(many(asker, 16), 1) for _ in range(2)]
        report["hostile, beside it, alone"] = hostile(asker)
        run(each_kind, asker, ", again")
        report["plain"] = {"finished": asker.finished, "cut by max_tokens": asker.cut}
    drafts = json.dumps(
        {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4, "prompt_lookup_min": 1}
    )
    log = folder / "vllm-checks-drafts.log"
    with server(model, log, *parser, "--speculative-config", drafts) as (client, _):
        asker = Asker(client)
        run(each_kind, asker, ", drafts")
        run(tools, asker, ", drafts")
        report["16 schemas at once, with drafts"] = round(many(asker, 16), 1)
        report["drafts"] = {"finished": asker.finished, "cut by max_tokens": asker.cut}
    log = folder / "vllm-checks-reasoning.log"
    with server(str(that_thinks(Path(model), folder)), log, "--reasoning-parser", "deepseek_r1") as (client, _):
        asker = Asker(client)
        run(reasoning, asker)
        report["reasoning"] = {"finished": asker.finished, "cut by max_tokens": asker.cut}
    for name in ("plain", "drafts", "reasoning"):
        text = logged(folder / f"vllm-checks-{name}.log")
        assert "is not available" not in text, text[-3000:]
        report[f"errors logged, {name}"] = len(re.findall(r" ERROR |Traceback", text))
        # those of the two sequences that hit a limit, in the engine and in the API's process, and no others
        assert report[f"errors logged, {name}"] == (4 if name == "plain" else 0), text[-5000:]
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
