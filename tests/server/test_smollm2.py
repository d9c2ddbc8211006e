"""The server with a real model: typed answers that make sense, tools, and many requests in one running batch."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, Field

import grammarspec as gs
from tests.server.conftest import Running, serving


class Person(BaseModel):
    name: str = Field(max_length=40)
    age: int = Field(ge=0, le=150)
    city: str = Field(max_length=40)


@pytest.fixture(scope="module")
def server(smollm2_directory: Path) -> Iterator[Running]:
    with serving(gs.Model.from_pretrained(smollm2_directory), name="smollm2") as running:
        yield running


ALICE: list[Any] = [{"role": "user", "content": "Alice is 31 and lives in Paris."}]
SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {
            f"name_{number}": {"type": "string", "maxLength": 3 + number % 3},
            "rank": {"type": "integer", "minimum": number, "maximum": 2 * number + 1},
            "kind": {"enum": ["a", "b", number]},
        },
        "required": [f"name_{number}", "rank", "kind"],
        "additionalProperties": False,
    }
    for number in range(16)
]


def test_a_typed_answer_comes_in_pieces(server: Running) -> None:
    asked = {"model": "smollm2", "messages": ALICE, "response_format": Person, "temperature": 0}
    with server.client().chat.completions.stream(**asked) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        found = stream.get_final_completion().choices[0].message
    assert found.parsed == Person(name="Alice", age=31, city="Paris")
    assert "".join(pieces) == found.content and len(pieces) > 3


def test_a_tool_is_called(server: Running) -> None:
    parameters = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Madrid"]}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "weather", "description": "x", "parameters": parameters}}]
    found = server.client().chat.completions.create(
        model="smollm2",
        messages=[{"role": "user", "content": "How is the weather in Madrid?"}],
        tools=tools,
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=0,
    )
    [call] = found.choices[0].message.tool_calls
    jsonschema.validate(json.loads(call.function.arguments), parameters)
    assert call.function.name == "weather"


@pytest.mark.slow
def test_sixteen_schemas_in_one_batch(server: Running) -> None:
    together = [0.0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            together[0] = max(together[0], server.metrics()["grammarspec_running_texts"])

    def ask(schema: dict[str, Any]) -> str:
        found = server.client().chat.completions.create(
            model="smollm2",
            messages=ALICE,
            temperature=1,
            max_tokens=60,
            response_format={"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}},
            extra_body={"on_limit": "close"},
        )
        return str(found.choices[0].message.content)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(ask, SCHEMAS))
    done.set()
    watcher.join()
    for text, schema in zip(texts, SCHEMAS, strict=True):
        jsonschema.validate(json.loads(text), schema)
    assert together[0] > 8
