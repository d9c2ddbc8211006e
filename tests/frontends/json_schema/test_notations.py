"""Notations that differ from JSON in constants, strings and names: the same values, written otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.frontends.json_schema import language
from grammarspec.frontends.json_schema.spelling.spelling import Notation, Quotes, Spelling
from tests.counting import discard, examples
from tests.frontends.json_schema.schemas import SCHEMAS, VALUES

PYTHON = Notation("None", "False", "True")
BARE = Notation("nil", quotes=Quotes(gs.literal("<|>"), "<|>"), bare_names=True)
RAW = Notation(quotes=Quotes(gs.literal("'"), "'"))


def _written(value: Any, notation: Notation) -> str:
    match value:
        case None:
            return notation.null
        case bool():
            return notation.true if value else notation.false
        case str():
            return json.dumps(value, ensure_ascii=False) if notation.quotes is None else _quoted(value, notation.quotes)
        case list():
            return f"[{','.join(_written(item, notation) for item in value)}]"
        case dict():
            names = {name: name if notation.bare_names else _written(name, notation) for name in value}
            return "{" + ",".join(f"{names[name]}:{_written(member, notation)}" for name, member in value.items()) + "}"
    return json.dumps(value)


def _quoted(text: str, quotes: Quotes) -> str:
    mark = quotes.mark.sample()
    return f"{mark}{text}{mark}"


def _grammar(schema: Any, notation: Notation) -> gs.Grammar[str]:
    return gs.Grammar(language(schema, Spelling(separators=(",", ":"), minimal=True, notation=notation)))


@pytest.mark.parametrize("notation", [PYTHON, BARE, RAW])
@examples(150)
@given(schema=SCHEMAS, values=st.lists(VALUES, min_size=1, max_size=8))
def test_a_value_is_taken_in_every_notation_or_none(notation: Notation, schema: Any, values: list[Any]) -> None:
    try:
        plain = gs.json_schema(schema, separators=(",", ":"), escapes="minimal")
        other = _grammar(schema, notation)
    except (gs.UnsupportedFeature, gs.GrammarSyntaxError, gs.LimitExceeded) as error:
        discard(f"a refusal: {error.code}")
    for value in values:
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        assert plain.matches(written) == other.matches(_written(value, notation)), value


def test_what_quotation_marks_exclude_ends_strings() -> None:
    grammar = _grammar({"type": "object", "additionalProperties": {"type": "string"}}, BARE)
    assert grammar.matches('{a:<|>any "\\ text\n<|<|>,b-c:<|><|>}')
    for wrong in ("{a:<|><|><|>}", "{:<|><|>}", "{a b:<|><|>}", "{<|>a<|>:<|><|>}", '{a:"x"}'):
        assert not grammar.matches(wrong)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array", "uniqueItems": True}, "must differ"),
        ({"minProperties": 2}, "must differ"),
        ({"enum": ["a<|>b"]}, "'<|>'"),
        ({"properties": {"a b": {}}}, "'a b'"),
    ],
)
def test_what_a_notation_cannot_say_is_refused(schema: Any, message: str) -> None:
    with pytest.raises(gs.UnsupportedFeature) as caught:
        _grammar({"items": schema}, BARE)
    assert message in caught.value.message and caught.value.where == "#/items"
