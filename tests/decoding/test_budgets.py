"""``on_limit="close"`` on schemas: within any budget a text of the schema, or a refusal before anything is written."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
jsonschema = pytest.importorskip("jsonschema")

from grammarspec.decoding import Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.proposers import Forced  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.noise_model import NoiseModel  # noqa: E402

LARGEST = 200
EVERY = list(range(1, LARGEST + 1))
BUDGETS = EVERY if tiers.selected().random else tiers.some([*EVERY[:19], *EVERY[19::36]], least=8)

_STRING: dict[str, Any] = {"type": "string"}
_INTEGER: dict[str, Any] = {"type": "integer"}


def _record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TREE = {"$defs": {"tree": _record(v=_INTEGER, c={"type": "array", "items": {"$ref": "#/$defs/tree"}})}}

SCHEMAS: list[Any] = [
    True,
    {"type": "null"},
    {"type": "boolean"},
    _INTEGER,
    {"type": "number"},
    _STRING,
    {"type": "array"},
    {"type": "object"},
    {"type": ["string", "null"]},
    {"const": {"answer": [42, None, "yes"]}},
    {"enum": ["a", "a much longer text", 3, [1, 2, 3]]},
    {"enum": ["x" * 60]},
    {"type": "integer", "minimum": 1000, "maximum": 2000},
    {"type": "integer", "multipleOf": 7, "minimum": 100},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "string", "minLength": 10},
    {"type": "string", "maxLength": 5},
    {"type": "string", "minLength": 50, "maxLength": 60},
    {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
    {"type": "string", "pattern": "^(ab|cd)+$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "format": "email"},
    {"type": "array", "items": _INTEGER},
    {"type": "array", "items": _INTEGER, "minItems": 5},
    {"type": "array", "items": _STRING, "minItems": 2, "maxItems": 4},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 20},
    {"type": "array", "items": {"enum": ["a", "b", "c", "d"]}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "prefixItems": [_INTEGER, _STRING, {"type": "boolean"}], "minItems": 3, "items": False},
    {"type": "array", "contains": {"const": 5}, "items": _INTEGER},
    {"type": "array", "items": {"type": "array", "items": _INTEGER, "minItems": 2}, "minItems": 2},
    _record(name=_STRING),
    _record(name=_STRING, age=_INTEGER),
    _record(name={"type": "string", "minLength": 1}, age={"type": "integer", "minimum": 0, "maximum": 150}),
    _record(a=_record(b=_record(c=_record(d=_INTEGER)))),
    _record(tags={"type": "array", "items": _STRING, "minItems": 1}, size={"enum": ["small", "large"]}),
    _record(day={"type": "string", "format": "date"}, done={"type": "boolean"}),
    _record(**{f"field_{number}": _INTEGER for number in range(10)}),
    {"type": "object", "properties": {"a": _INTEGER, "b": _STRING}},
    {"type": "object", "properties": {"a": _INTEGER}, "required": ["a", "zz"]},
    {"type": "object", "additionalProperties": _INTEGER, "minProperties": 2},
    {"type": "object", "patternProperties": {"^x_": _INTEGER}, "additionalProperties": False, "minProperties": 1},
    {"type": "object", "properties": {"a": _INTEGER, "b": _STRING}, "minProperties": 1, "additionalProperties": False},
    {"anyOf": [_record(kind={"const": "circle"}, r={"type": "number"}), _record(kind={"const": "point"})]},
    {"oneOf": [_INTEGER, {"type": "array", "items": _INTEGER, "minItems": 3}]},
    {"allOf": [{"type": "integer"}, {"minimum": 10}, {"maximum": 99}]},
    {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}, "required": ["a"]},
    {**_TREE, "$ref": "#/$defs/tree"},
]  # fmt: skip


def _exact(number: str) -> int | Decimal:
    """A number that JSON Schema takes for a whole one is one to the judge, without rounding."""
    value = Decimal(number)
    return int(value) if value == value.to_integral_value() else value


@pytest.fixture(scope="module")
def vocabulary() -> gs.Vocabulary:
    """Single bytes, and some longer tokens, as real vocabularies have."""
    longer = [text.encode() for text in '{" ": ", "} }, ]} ": " true false null name 00 123 ab'.split()]
    return gs.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), *longer], [256 + len(longer)])


def test_there_are_fifty_different_schemas() -> None:
    assert len({json.dumps(schema) for schema in SCHEMAS}) == len(SCHEMAS) == 50


@pytest.mark.parametrize("number", tiers.some(range(len(SCHEMAS)), least=25))
@pytest.mark.property
def test_budgets(number: int, vocabulary: gs.Vocabulary) -> None:
    schema = SCHEMAS[number]
    model = NoiseModel(vocabulary.size)
    grammar = gs.json_schema(schema, numbers="plain")  # exponents may be too large for any judge
    constraint = gs.compile(grammar, vocabulary)
    least = constraint.tokens_to_end(constraint.start) + 1
    judge = jsonschema.Draft202012Validator(schema)

    def request(budget: int) -> Request:
        sampling = Sampling(temperature=1.0, seed=budget, max_tokens=budget, on_limit="close")
        return Request(prompt=[1], matcher=constraint.matcher(), sampling=sampling)

    for budget in BUDGETS:
        if budget < least:
            with pytest.raises(ValueError, match=f"no text can be whole within {budget} tokens"):
                generate_batch(model, [request(budget)], vocabulary)
    enough = [budget for budget in BUDGETS if budget >= least]
    assert enough, "the shortest text fits the largest budget"
    torch.manual_seed(0)
    found = generate_batch(model, [request(budget) for budget in enough], vocabulary, proposers=[Forced()])
    for budget, [text] in zip(enough, found, strict=True):
        assert text.finish_reason in ("stop", "closed")
        assert len(text.tokens) <= budget
        assert grammar.matches(text.text)
        assert judge.is_valid(json.loads(text.text, parse_float=_exact)), text.text
