"""Named groups of patterns are captures, with the values that ``re.fullmatch`` gives them."""

from __future__ import annotations

import pickle
import re
import warnings
from functools import partial
from typing import Any

import pytest

import grammarspec as gs
from tests.tiers import draws

regex = partial(gs.regex, captures=True)

DATE = r"(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?"


def test_named_groups_are_captures() -> None:
    date = regex(DATE, flags=re.ASCII)
    found = date.match("2024-02-29")
    assert (found.value, found.captures) == ("2024-02-29", {"year": "2024", "month": "02", "day": "29"})
    assert date.match("2024-02").captures == {"year": "2024", "month": "02"}  # a group that takes no part is missing
    assert regex("(a)(?P<b>b)").match("ab").captures == {"b": "b"}
    assert regex("(?P<a>.*?)(?P<b>a*)").match("aa").captures == {"a": "", "b": "aa"}  # laziness
    assert regex("(?:(?P<x>[ab]),)*").match("a,b,").captures == {"x": "b"}  # of the last round
    assert regex("(?P<x>a)|(?P<y>.)", flags=re.IGNORECASE).match("A").captures == {"x": "A"}


def test_in_combined_grammars() -> None:
    date = regex(re.compile(DATE, re.ASCII))
    assert ("on " + date.named("date") + regex("(?P<end>[.!])")).match("on 2024-02!").captures == {
        "year": "2024", "month": "02", "date": "2024-02", "end": "!",
    }  # fmt: skip
    assert date.repeat(sep="; ").match("2023-01; 2024-02-29").captures == {
        "year": ["2023", "2024"], "month": ["01", "02"], "day": ["29"],
    }  # fmt: skip
    assert (date | gs.literal("never")).match("never").captures == {}
    assert (date & ~regex("2023.*")).match("2024-02").captures == {"year": "2024", "month": "02"}
    assert (~date).match("").captures == {}
    assert date.fields().parse("2024-02") == {"year": "2024", "month": "02"}
    with pytest.raises(ValueError, match="two parts of a text are named 'year'"):
        _ = date + date
    with pytest.raises(ValueError, match="two parts of a text are named 'day'"):
        date.named("day")


def test_groups_are_part_of_the_value_that_a_grammar_is() -> None:
    grammar = regex("(?P<a>x)")
    assert grammar == regex("(?P<a>x)") != regex("(?P<b>x)") != regex("x")
    again = pickle.loads(pickle.dumps(grammar))
    assert again == grammar
    assert again.match("x").captures == {"a": "x"}


@pytest.mark.parametrize("pattern", [r"(?P<a>\p{Lu})", r"x(?<=(?P<b>x|yx))(?P<a>)", r"(?P<a>x)(?<=x|yx)"])
def test_names_in_what_re_does_not_take(pattern: str) -> None:
    with pytest.raises(gs.UnsupportedFeature, match=r"the named group \w in a pattern that Python's re does not take"):
        regex(pattern)
    assert regex(re.sub(r"\?P<\w>", "", pattern)).sample(0)


def test_what_is_no_group() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert regex(r"[[(?P<a>]+\p{Lu}").match("[A").captures == {}
        assert regex(r"[[](?P<a>x)").match("[x").captures == {"a": "x"}
    assert gs.regex("(?P<a>x)").match("x").captures == {}  # not asked for
    with pytest.raises(ValueError, match="captures are the named groups of Python's dialect"):
        regex("(?<a>x)", dialect="ecma262")


PATTERNS = [
    r"(?P<a>\w+)@(?P<b>\w+(?:\.\w+)*)", r"(?P<a>a*?)(?P<b>(?:ab?)*)(?P<c>b?)", r"(?P<a>(?P<b>x)|y)+(?P<c>\b.?)",
    r"(?i)(?P<a>k+)(?P<b>s?)(?=(?P<c>t))\w", r"(?P<a>^)(?P<b>\s*)$", r"(?x) (?P<a> [a-f] ) # one" "\n(?P<b>.)",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.property
def test_random_texts(pattern: str) -> None:
    grammar, judge = regex(pattern), re.compile(pattern)
    for seed in range(draws(50)):
        text = grammar.sample(seed, max_bytes=30)
        found: Any = judge.fullmatch(text)
        assert grammar.match(text).captures == {k: v for k, v in found.groupdict().items() if v is not None}
