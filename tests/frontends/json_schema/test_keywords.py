"""Each keyword and the ways to combine schemas, by texts that satisfy them and texts that do not."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from tests.frontends.json_schema.judges import is_valid
from tests.frontends.json_schema.texts import Case, check, corpus, dumps, orders

KEYWORDS, COMBINATIONS = corpus("keywords.txt"), corpus("combinations.txt")
MEMORY, UNEVALUATED = corpus("memory.txt"), corpus("unevaluated.txt")


@pytest.mark.parametrize("case", [*KEYWORDS, *COMBINATIONS], ids=lambda case: case.schema[:70])
def test_case(case: Case) -> None:
    # Beside a constant, so that schemas that nothing satisfies can be asked, too.
    check({"anyOf": [json.loads(case.schema), {"const": "\N{SNOWMAN}"}]}, case)


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("case", [*MEMORY, *UNEVALUATED], ids=lambda case: case.schema[:70])
def test_case_in_both_orders(case: Case, order: str) -> None:
    schema = {"anyOf": [json.loads(case.schema), {"const": "\N{SNOWMAN}"}]}
    check(schema, case, property_order=order)
    compact = Case("", [text for text in map(_compact, case.accepted) if text])
    check(schema, compact, property_order=order, whitespace="compact")
    assert [text for text in case.accepted if not is_valid(schema, json.loads(text))] == []
    refused = [text for text in case.refused if _compact(text)]
    assert [text for text in refused if is_valid(schema, json.loads(text))] == []


def _compact(text: str) -> str | None:
    """The text without whitespace, if it is JSON without repeated names."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    with contextlib.suppress(ValueError):
        return json.dumps(json.loads(text, object_pairs_hook=members), separators=(",", ":"), ensure_ascii=False)
    return None


# Members of constants keep their order, and witnesses come last.
REORDERED = [
    case
    for case in [*KEYWORDS, *MEMORY, *UNEVALUATED]
    if not any(keyword in case.schema for keyword in ('"const"', '"enum"', '"not"'))
]


@pytest.mark.parametrize("case", REORDERED, ids=lambda case: case.schema[:70])
def test_any_order_is_every_order(case: Case) -> None:
    values = [json.loads(text) for text in case.accepted if _compact(text)]
    texts = [dumps(order) for value in values for order in orders(value)]
    check({"anyOf": [json.loads(case.schema), {"const": "\N{SNOWMAN}"}]}, Case("", texts), property_order="any")


@pytest.mark.parametrize("case", KEYWORDS, ids=lambda case: case.schema[:70])
def test_a_negated_negation_changes_nothing(case: Case) -> None:
    check({"not": {"allOf": [{"not": json.loads(case.schema)}]}}, case)


NEGATABLE = [case for case in KEYWORDS if '"uniqueItems": true' not in case.schema]


@pytest.mark.parametrize("case", NEGATABLE, ids=lambda case: case.schema[:70])
def test_a_schema_and_its_negation_share_nothing(case: Case) -> None:
    schema = json.loads(case.schema)
    check({"anyOf": [{"allOf": [schema, {"not": schema}]}, {"const": 0.25}]}, Case("", ["0.25"], case.accepted))
