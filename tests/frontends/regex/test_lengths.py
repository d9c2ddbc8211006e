"""Patterns with bounds on the length of their texts, against ``re`` and ``len``."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import pytest

import grammarspec as gs
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.lower import lower_search_of_lengths
from grammarspec.frontends.regex.patterns import parse
from grammarspec.grammars.builder import GrammarBuilder

TEXTS = ["".join(letters) for length in range(6) for letters in product("ab1", repeat=length)]
TAKEN_OVER = [
    "^[ab]+$", "^a[ab]*$", "^[ab]*1$", "^a[ab1]*b$", "^(ab)*$", "^(ab){1,3}$", "^(a|b)+$", "^(ab|ba){2,}$",
    "^(a*|1b*)$", "^(ab|1)$", "^a{2}b{0,3}$", "^a", "b$", "^ab", "^$", "^(a|bb*)$", "^[ab]?$", "^(a1)?$", "^a[ab]*?1$",
]  # fmt: skip
OTHERS = ["", "a", "^a*b*$", "a|b", "^(a|bb)*$", "^(a|1b)+$", r"^(?!a)[ab]*$", r"\ba", "^(aa?)*$", "1.*1", "^[ab]+1?$"]
BOUNDS = [(0, 0), (0, 2), (1, 3), (2, 2), (2, None), (3, 4), (4, None), (0, None), (5, 1)]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("pattern", [*TAKEN_OVER, *OTHERS])
def test_texts_of_a_pattern_and_a_length(pattern: str, bounds: tuple[int, int | None]) -> None:
    least, most = bounds
    schema: dict[str, Any] = {"type": "string", "pattern": pattern, "minLength": least}
    if most is not None:
        schema["maxLength"] = most
    long_enough = (text for text in TEXTS if least <= len(text) and (most is None or len(text) <= most))
    wanted = [text for text in long_enough if re.search(pattern, text)]
    try:
        grammar = gs.json_schema(schema)
    except gs.Unsatisfiable:
        assert not wanted
        return
    assert [text for text in TEXTS if grammar.matches(json.dumps(text))] == wanted


@pytest.mark.parametrize("pattern", [*TAKEN_OVER, *OTHERS])
def test_one_part_takes_over_a_length(pattern: str) -> None:
    builder = GrammarBuilder()
    node = lower_search_of_lengths(parse(pattern, dialect="ecma262"), builder, PlainText(builder), (2, 20))
    assert (node is not None) == (pattern in TAKEN_OVER)


def test_characters_beyond_ascii_count_once() -> None:
    grammar = gs.json_schema({"type": "string", "pattern": "^[a😀é]+$", "minLength": 2, "maxLength": 3})
    assert [grammar.matches(json.dumps(text, ensure_ascii=False)) for text in ("😀", "😀é", "a😀é", "a😀éa")] == [
        False, True, True, False,
    ]  # fmt: skip
