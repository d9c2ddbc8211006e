"""Arguments written as XML: the same values are taken as in JSON, in the styles whose texts say which value it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import discard, examples
from tests.frontends.json_schema.schemas import NAMES, SCHEMAS, VALUES


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "number"


def _inside(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _kimi(name: str, value: Any) -> str:
    return f'<|open|>argument key="{name}" type="{_type(value)}"<|sep|>{_inside(value)}<|close|>argument<|sep|>'


def _deepseek(name: str, value: Any) -> str:
    string = "true" if isinstance(value, str) else "false"
    return f'<｜DSML｜parameter name="{name}" string="{string}">{_inside(value)}</｜DSML｜parameter>'


def _cohere(name: str, value: Any) -> str:
    begin = f'<cofl:value name="{name}"' if name else "<cofl:value"
    match value:
        case str():
            kind, inside = "raw", value
        case list():
            kind, inside = "list", "".join(_cohere("", item) for item in value)
        case dict():
            kind, inside = "dict", "".join(_cohere(one, member) for one, member in value.items())
        case _:
            kind, inside = "json", _inside(value)
    return f'{begin} type="{kind}">{inside}</cofl:value>'


STYLES = {"kimi_k3_xml": _kimi, "deepseek_xml": _deepseek, "cohere_xml": _cohere}


@pytest.mark.parametrize("style", STYLES)
@examples(150, kept=0.8)  # elements cannot be compared with each other, as uniqueItems asks
@given(
    schema=SCHEMAS,
    any_order=st.booleans(),
    values=st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=1, max_size=8),
)
def test_values_are_taken_as_in_json(style: str, schema: Any, any_order: bool, values: list[Any]) -> None:
    form = {"type": "json_schema", "json_schema": schema, "any_order": any_order, "max_whitespace_cnt": 0}
    try:
        plain = gs.structural_tag(form)
        other = gs.structural_tag({**form, "style": style})
    except gs.Unsatisfiable:  # there is no object
        assert not any(plain.matches(json.dumps(value, separators=(",", ":"))) for value in values)
        return
    except (gs.UnsupportedFeature, gs.GrammarSyntaxError, gs.LimitExceeded) as error:
        discard(f"a refusal: {error.code}")
    for value in values:
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        spelled = "".join(STYLES[style](name, member) for name, member in value.items())
        assert plain.matches(written) == other.matches(spelled), value
