"""Values that hypothesis-jsonschema makes of schemas, of any size: the valid ones are accepted, and no others."""

from __future__ import annotations

import json
from copy import deepcopy
from decimal import Decimal
from math import factorial, prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from tests.counting import examples
from tests.frontends.json_schema.judges import is_valid
from tests.frontends.json_schema.texts import acceptor, corpus, dumps, orders

SCHEMAS = [case.schema for case in corpus("keywords.txt") if case.accepted]


def _strategy(schema: Any) -> st.SearchStrategy[Any] | None:
    """``None``: it fails on the schema (references to where it is, among others)."""
    strategy = from_schema(deepcopy(schema))
    return None if "error_raiser" in repr(strategy) else strategy


KNOWN = [schema for schema in SCHEMAS if _strategy(json.loads(schema)) is not None]


def test_most_schemas_are_known() -> None:
    assert len(KNOWN) > 0.8 * len(SCHEMAS)


@pytest.mark.property
@pytest.mark.parametrize("said", KNOWN, ids=lambda said: said[:70])
def test_instances(said: str) -> None:
    schema = json.loads(said)
    declared, any_order = acceptor(schema), acceptor(schema, property_order="any")
    strategy = _strategy(schema)
    assert strategy is not None

    @examples(10)
    @given(strategy)
    def run(value: Any) -> None:
        spelled = dumps(value), _plain(value)
        if is_valid(schema, value):
            assert any(map(any_order, spelled)), value
            if _number_of_orders(value) <= 100:
                assert any(declared(text) for order in orders(value) for text in (dumps(order), _plain(order))), value
        else:
            assert not any(any_order(text) or declared(text) for text in spelled), value

    run()


def _number_of_orders(value: Any) -> int:
    if isinstance(value, dict):
        return factorial(len(value)) * prod(map(_number_of_orders, value.values()))
    return prod(map(_number_of_orders, value)) if isinstance(value, list) else 1


def _plain(value: Any) -> str:
    """The text of a value with numbers spelled without exponents, as they are where they must be multiples of one."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(name)}: {_plain(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else dumps(value)
