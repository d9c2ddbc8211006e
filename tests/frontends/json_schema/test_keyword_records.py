"""Every keyword of every dialect has all its parts: how it is parsed, asserted, negated, reported and left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs
from grammarspec.frontends.json_schema.document.dialects import DIALECTS
from grammarspec.frontends.json_schema.document.subschema import Assertion, Malformed, Subschema
from grammarspec.frontends.json_schema.json_values import type_of
from grammarspec.frontends.json_schema.keywords.combining import InPlace
from grammarspec.frontends.json_schema.keywords.keyword import Holds, Keyword, Role
from grammarspec.frontends.json_schema.keywords.tables import KEYWORDS, children, keyword, keywords, read
from grammarspec.frontends.json_schema.keywords.types_and_sizes import OF_TYPES
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.evaluation import holds
from grammarspec.frontends.json_schema.meaning.implication import implies
from grammarspec.grammars.budget import Budget

# A value of each keyword, with values that satisfy it and values that do not. Beside them stands what it is read with.
EXAMPLES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "type": ("string", ["a"], [1]),
    "enum": ([1, "a"], [1], [2]),
    "const": (1, [1], ["a"]),
    "minimum": (1, [1, "a"], [0]),
    "maximum": (1, [1, "a"], [2]),
    "exclusiveMinimum": (1, [2], [1]),
    "exclusiveMaximum": (1, [0], [1]),
    "multipleOf": (2, [4, "a"], [3]),
    "minLength": (1, ["a", 1], [""]),
    "maxLength": (1, ["a", 1], ["aa"]),
    "pattern": ("a", ["ba", 1], ["b"]),
    "format": ("date", [1], []),
    "minItems": (1, [[1], "a"], [[]]),
    "maxItems": (0, [[], "a"], [[1]]),
    "uniqueItems": (True, [[1, 2], "a"], [[1, 1]]),
    "prefixItems": ([{"type": "null"}], [[None, 1], "a"], [[1]]),
    "items": ({"type": "null"}, [[None], "a"], [[1]]),
    "contains": ({"type": "null"}, [[None, 1], "a"], [[1]]),
    "properties": ({"a": {"type": "null"}}, [{"a": None}, "a"], [{"a": 1}]),
    "patternProperties": ({"a": {"type": "null"}}, [{"ba": None}, "a"], [{"a": 1}]),
    "additionalProperties": ({"type": "null"}, [{"a": None}, "a"], [{"a": 1}]),
    "required": (["a"], [{"a": 1}, "a"], [{}]),
    "propertyNames": ({"const": "a"}, [{"a": 1}, "a"], [{"b": 1}]),
    "minProperties": (1, [{"a": 1}, "a"], [{}]),
    "maxProperties": (0, [{}, "a"], [{"a": 1}]),
    "$ref": ("#/definitions/a", [None], [1]),
    "$dynamicRef": ("#/definitions/a", [None], [1]),
    "$recursiveRef": ("#/definitions/a", [None], [1]),
    "allOf": ([{"type": "null"}], [None], [1]),
    "anyOf": ([{"type": "null"}, {"minimum": 1}], [None, 1], [0]),
    "oneOf": ([{"type": "null"}, {"type": "integer"}], [None, 1], ["a"]),
    "not": ({"type": "null"}, [1], [None]),
    "if": ({"type": "null"}, [1], [None]),
    "dependentRequired": ({"a": ["b"]}, [{"a": 1, "b": 1}, {}, "a"], [{"a": 1}]),
    "dependentSchemas": ({"a": {"required": ["b"]}}, [{"a": 1, "b": 1}, {}, "a"], [{"a": 1}]),
    "dependencies": ({"a": ["b"], "c": {"minProperties": 2}}, [{"a": 1, "b": 1}, {}, "a"], [{"a": 1}, {"c": 1}]),
    "unevaluatedProperties": ({"type": "null"}, [{"a": None}, "a"], [{"a": 1}]),
    "unevaluatedItems": ({"type": "null"}, [[None], "a"], [[1]]),
}
BESIDE: dict[str, dict[str, Any]] = {"if": {"then": False}}
NEVER_SAID_TO_FAIL = {"uniqueItems"}
"""Refused inside ``not``, with their place."""
CANNOT_BE_MALFORMED = {"const"}
"""Any value is one of theirs."""

RECORDS = [
    (record, dialect.name)
    for dialect in DIALECTS.values()
    for record in keywords(dialect).values()
    if record.parse is not None
]


def _cases(records: list[tuple[Keyword, str]]) -> list[Any]:
    return [pytest.param(record, dialect, id=f"{record.name}-{dialect}") for record, dialect in records]


CASES = _cases(RECORDS)
REFUSING = _cases([(record, dialect) for record, dialect in RECORDS if EXAMPLES[record.name][2]])
"""Those of them whose keyword has examples that it refuses."""


def _schema(name: str) -> dict[str, Any]:
    return {name: EXAMPLES[name][0], **BESIDE.get(name, {}), "definitions": {"a": {"type": "null"}}}


def _read(schema: dict[str, Any], dialect: str) -> tuple[Subschema, Analysis]:
    document = read(schema, dialect, None)
    return document.start, Analysis(document, Budget(), assert_formats=True)


@pytest.mark.parametrize(("record", "dialect"), CASES)
def test_each_keyword_is_parsed_asserted_and_negated(record: Keyword, dialect: str) -> None:
    _, satisfying, failing = EXAMPLES[record.name]
    schema, goals = _read(_schema(record.name), dialect)
    (assertion,) = schema.assertions
    assert isinstance(assertion, record.makes)
    assert isinstance(assertion, InPlace) == assertion.in_place == record.in_place
    for value in satisfying:
        assert holds(goals, [schema], value) is True, value
    for value in failing:
        assert holds(goals, [schema], value) is False, value
    if record.name in NEVER_SAID_TO_FAIL:
        with pytest.raises(gs.UnsupportedFeature, match=f"{record.name} inside not") as caught:
            goals.negate(schema)
        assert caught.value.where == f"#/{record.name}"
        return
    negation = goals.negate(schema)
    for value in satisfying:
        assert not holds(goals, [negation], value), value
    for value in failing:
        assert holds(goals, [negation], value) is not False, value


@pytest.mark.parametrize(("record", "dialect"), REFUSING)
def test_no_keyword_is_implied_by_the_types_that_it_is_about(record: Keyword, dialect: str) -> None:
    schema, goals = _read(_schema(record.name), dialect)
    every_value = goals.gather([OF_TYPES[record.about]])
    assert implies(goals, every_value, OF_TYPES[record.about])
    assert not implies(goals, every_value, schema)


@pytest.mark.parametrize("constant", [1, "a", [], {}])
def test_the_absence_of_a_constant_is_not_implied_by_its_type(constant: Any) -> None:
    schema, goals = _read({"not": {"const": constant}}, "draft2020-12")
    assert not implies(goals, goals.gather([OF_TYPES[type_of(constant)]]), schema)


@pytest.mark.parametrize(("record", "dialect"), CASES)
def test_each_keyword_says_what_is_malformed_and_where(record: Keyword, dialect: str) -> None:
    if record.name in CANNOT_BE_MALFORMED:
        return
    value = {Holds.MAP: {"a": 3}, Holds.MAP_OR_NAMES: {"a": 3}, Holds.LIST: [3]}.get(record.holds)
    schema, _ = _read({record.name: value}, dialect)
    (assertion,) = schema.assertions
    wrong = isinstance(assertion, Malformed) or any(part.is_malformed for part in _held(schema))
    assert wrong, assertion


def _held(schema: Subschema) -> list[Subschema]:
    return [schema.child(part, *path) for _, path, part in children(schema.source)]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_each_keyword_is_read_by_itself_or_with_one_that_is(dialect: Any) -> None:
    known = keywords(dialect)
    for record in known.values():
        assert keyword(record.name, dialect) is record
        if record.role is not Role.ASSERTION:
            assert record.parse is None and not record.makes and not record.in_place
        elif record.parse is None:
            assert record.read_with or record.name == "additionalItems"
            assert all(other in known and known[other].parse is not None for other in record.read_with)
        else:
            assert record.makes and all(issubclass(made, Assertion) for made in record.makes)


@pytest.mark.parametrize(("record", "dialect"), CASES)
def test_what_each_keyword_holds_is_found(record: Keyword, dialect: str) -> None:
    found = [path for name, path, _ in children(_schema(record.name)) if name == record.name]
    assert bool(found) == (record.holds is not Holds.NOTHING)


@pytest.mark.parametrize(("record", "dialect"), CASES)
def test_each_keyword_is_reported(record: Keyword, dialect: str) -> None:
    report = gs.check(_schema(record.name), dialect=dialect)
    (entry,) = [entry for entry in report.entries if entry.pointer == f"#/{record.name}"]
    assert entry.verdict in ("enforced", "narrowed")


def test_each_keyword_can_be_left_out() -> None:
    for record in KEYWORDS:
        if record.role is Role.ASSERTION:
            value = EXAMPLES[record.name][0] if record.name in EXAMPLES else 1
            schema = {record.name: value}
            record.neutral(schema, record.name, ())
            for kept in (*EXAMPLES.get(record.name, (0, [], []))[1], *EXAMPLES.get(record.name, (0, [], []))[2]):
                asked, goals = _read(schema, "draft2020-12")
                if record.name not in ("oneOf", "$ref", "$dynamicRef", "$recursiveRef"):  # anyOf remains of oneOf
                    assert holds(goals, [asked], kept) is True, (record.name, kept)


def test_the_page_has_every_keyword_that_asserts_something() -> None:
    page = (Path(__file__).parents[3] / "docs" / "json-schema.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([$\w-]+)", page))
    assert not {record.name for record, _ in RECORDS} - named
