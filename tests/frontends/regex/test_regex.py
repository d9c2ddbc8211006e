"""Regular expressions against ``re`` itself, through the membership oracle and through the compiler."""

from __future__ import annotations

import itertools
import re
import string
import sys
import unicodedata
import warnings
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.frontends.regex import Dialect, PlainText, lower, lower_search, parse, unicode_sets
from grammarspec.frontends.regex.charsets import Ranges, complement, intersect, normalise, subtract, union
from grammarspec.frontends.regex.endless import infinitely_many, some_text
from grammarspec.frontends.regex.tree import Chars
from grammarspec.grammars.budget import Budget
from tests.counting import discard, examples, tally
from tests.endings import ends
from tests.oracles.membership import recogniser
from tests.oracles.recording import RecordingBuilder

# Patterns: every construct of the dialect, over characters with awkward cases and classes.

LITERALS = [
    "a", "b", "k", "K", "_", " ", "1", r"\.", r"\n", "é", "ſ", "\u212a", "-", r"\x61", "ß", "\n", "#",
    r"\N{DIGIT TWO}",
]  # fmt: skip
SET_ITEMS = [
    "a", "b", "K", "a-c", "_", r"\d", r"\w", r"\s", r"\W", r"\D", r"\S", r"\n", "é", "ſ", "A-Z", "\u212a", "^", r"\]",
    r"\b", "0-9", r"\141",
]  # fmt: skip
CLASSES = [".", r"\w", r"\d", r"\s", r"\W", r"\S", r"\D"]
ANCHORS = ["^", "$", r"\b", r"\B", r"\A", r"\Z"]
OPENINGS = ["(", "(?:", "(?i:", "(?s:", "(?m:", "(?a:", "(?x:", "(?-i:", "(?im-s:", "(?#)(", "(?=", "(?!"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "*?", "+?", "??", "{0,2}?", "{0}", "{,}"]
GLOBAL_FLAGS = ["", "(?i)", "(?m)", "(?s)", "(?x)", "(?a)", "(?im)", "(?ia)"]

sets = st.builds(
    lambda sign, items: f"[{sign}{''.join(items)}]",
    st.sampled_from(["", "^"]),
    st.lists(st.sampled_from(SET_ITEMS), min_size=1, max_size=3),
)
characters = st.one_of(st.sampled_from(LITERALS), st.sampled_from(CLASSES), sets)
lookbehinds = st.builds(  # re wants them of fixed width; what looks ahead must come last
    lambda sign, before, body, after: f"(?<{sign}{before}{''.join(body)}{after})",
    st.sampled_from("=!"),
    st.sampled_from(["", "", "^", r"\A"]),
    st.lists(characters, max_size=2),
    st.sampled_from(["", "", *ANCHORS, r"\b|a", "(?=a)", r"(?:a|\B)"]),
)
leaves = st.one_of(characters, characters, st.sampled_from(ANCHORS), lookbehinds)


def alternations(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    quantifiers = st.one_of(st.just(""), st.just(""), st.sampled_from(QUANTIFIERS))
    pieces = st.builds(lambda a, q: a if a in ANCHORS else a + q, atoms, quantifiers)  # re repeats no anchor
    sequences = st.lists(pieces, max_size=4).map("".join)
    return st.lists(sequences, min_size=1, max_size=3).map("|".join)


atoms = st.recursive(
    leaves,
    lambda inner: st.builds(lambda o, b: f"{o}{b})", st.sampled_from(OPENINGS), alternations(inner)),
    max_leaves=8,
)
patterns = st.builds(lambda f, p: f + p, st.sampled_from(GLOBAL_FLAGS), alternations(atoms))
texts = st.lists(st.text("abkK_ 1.\néſß-#\u212a2", max_size=6), min_size=10, max_size=10)
SHORT_TEXTS = ["".join(letters) for size in range(3) for letters in itertools.product("ab\nK ", repeat=size)]


def compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # "possible nested set" and the like: still plain sets
        try:
            return re.compile(pattern)
        except re.error:  # such as a lookbehind of no fixed width
            discard("a pattern that re refuses")


def language(
    pattern: str, *, flags: int = 0, dialect: Dialect = "python", search: bool = False
) -> Callable[[str], bool]:
    """Membership by the oracle."""
    builder = RecordingBuilder()
    lowered = (lower_search if search else lower)(
        parse(pattern, flags=flags, dialect=dialect), builder, PlainText(builder)
    )
    contains = recogniser(builder, builder.terminal(lowered))
    return lambda text: contains(text.encode())


def matcher_language(grammar: gs.Grammar) -> Callable[[bytes], bool]:
    """Membership by the compiled automaton over single bytes."""
    try:
        constraint = gs.compile(grammar, gs.Vocabulary.bytes())
    except gs.Unsatisfiable:
        return lambda data: False

    def contains(data: bytes) -> bool:
        matcher = constraint.matcher()
        return matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting

    return contains


@examples(1500, kept=0.7)
@given(patterns, texts)
def test_matches_the_texts_of_fullmatch(pattern: str, samples: list[str]) -> None:
    reference, ours = compiled(pattern), language(pattern)
    for text in SHORT_TEXTS + samples:
        assert ours(text) == (reference.fullmatch(text) is not None), text


@examples(500, kept=0.7)
@given(patterns, texts)
def test_search_finds_what_re_finds(pattern: str, samples: list[str]) -> None:
    reference, ours = compiled(pattern), language(pattern, search=True)
    for text in SHORT_TEXTS + samples:
        assert ours(text) == (reference.search(text) is not None), text


@examples(200, kept=0.7)
@given(patterns, st.lists(st.binary(max_size=4), min_size=20, max_size=20))
def test_invalid_utf8_never_matches(pattern: str, samples: list[bytes]) -> None:
    compiled(pattern)  # or it is discarded
    builder = RecordingBuilder()
    contains = recogniser(builder, lower_search(parse(pattern), builder, PlainText(builder)))
    for data in samples:
        if data != data.decode(errors="ignore").encode():
            assert not contains(data)


PIECES = [
    *"ab1, 0-]}\n#()()[]{}*+?|^$.\\", "[^", r"\x4", r"\x41", r"\u00e9", r"\U0001f600", r"\N{EM DASH}", r"\N{NONE}",
    r"\0", r"\12", r"\123", r"\777", r"\8", "(?", "(?:", "(?i)", "(?i:", "(?-i:", "(?P<a>", "(?P<b>", "(?P=a)",
    "(?P>", "(?#", "(?=", "(?<=", "(?<!", "(?<a", "(?(1)", "(?a-", "(?au:", "(?L)", "(?i-i:", "(?x)", "{2}", "{2,1}",
    "{,3}", "{,}", r"\d", r"\b", r"\A", r"\q", r"\_", r"\é", "[a-", "[]", "--", "&&", "(?>", "*+",
]  # fmt: skip


@examples(1500)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.sampled_from([0, re.X, re.I, re.A, re.M | re.S]))
def test_accepts_and_rejects_the_syntax_that_re_does(pattern: str, flags: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            re.compile(pattern, flags)
        except (ValueError, re.error) as error:
            if "fixed-width" in str(error):
                discard("an extension of ours")
            with pytest.raises(gs.GrammarError):
                parse(pattern, flags=flags)
            return
    taken = tally("patterns taken", 0.9)
    try:
        parse(pattern, flags=flags)
        taken.keep()
    except gs.UnsupportedFeature:
        taken.discard("a refusal")


@examples(400, kept=0.7)
@given(patterns, texts)
@example(r"((|(?<=$)\D)(?<!a))a", [])  # a lookahead before a lookbehind at the start
def test_compiled_grammar_agrees_with_fullmatch(pattern: str, samples: list[str]) -> None:
    pattern = pattern if "(?a" in pattern or "(?ia)" in pattern else "(?a)" + pattern  # small classes, for speed
    reference = compiled(pattern)
    ours = matcher_language(gs.regex(pattern))
    for text in SHORT_TEXTS + samples:
        assert ours(text.encode()) == (reference.fullmatch(text) is not None), text


# Anchors and lookarounds that their neighbours decide must cost nothing.

_AHEAD, _BEHIND = 9, 10


def operations(pattern: str, *, dialect: Dialect = "ecma262", search: bool = True) -> set[int]:
    builder = RecordingBuilder()
    (lower_search if search else lower)(parse(pattern, dialect=dialect), builder, PlainText(builder))
    return {op for op, _ in builder.nodes}


@pytest.mark.parametrize(
    "pattern",
    [
        "^a|b$", "^(a|b)$", "^[a-z]+$", "a", "(^a|b)c", "^(?:(?:a$|b$)|c)", r"^(?=.*[A-Z])(?=.*\d)(?!.*\s).{8,}$",
        r"\bfoo\b",
        r"^\b[a-z]+\b$", "^^a$$", "(?!a)", "(?<!a)b", "foo(?=bar)", "^(?:(?!x)a)+$", "^$",
    ],
)  # fmt: skip
def test_no_zero_width_nodes_where_neighbours_decide(pattern: str) -> None:
    assert not operations(pattern) & {_AHEAD, _BEHIND}


@pytest.mark.parametrize("pattern", [r"^abc$", r"\Aabc\Z", r"(?m)^abc$", r"(?m)^a$\n^b$", r"(?s)(?=.*a).*", r"a\b b"])
def test_no_zero_width_nodes_in_whole_matches(pattern: str) -> None:
    assert not operations(pattern, dialect="python", search=False) & {_AHEAD, _BEHIND}


def test_undecided_assertions_are_kept() -> None:
    assert _AHEAD in operations("(?:(?!ab).)*")
    assert _BEHIND in operations(r"(?:.\b)*", search=False)


# ECMA-262.

ECMA = [
    (r"^\d$", "5", "٥"),
    (r"^\w$", "_", "é"),
    (r"^\W$", "é", "a"),
    (r"^\s$", "\ufeff", "\x1c"),
    (r"^\S$", "\x1f", "\u2028"),
    (r"^.$", "\x0b", "\u2029"),
    (r"^.$", "\U0001f600", "\r"),
    ("^a$", "a", "a\n"),
    ("a$", "ba", "ab"),
    ("^a", "ab", "\na"),
    (r"^\cA\cz$", "\x01\x1a", "AZ"),
    (r"^\u0041\u{1F600}\x42$", "A\U0001f600B", "A\U0001f601B"),
    (r"^\uD83D\uDE00$", "\U0001f600", "\U0001f601"),
    (r"^[\uD83D\uDE00-\u{1F64F}]$", "\U0001f610", "\ud7ff"),
    (r"^\p{Lu}\p{Letter}\p{gc=Nd}$", "Éé٥", "éé5"),
    (r"^\P{General_Category=Uppercase_Letter}$", "a", "A"),
    (r"^[\p{L}\-_]+$", "é-_", "é.-"),
    (r"^\/\-\_\:\@\"$", '/-_:@"', "/-_:@'"),
    (r"^(?<year>\d{4})-(?<month>\d\d)$", "2024-01", "24-01"),
    (r"^(?=.*\d)(?!.*x)[a-z\d]+$", "ab1", "abx1"),
    (r"^(?!x).+(?<!y)$", "ab", "ay"),
    (r"(?<=\$)\d+(?!\.)", "a $1,", "a 1"),
    (r"\bcat\b", "a cat.", "concat"),
    (r"\Bcat\B", "concats", "cat"),
    (r"^{a}]$", "{a}]", "a"),
    (r"^\${x}$", "${x}", "$x"),
    (r"^a{2}b{1,}c{0,1}$", "aabbc", "abc"),
    (r"^[^]$", "\n", ""),
    (r"^[\b]$", "\b", "b"),
    (r"^[\w-.]$", "-", ","),
    (r"^[+--]$", ",", "."),
    (r"^\0$", "\0", "0"),
    (r"^(?:a|)$", "", "b"),
    (r"^(?:(?=a))?b$", "b", "a"),
]


@pytest.mark.parametrize(("pattern", "valid", "invalid"), ECMA)
def test_ecma262(pattern: str, valid: str, invalid: str) -> None:
    ours = language(pattern, dialect="ecma262", search=True)
    assert ours(valid)
    assert not ours(invalid)


@pytest.mark.parametrize("pattern", ["[]", "a[]", "[]*a[]"])
def test_ecma262_empty_class(pattern: str) -> None:
    ours = language(pattern, dialect="ecma262", search=True)
    assert not any(map(ours, SHORT_TEXTS))


ECMA_ERRORS = [
    (r"\a", 1), (r"a\Z", 2), (r"\u{110000}", 1), (r"\u12", 1), (r"\x4", 1), (r"\c1", 1), (r"\01", 1), ("a{,3}", 2),
    ("a**", 3), ("*a", 1), ("^*", 2), ("(a", 1), ("a)", 2), ("[a", 1), ("[b-a]", 2), ("a{2,1}", 2), ("(?P<n>a)", 1),
    ("(?<n>a)(?<n>b)", 8), ("(?<1>a)", 1), (r"\p{Foo}", 1), (r"\p{letter}", 1), (r"\p", 1), ("\\", 1),
    (r"x\uD83D", 2), ("(?>a)", 1), (r"\p{Script=Foo}", 1),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "column"), ECMA_ERRORS)
def test_ecma262_errors_show_the_place(pattern: str, column: int) -> None:
    with pytest.raises(gs.GrammarSyntaxError) as caught:
        parse(pattern, dialect="ecma262")
    assert caught.value.where.startswith(f"line 1, column {column}\n")


@pytest.mark.parametrize(
    ("pattern", "dialect", "feature"),
    [
        (r"(a)\1", "python", r"backreference \1"),
        (r"(?P<x>a)(?P=x)", "python", "backreference (?P=x)"),
        (r"(a)?(?(1)b|c)", "python", "conditional group"),
        (r"(?>a|ab)c", "python", "atomic group"),
        (r"a*+", "python", "possessive quantifier"),
        (r"(a)\1", "ecma262", r"backreference \1"),
        (r"(?<x>a)\k<x>", "ecma262", r"backreference \k"),
        (r"(?i:a)", "ecma262", "inline flags"),
    ],
)
def test_refused_by_name(pattern: str, dialect: Dialect, feature: str) -> None:
    with pytest.raises(gs.UnsupportedFeature, match=re.escape(feature)):
        gs.regex(pattern, dialect=dialect)


def test_error_points_at_the_place() -> None:
    with pytest.raises(gs.GrammarSyntaxError) as caught:
        gs.regex("(?x)\nab\n  c[d-a]e")
    assert caught.value.where == "line 3, column 5\n      c[d-a]e\n        ^"


# Unicode.


def members(ranges: Ranges) -> set[int]:
    return {codepoint for low, high in ranges for codepoint in range(low, high + 1)}


EVERYTHING = "".join(map(chr, range(sys.maxunicode + 1)))


@pytest.mark.parametrize("letter", ["d", "s", "w"])
def test_unicode_classes_are_those_of_re(letter: str) -> None:
    assert members(unicode_sets.unicode_class(letter)) == {ord(c) for c in re.findall(rf"\{letter}", EVERYTHING)}


@pytest.mark.slow
def test_general_categories_are_those_of_unicodedata() -> None:
    by_category: dict[str, set[int]] = {}
    for codepoint, char in enumerate(EVERYTHING):
        by_category.setdefault(unicodedata.category(char), set()).add(codepoint)
    for category, codepoints in by_category.items():
        assert members(unicode_sets.property_ranges(category)) == codepoints
    assert members(unicode_sets.property_ranges("LC")) == by_category["Lu"] | by_category["Ll"] | by_category["Lt"]
    assert members(unicode_sets.property_ranges("Punctuation")) == members(unicode_sets.property_ranges("P"))


@pytest.mark.parametrize("name", ["Script=Greek", "scx=Latn", "Emoji", "White_Space", "Default_Ignorable_Code_Point"])
def test_scripts_and_binary_properties(name: str) -> None:
    regex = pytest.importorskip("regex")
    expected = {ord(c) for c in regex.findall(rf"\p{{{name}}}", EVERYTHING)}
    assert members(unicode_sets.property_ranges(name)) == expected


def test_properties_without_the_regex_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    unicode_sets.property_ranges.cache_clear()
    unicode_sets.package_set.cache_clear()
    assert unicode_sets.property_ranges("Lu")
    with pytest.raises(gs.UnsupportedFeature, match="Script=Greek"):
        parse(r"\p{Script=Greek}")


def test_ignoring_case_is_what_re_does() -> None:
    cased = [c for c in EVERYTHING if c.lower() != c or c.upper() != c]
    among_cased = "".join(cased)
    for char in cased[::7] + list("kKsSiIıİſµμΐΰ\u0345\ufb05\U00010400\U00010428"):
        for flags in (re.I, re.I | re.A):
            ours = unicode_sets.fold_case(((ord(char), ord(char)),), ascii_only=bool(flags & re.A))
            assert members(ours) == {ord(c) for c in re.findall(re.escape(char), among_cased, flags)}


@pytest.mark.combined
@pytest.mark.parametrize("flags", [re.NOFLAG, re.I, re.A, re.I | re.A])
@pytest.mark.parametrize("form", ["{}", "[{}]", "[^{}]", "[{}a]", "[^{}\u0345k]"])
def test_classes_with_flags_are_what_re_takes(form: str, flags: re.RegexFlag) -> None:
    """Other cases are those of characters that are spelled, not those of what a class happens to contain."""
    for letter in "wWdDsS":
        pattern = form.format(f"\\{letter}")
        node = parse(pattern, flags=flags)
        assert isinstance(node, Chars)
        runs = [found.span() for found in re.finditer(f"(?:{pattern})+", EVERYTHING, flags)]
        assert node.ranges == tuple((start, end - 1) for start, end in runs), pattern


def test_ignoring_case_leaves_properties_alone() -> None:
    for pattern in (r"\p{Lu}", r"\P{Lu}", r"[\p{Lu}]", r"[^\p{Lu}]"):
        assert repr(parse(pattern, flags=re.I)) == repr(parse(pattern))


@pytest.mark.parametrize("letter", string.ascii_letters + string.digits)
def test_escapes_are_those_of_re(letter: str) -> None:
    for form, followed in itertools.product(("\\{}{}", "[\\{}{}]"), ("", "{Lu}", "1", "a1a1a1a1")):
        pattern = form.format(letter, followed)
        try:
            re.compile(pattern)
        except (re.error, OverflowError):
            if letter in "pP" and followed == "{Lu}":
                continue  # an extension of ours
            with pytest.raises(gs.GrammarSyntaxError):
                parse(pattern)
        else:
            ours, theirs = language(pattern), re.compile(pattern)
            for text in [*map(chr, range(256)), "", "\x1b{Lu}", "\x01", "aa1a1a1a1", "\xa11a1a1a", "\t{Lu}", "{Lu}"]:
                assert ours(text) == (theirs.fullmatch(text) is not None), (pattern, text)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=6),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9))),
)
def test_set_algebra(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    a, b = (normalise((low, low + size) for low, size in pairs) for pairs in (some, others))
    x, y = members(a), members(b)
    assert members(union(a, b)) == x | y
    assert members(intersect(a, b)) == x & y
    assert members(subtract(a, b)) == x - y
    assert complement(complement(a)) == a
    assert not members(complement(a)) & x


@pytest.mark.parametrize(
    ("pattern", "endless"),
    [
        ("a", True), ("^a", True), ("^a$", False), ("^a*$", True), ("^(?!a)", True), ("^(?!a)b", True), (r"^\b_", True),
        ("^(?![^])", False), ("^(?!.*a)", True), ("^(?=a)(?!a)", False), ("(?!a)$", True), ("^(?!a$)", True),
        ("^[a-z]{2}$", False), ("^(ab|c+)$", True), (r"^([0-9]\.?[0-9]*)x$", True),
    ],
)  # fmt: skip
def test_patterns_that_match_infinitely_many_texts(pattern: str, endless: bool) -> None:
    assert infinitely_many([pattern], [], Budget()) == endless
    assert some_text([pattern], [], Budget()) == (pattern != "^(?=a)(?!a)")
    assert not some_text([pattern], [pattern], Budget())


def test_texts_of_several_patterns() -> None:
    assert infinitely_many(["^a", "b$"], ["c"], Budget())
    assert infinitely_many([], ["^.{1,3}$"], Budget())
    assert not infinitely_many(["^[ab]*$"], ["..."], Budget())
    assert some_text(["^[ab]*$"], ["..."], Budget())
    assert not some_text(["^a"], ["a"], Budget())
    with ends():
        infinitely_many(["^(a|b|ab)*(.{0,500}c){40}$"], ["(x+x+)+y", "^(?!a{1000})"], Budget())


# Hostile patterns: a result or a clear error, at once.

WORDS = [f"{first}{n}{first}" for n in range(6250) for first in "abcdefgh"]
ANSWERED = {
    "parentheses": "(" * 20_000 + "a" + ")" * 20_000,
    "large count": "a{1000000}",
    "words": "|".join(WORDS),
    "words in a group with anchors": rf"^\b(?:{'|'.join(WORDS)})\b$",
    "nested stars": "(a*)*b",
    "stars in sequence": "(.*.*)*x",
    "ambiguity": "(a|a)*",
    "NUL": "a\0b",
    "lookaheads": "(?=a)" * 1000 + ".*",
    "long": "a" * 1_000_000,
}


@pytest.mark.parametrize("name", ANSWERED)
def test_hostile_patterns_work(name: str) -> None:
    builder = RecordingBuilder()
    with ends():
        lower(parse(ANSWERED[name]), builder, PlainText(builder))


@pytest.mark.parametrize(
    ("pattern", "error", "message"),
    [
        ("(" * 20_000, gs.GrammarSyntaxError, "missing )"),
        ("(a" * 20_000 + ")?" * 20_000, gs.LimitExceeded, "nesting depth"),
        ("a{4294967295}", gs.LimitExceeded, "repetition count"),
        ("a{" + "9" * 5000 + "}", gs.LimitExceeded, "repetition count"),
        ("a\ud800", gs.GrammarSyntaxError, "lone surrogate"),
        (r"a\udfff", gs.GrammarSyntaxError, "lone surrogate"),
        (r"[\ud800-\udfff]", gs.GrammarSyntaxError, "lone surrogate"),
    ],
)
def test_hostile_patterns_are_refused(pattern: str, error: type[gs.GrammarError], message: str) -> None:
    with ends(), pytest.raises(error, match=message.replace(")", r"\)")):
        gs.regex(pattern)


def test_surrogates_inside_ranges_change_nothing() -> None:
    ours = language(r"[^\ud800-\udfff]")
    assert ours("a")
    assert ours("\U0001f600")


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="dialect"):
        gs.regex("a", dialect="perl")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="flags"):
        gs.regex("a", flags=re.I, dialect="ecma262")
    with pytest.raises(ValueError, match="flags"):
        gs.regex("a", flags=1 << 12)
    assert gs.regex("a", flags=re.DEBUG).matches("a")
    assert language("a.", flags=re.IGNORECASE | re.DOTALL)("A\n")


@pytest.mark.parametrize("character", ["\u03b9", "\u0399", "\u0345", "\u212a", "\u017f", "a"])
@pytest.mark.parametrize("pattern", [r"\W", r"[\W]", r"[^\w]", r"\w", r"[\w]", r"\D", r"(?i)\W"])
def test_cases_of_a_letter_are_in_no_class_that_lacks_it(pattern: str, character: str) -> None:
    expected = re.fullmatch(pattern, character, re.I) is not None
    assert gs.regex(pattern, flags=re.I).matches(character) == expected


def test_the_end_is_spelled_as_python_has_it() -> None:
    try:
        re.compile(r"a\z")
    except re.error:
        with pytest.raises(gs.GrammarSyntaxError, match=r"bad escape \\z"):
            gs.regex(r"a\z")
    else:
        assert gs.regex(r"a\z").matches("a")
