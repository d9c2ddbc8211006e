"""What assertions see of the character before a lexeme: classes of characters, and patterns behind one of them."""

from __future__ import annotations

import re

import pytest

from grammarspec.frontends.regex.before import behind, classes_before
from grammarspec.frontends.regex.facts import ANYWHERE, FactTable, Neighbour
from grammarspec.frontends.regex.patterns import parse
from grammarspec.frontends.regex.reach import looks_outside

SEEN = "ab1_ \n-é"
"""Characters that the patterns tell apart, and others."""


def classes(*patterns: str) -> tuple[Neighbour, ...]:
    return classes_before([parse(pattern) for pattern in patterns], FactTable())


def has(one: Neighbour, char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in one.chars)


def test_one_class_where_nothing_looks_back() -> None:
    assert classes("[ab]+", "a(?!b)", r"a\b", "a(?<=a)") == (ANYWHERE,)


def test_the_beginning_is_like_a_character_that_nothing_sees() -> None:
    first, second = classes(r"(?<=\S) +")
    assert first.border
    assert [char for char in SEEN if has(first, char)] == [" ", "\n"]
    assert not second.border


def test_the_beginning_is_apart_where_it_is_seen_or_all_else_is() -> None:
    assert classes("^a")[0].chars == ()
    assert classes("(?<=a)b|(?<=[^a])c")[0].chars == ()


def test_too_many_classes_are_none() -> None:
    sets = ["".join(chr(code) for code in range(ord("@"), ord("_")) if code >> bit & 1) for bit in range(5)]
    assert classes(*[f"(?<=[{re.escape(chars)}])a" for chars in sets]) == (ANYWHERE,)
    assert len(classes(*[f"(?<=[{re.escape(chars)}])a" for chars in sets[:4]])) == 16


@pytest.mark.parametrize(
    "pattern", [r"(?<=a)b", r"(?<![a1])b", r"\bb", r"\Bb", r"(^|(?<=\n))b", r"(?!\bb1)b1?", r"(?m:^)b", r"(?<=a|b)b|1"]
)
def test_behind_each_class_the_pattern_is_what_re_matches_there(pattern: str) -> None:
    table, tree = FactTable(), parse(pattern)
    compiled = re.compile(pattern)
    for one in classes_before([tree], table):
        decided = behind(tree, one, table)
        assert looks_outside(decided, one, ANYWHERE, table, room_after=float("inf")) is None
        first = {char for char in SEEN for low, high in table.of(decided).first if low <= ord(char) <= high}
        for char in [*filter(lambda char: has(one, char), SEEN), *([""] if one.border else [])]:
            for text in ("b", "b1", "1"):
                if compiled.match(char + text, len(char)):
                    assert text[0] in first
            if not first:
                assert not compiled.match(char + "b", len(char))


def test_behind_returns_the_very_tree_where_nothing_is_decided() -> None:
    tree = parse("a(?!b)c?")
    assert behind(tree, ANYWHERE, FactTable()) is tree
