"""The dialects of the package ``regex`` and of Rust, and what other dialects are as ECMA-262."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.frontends.regex import parse
from grammarspec.frontends.regex.ecma_text import to_ecma262
from tests.counting import discard, examples
from tests.frontends.regex.test_regex import (
    CLASSES,
    LITERALS,
    SET_ITEMS,
    SHORT_TEXTS,
    alternations,
    language,
    patterns,
    texts,
)

regex = pytest.importorskip("regex")

SEEN = ["\x1c", "\x85", "²", "٣", "\u200c", "ⓐ", "\n", "a\n", "ab", "K", "α", "Ω", "ss", "ß", "e\u0301"]


@examples(500, kept=0.7)
@given(patterns, texts)
def test_patterns_of_python_are_found_in_the_same_texts_as_ecma262(pattern: str, samples: list[str]) -> None:
    try:
        theirs = language(pattern, search=True)
    except gs.GrammarError:
        discard("a pattern that is refused")
    ours = language(to_ecma262(pattern, "python"), dialect="ecma262", search=True)
    for text in SHORT_TEXTS + SEEN + samples:
        assert ours(text) == theirs(text), text


# ---------------------------------------------------------------------- the package regex
OWN_ITEMS = ["[:alpha:]", "[:^alpha:]", "[:punct:]", "[:word:]", r"\p{Greek}", r"\P{L}", r"\pL", r"\p{^Lu}"]
own_sets = st.builds(
    lambda sign, items: f"[{sign}{''.join(items)}]",
    st.sampled_from(["", "^"]),
    st.lists(st.sampled_from(SET_ITEMS + OWN_ITEMS), min_size=1, max_size=3),
)
own_leaves = st.one_of(
    st.sampled_from([*LITERALS, *CLASSES, r"\pL", r"\p{greek}", "^", "$", r"\b", r"\B", r"\A", r"\Z", r"\z"]), own_sets
)
own_groups = st.sampled_from(["(", "(?:", "(?i:", "(?s:", "(?m:", "(?=", "(?!", "(?<n>", "(?P<m>"])
own_atoms = st.recursive(
    own_leaves, lambda inner: st.builds(lambda o, b: f"{o}{b})", own_groups, alternations(inner)), max_leaves=6
)
own_patterns = alternations(own_atoms)
# I and A together are left out: with both, the package takes other letters for [[:upper:]]+ than for [[:upper:]].
FLAGS = [0, regex.I, regex.A, regex.M, regex.S, regex.V0, regex.B | regex.E]


SETS = re.compile(r"\[:|\\[pP]|\[\^")  # with IGNORECASE, the package finds other cases of them in other places


@examples(500, kept=0.5)
@given(own_patterns, st.sampled_from(FLAGS), texts)
def test_matches_what_the_package_matches(pattern: str, flags: int, samples: list[str]) -> None:
    try:
        theirs = regex.compile(pattern, flags)
    except regex.error:
        discard("a pattern that the package refuses")
    if (flags & regex.I or "(?i:" in pattern) and SETS.search(pattern):
        discard("a set of which the package does not always find the same cases")
    try:
        ours = language(pattern, flags=flags, dialect="regex")
    except gs.GrammarError:
        discard("a pattern that is refused")
    for text in SHORT_TEXTS + SEEN + samples:
        assert ours(text) == (theirs.fullmatch(text) is not None), text


@pytest.mark.parametrize("item", [*CLASSES[1:], "[[:alnum:]]", "[[:space:]]", r"\p{Alphabetic}", r"\p{Script=Latin}"])
@pytest.mark.parametrize("flags", [0, regex.A])
def test_sets_are_those_of_the_package(item: str, flags: int) -> None:
    theirs = regex.compile(item, flags)
    ours = parse(item, flags=flags, dialect="regex").ranges  # type: ignore[union-attr]
    found = {code for low, high in ours for code in range(low, high + 1)}
    for code in range(0x11000):
        assert (code in found) == (theirs.fullmatch(chr(code)) is not None), hex(code)


@pytest.mark.parametrize(
    ("pattern", "flags", "feature"),
    [
        ("(?:foo){e<=1}", 0, "fuzzy matching"), ("a{i,d}", 0, "fuzzy matching"), (r"\X", 0, r"\\X of the package"),
        (r"a\Kb", 0, r"\\K of the package"), ("(?R)", 0, r"\(\?R\) of the package"), ("(?|a|b)", 0, "of the package"),
        ("(?V1)a", 0, "of the package"), ("a", regex.V1, "the flag VERSION1"), ("a", regex.R, "the flag REVERSE"),
        ("(a)(?1)", 0, "of the package"), ("(?>a)", 0, "an atomic group"), (r"(a)\1", 0, "backreference"),
    ],
)  # fmt: skip
def test_what_is_more_than_sets_is_refused(pattern: str, flags: int, feature: str) -> None:
    with pytest.raises(gs.UnsupportedFeature, match=feature):
        parse(pattern, flags=flags, dialect="regex")


def test_malformed_patterns_of_the_package() -> None:
    for pattern in (r"\p{Nothing}", "[[:nothing:]]", "(a", r"\y", "a**"):
        with pytest.raises(regex.error):
            regex.compile(pattern)
        with pytest.raises(gs.GrammarSyntaxError):
            parse(pattern, dialect="regex")
    with pytest.raises(ValueError, match="unknown flags"):
        parse("a", flags=1 << 20, dialect="regex")


def test_sets_that_ignore_case() -> None:
    for pattern in (r"[\p{^Lu}]", "[[:upper:]a]", r"[^[:^alpha:]\p{Lt}]", r"\p{Ll}", "[[:lower:][:punct:]]"):
        theirs, ours = regex.compile(pattern, regex.I), language(pattern, flags=regex.I, dialect="regex")
        for text in map(chr, range(0x250)):
            assert ours(text) == (theirs.fullmatch(text) is not None), (pattern, text)


# ---------------------------------------------------------------------- Rust
@pytest.mark.parametrize(
    ("pattern", "valid", "invalid"),
    [
        (r"\Aa\z", ["a"], ["a\n"]), (r"(?m)a$\n^b", ["a\nb"], ["ab"]), (r"\bé\b", ["é"], [" é"]),
        (r"(?i)straße", ["STRAßE", "strasse"[:4] + "ße"], ["strasse"]), (r"[[:digit:]\pL&&[^x]]", ["5"], ["x", " "]),
        (r"\<a\>\b{start}b\b{end}|c", ["c"], ["ab"]), (r"\p{greek}", ["α"], ["a"]), (r"a+?", ["a", "aa"], [""]),
    ],
)  # fmt: skip
def test_rust(pattern: str, valid: list[str], invalid: list[str]) -> None:
    contains = gs.regex(pattern, dialect="rust").matches
    assert all(map(contains, valid))
    assert not any(map(contains, invalid))


@pytest.mark.parametrize(
    ("pattern", "feature"),
    [("(?=a)", "a lookaround"), ("(?-u:a)", "the flag -u"), ("(?x)a", "the flag x"), ("(?R)a", "the flag R")],
)
def test_what_rust_has_and_is_refused(pattern: str, feature: str) -> None:
    with pytest.raises(gs.UnsupportedFeature, match=feature):
        gs.regex(pattern, dialect="rust")


def test_sets_are_written_by_name() -> None:
    assert to_ecma262(r"^[\w.]+\Z", "python") == r"^[\p{L}\p{N}_.]+$"
    assert to_ecma262("a$", "python") == r"a(?:$|(?=\n$))"
    assert to_ecma262(r"[^\d]", "rust") == r"[^\p{Nd}]"
    assert len(to_ecma262(r"(?i)[a-z]\w", "rust")) < 150
    assert to_ecma262("a/b[/]", "ecma262") == "a/b[/]"
    for pattern in (r"a|b(?:c|d)*e{2,}(?<!x)$", r"^\u{1F600}[\]\-^\\]\x7f\u2028"):
        assert to_ecma262(pattern, "ecma262") == pattern
    with pytest.raises(gs.LimitExceeded, match="nesting depth"):
        to_ecma262("(?:" * 5000 + "a" + ")+" * 5000, "python")
