"""What models are told about the types of their answers, and where."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

import grammarspec as gs
from grammarspec.models.instructions import instructions_for, with_instructions


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    zip_code: str = Field(pattern="^[0-9]{5}$", description="five\ndigits")


class Person(BaseModel):
    name: str = Field(max_length=4)
    age: int = Field(ge=0, lt=150)
    homes: list[Address] = Field(max_length=2)
    mood: Literal["good", "bad"] | None = None
    scores: dict[str, float] = {}


class Tree(BaseModel):
    label: str
    children: list[Tree]


FORM = """Answer with JSON of this form:
{
  name: string
  age: integer (at least 0, below 150)
  homes: {  // Where somebody lives.
    street: string
    zip_code: string (like ^[0-9]{5}$)  // five digits
  }[]
  mood?: "good" | "bad" | null
  scores?: {
    [name]: number
  }
}"""


def test_the_compact_form() -> None:
    assert instructions_for(Person, "compact") == FORM
    assert instructions_for(list[int | str], "compact") == "Answer with JSON of this form:\n(integer | string)[]"


def test_types_that_refer_to_themselves() -> None:
    told = instructions_for(Tree, "compact")
    assert told.endswith("where Tree is {\n  label: string\n  children: Tree[]\n}")


def test_the_schema() -> None:
    """Descriptions and formats are in it, as the library writes them: nothing that is only there to be enforced."""
    first, _, schema = instructions_for(Person, "schema").partition("\n")
    assert first == "Answer with JSON that satisfies this JSON Schema:"
    told = json.loads(schema)
    assert told["$defs"]["Address"]["description"] == "Where somebody lives."
    assert list(told["properties"]) == ["name", "age", "homes", "mood", "scores"]
    own = {"type": "object", "properties": {"a": {"const": 1}}}
    for grammar in (gs.json_schema(own), gs.json_schema(json.dumps(own))):
        assert json.loads(instructions_for(grammar, "schema").partition("\n")[2]) == own
        assert instructions_for(grammar, "compact").endswith("{\n  a?: 1\n}")


@pytest.mark.parametrize("kind", ["schema", "compact"])
def test_texts_without_quotes(kind: Any) -> None:
    assert instructions_for(Literal["yes", "no"], kind) == "Answer with one of: yes, no"


@pytest.mark.parametrize(
    "target",
    [str, gs.regex("a+"), re.compile("a+"), gs.text(), gs.json_schema(True), Literal["a"] | gs.regex("b")],
)
@pytest.mark.parametrize("kind", ["schema", "compact"])
def test_nothing_is_told_of_what_has_no_schema(target: Any, kind: Any) -> None:
    assert instructions_for(target, kind) == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["integer", "null"], "minimum": 3}, {"not": {"type": "string"}}, {"allOf": [{"type": "string"}]},
        {"enum": [1, "a", None, [2]]}, {"type": "array"},
        {"type": "object", "additionalProperties": False}, {"anyOf": [True, {"type": "string"}]},
    ],
)  # fmt: skip
def test_any_schema_has_a_compact_form(schema: dict[str, Any]) -> None:
    """What has no form of its own stands there as JSON."""
    assert instructions_for(gs.json_schema(schema), "compact").startswith("Answer with JSON of this form:\n")


def test_where_it_is_told() -> None:
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": None, "tool_calls": []},
    ]
    told = with_instructions(chat, "TOLD")
    assert [message["content"] for message in told] == ["Be brief.", "Hello", "Hi", "Who?\n\nTOLD", None]
    assert chat[3]["content"] == "Who?", "the caller's messages stay as they are"
    assert with_instructions(told, "TOLD") == told, "never twice"
    assert with_instructions(chat, "") == chat
    assert with_instructions(chat[:1], "TOLD") == chat[:1]


@pytest.fixture(scope="module")
def directory(tiny_model_directory: Path) -> Path:
    pytest.importorskip("transformers")
    return tiny_model_directory


def told_tokens(model: gs.Model, **options: Any) -> int:
    """How many more tokens (here: bytes) a prompt has with these options than without instructions."""
    options = {"max_tokens": 60, "on_limit": "close", **options}
    plain = model.run("Who?", Age, **{**options, "instructions": None})
    return model.run("Who?", Age, **options).usage.prompt_tokens - plain.usage.prompt_tokens


Age = Annotated[int, Field(ge=0, le=9)]


def test_models_and_calls(directory: Path) -> None:
    model = gs.Model.from_pretrained(directory, instructions="compact")
    compact, schema = (len(instructions_for(Age, kind).encode()) + 2 for kind in ("compact", "schema"))
    assert compact != schema
    assert told_tokens(model) == compact
    assert told_tokens(model, instructions="schema") == schema
    assert told_tokens(model, instructions=None) == 0
    assert told_tokens(model, system="Be brief.") == compact
    model.tokenizer.chat_template = None
    assert told_tokens(model) == compact
    assert told_tokens(model, instructions="auto") == 0


def test_values_that_there_are_not(directory: Path) -> None:
    message = "instructions must be 'auto', 'schema', 'compact' or None, not 'short'"
    with pytest.raises(ValueError, match=message):
        gs.Model.from_pretrained(directory, instructions="short")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        gs.Model.from_pretrained(directory)("Who?", int, instructions="short")  # type: ignore[call-overload]
