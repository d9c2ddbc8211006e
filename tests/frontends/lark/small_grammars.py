"""Small random grammars over the letters a, b and c, in which lexers are put to the test.

Keywords stand beside names, terminals overlap, have priorities and flags, end lazily or greedily, look ahead and
behind; rules are nullable, inlined, templates, recursive; something may be ignored.
"""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

__all__ = ["LETTERS", "grammars", "texts"]

LETTERS = "abc"

WORDS = ['"a"', '"b"', '"c"', '"ab"', '"ba"', '"aa"', '"abc"', '"A"i', '"aB"i', '"a".."b"']
"""Strings: what keywords and signs are."""
NAMES = ["/[ab]+/", "/a[abc]*/", "/[a-c]+/", "/[bc]/", "/[^a]/", "/a+/", "/./", "/[AB]+/i", "/b+c?/"]
CHOICES = ["/a|ab/", "/ab|a/", "/(?:a|ab)(?:c|bc)?/", "/b|ba|bab/", "/(a|b)+c?/", "/a*b|c/", "/aa|a/"]
COUNTED = ["/[ab]{2}/", "/a{1,2}/", "/c{2,}/", "/(?:ab){1,2}/", "/b{2}?/"]
LAZY = ["/a+?b/", "/a.*?c/", "/b??c/", "/a.*c/", "/[ab]+?/", "/b+?/"]
LOOKING = [
    "/a(?!b)/",
    "/a(?=b)/",
    "/b(?!c)[ac]/",
    "/a(?=b)b?/",
    "/(?<!a)b/",
    "/(?<=a)b/",
    r"/a\b/",
    "/(?<=[ab])c/",
    "/(?<![bc])a+/",
    r"/\bb+/",
    r"/\Ba/",
    r"/^a|b/",
    "/(?m:^)[bc]/",
    "/a$/",
    "/b(?!$)/",
]
REGEXES = [NAMES, CHOICES, COUNTED, LAZY]
IGNORED = ['"c"', "/c+/", '" "', "/ca*?c/", "A", '"cc"', "/c|cb/"]
OPERATORS = ["?", "*", "+", "~2", "~1..2"]
RARELY = 5
"""One in so many symbols has an operator, and one in so many definitions another property that is rare."""


def _sometimes(rare: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(*[st.just("")] * (RARELY - 1), rare)


def _joined(items: st.SearchStrategy[str], least: int, most: int) -> st.SearchStrategy[str]:
    """Alternatives, each a sequence."""
    sequences = st.lists(items, min_size=least, max_size=most).map(" ".join)
    return st.lists(sequences, min_size=1, max_size=3, unique=True).map(" | ".join)


_words = st.sampled_from(WORDS)
_operators = _sometimes(st.sampled_from(OPERATORS))
_priorities = _sometimes(st.sampled_from([".1", ".2", ".-1"]))
_modifiers = _sometimes(st.sampled_from(["?", "!"]))
_names = st.sampled_from(["A", "A", "B", "B", "C", "x", "y", "t{A}", 't{"b"}', "t{x}"])
_tails = _sometimes(st.sampled_from([' | start "c"', " | A start", ' | "a" start "b"', " |", " | y x"]))


def _definitions(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """What a terminal may be."""
    parts = st.builds(str.__add__, st.one_of(atoms, st.just("D")), _operators)
    return st.one_of(atoms, atoms, _words, _joined(parts, 1, 2))


def _items(symbols: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """What an alternative of a rule may have."""
    one = st.builds(str.__add__, symbols, _operators)
    several = _joined(symbols, 1, 2)
    return st.one_of(
        one, one, st.builds("({}){}".format, several, st.sampled_from(OPERATORS)), several.map("[{}]".format)
    )


@st.composite
def grammars(draw: st.DrawFn) -> str:
    """The text of a grammar. lark may refuse it: for conflicts, or terminals that can be empty."""
    looking = draw(st.integers(0, 2)) == 2
    regexes = st.sampled_from([*REGEXES, LOOKING] if looking else REGEXES).flatmap(st.sampled_from)
    atoms = st.one_of(_words, regexes, regexes)
    symbols = st.one_of(_names, _names, _words, atoms)
    ignored = st.sampled_from([*IGNORED, "/b(?=c)/", "/(?<=[ac])c/"] if looking else IGNORED)
    lines = [
        f"start: {draw(_joined(_items(symbols), 1, 3))}{draw(_tails)}",
        f"{draw(_modifiers)}x{draw(_priorities)}: {draw(_joined(_items(symbols), 1, 2))}{draw(_tails)}",
        f"{draw(_modifiers)}y: {draw(_joined(symbols.filter(lambda name: 'x' not in name), 1, 2))}",
        't{p}: p "c" | p' if draw(st.booleans()) else "t{p}: p+",
        f"A{draw(_priorities)}: {draw(_definitions(atoms))}",
        f"B{draw(_priorities)}: {draw(_definitions(atoms))}",
        f"C{draw(_priorities)}: {draw(_words)}",
        f"D: {draw(_words)}",
        *(f"%ignore {one}" for one in draw(st.lists(ignored, max_size=2, unique=True))),
    ]
    return "\n".join(lines)


def texts(longest: int) -> list[str]:
    """All texts over the letters, the shortest first."""
    return ["".join(letters) for size in range(longest + 1) for letters in itertools.product(LETTERS, repeat=size)]
