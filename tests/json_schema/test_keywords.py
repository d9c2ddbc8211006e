"""Each keyword and the ways to combine schemas, by texts that satisfy them and texts that do not."""

from __future__ import annotations

import json

import pytest
from json_schema.texts import Case, check, corpus

KEYWORDS, COMBINATIONS = corpus("keywords.txt"), corpus("combinations.txt")


@pytest.mark.parametrize("case", [*KEYWORDS, *COMBINATIONS], ids=lambda case: case.schema[:70])
def test_case(case: Case) -> None:
    # Beside a constant, so that schemas that nothing satisfies can be asked, too.
    check({"anyOf": [json.loads(case.schema), {"const": "\N{SNOWMAN}"}]}, case)


@pytest.mark.parametrize("case", KEYWORDS, ids=lambda case: case.schema[:70])
def test_a_negated_negation_changes_nothing(case: Case) -> None:
    check({"not": {"allOf": [{"not": json.loads(case.schema)}]}}, case)


NEGATABLE = [case for case in KEYWORDS if '"uniqueItems": true' not in case.schema]


@pytest.mark.parametrize("case", NEGATABLE, ids=lambda case: case.schema[:70])
def test_a_schema_and_its_negation_share_nothing(case: Case) -> None:
    schema = json.loads(case.schema)
    check({"anyOf": [{"allOf": [schema, {"not": schema}]}, {"const": 0.25}]}, Case("", ["0.25"], case.accepted))
