"""Grammars as values: operators, what texts mean, representations, errors."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import discard

DIGITS = gs.regex(r"\d+")
NUMBER = gs.regex("-?(0|[1-9][0-9]*)").map(int)
WORD = gs.regex("[a-z]+")


def test_operators() -> None:
    assert ("id=" + DIGITS).matches("id=12")
    assert (DIGITS + "px").matches("12px")
    assert not (DIGITS + "px").matches("px")
    assert (DIGITS | "none").matches("none")
    assert ("none" | DIGITS).matches("7")
    assert not (WORD & ~gs.choice(["if", "else"])).matches("if")
    assert (WORD & ~gs.choice(["if", "else"])).matches("iff")
    assert ("if" & WORD).matches("if")
    assert not (~WORD).matches("ab")
    assert (~WORD).matches("a\N{GREEK SMALL LETTER ALPHA}")
    assert not (~WORD).matches("\ud800")
    rows = WORD.repeat(1, 3, sep=", ")
    assert [text for text in ("", "a", "a, b", "a, b, c", "a, b, c, d", "a,b") if rows.matches(text)] == [
        "a", "a, b", "a, b, c",
    ]  # fmt: skip
    assert WORD.repeat(0, 2, sep=",").matches("")
    assert gs.literal("a").repeat(2).matches("aaaa")
    assert not gs.literal("a").repeat(0, 0, sep="b").matches("a")
    with pytest.raises(TypeError):
        DIGITS + 1  # type: ignore[operator]
    with pytest.raises(ValueError, match="from 3 to 1"):
        DIGITS.repeat(3, 1)


def test_empty_languages() -> None:
    nothing = WORD & DIGITS
    assert not nothing.matches("a")
    assert (nothing | "x").parse("x") == "x"
    assert nothing.optional().parse("") is None
    for read in (lambda: nothing.parse("a"), nothing.sample):
        with pytest.raises(gs.Unsatisfiable):
            read()


def test_boolean_operators_take_regular_languages_only() -> None:
    nested = gs.json_schema({"type": "array"})
    for build in (lambda: WORD & nested, lambda: ~nested):
        with pytest.raises(gs.UnsupportedFeature, match="regular"):
            gs.compile(build(), gs.Vocabulary.bytes())


@pytest.mark.parametrize(
    "deeper", [lambda grammar: grammar, lambda grammar: ("a" + grammar.optional()).named("x") & "b"]
)
def test_what_is_not_regular_is_named(deeper: Callable[[gs.Grammar[Any]], gs.Grammar[Any]]) -> None:
    nested = gs.lark('start: "(" start? ")"')
    with pytest.raises(gs.UnsupportedFeature) as caught:
        deeper(WORD & nested).matches("a")
    assert caught.value.message.startswith(f"& of {nested!r}, which has rules that call themselves")
    assert caught.value.where == repr(WORD & nested)
    assert "regular expressions" in caught.value.hint
    with pytest.raises(gs.UnsupportedFeature, match=r"^~ of ") as caught:
        deeper(~nested).matches("a")
    assert caught.value.where == repr(~nested)


def test_what_texts_mean() -> None:
    assert (DIGITS + "px").parse("12px") == "12px"
    assert NUMBER.parse("-12") == -12
    assert (NUMBER | "none").parse("none") == "none"
    assert (NUMBER & gs.regex("..")).parse("12") == 12
    assert NUMBER.repeat(1, sep=",").parse("1,2,-3") == [1, 2, -3]
    assert NUMBER.optional().parse("") is None
    assert NUMBER.optional().parse("0") == 0
    assert gs.json_schema({"type": "array"}).map(len).parse("[1, [2]]") == 2
    assert gs.json_value().parse('{"a": 1}') == {"a": 1}
    assert gs.text(until="\n").parse("a b") == "a b"


def test_captures() -> None:
    pair = WORD.named("key") + "=" + NUMBER.named("value")
    match = pair.match("age=31")
    assert (match.value, match.captures) == ("age=31", {"key": "age", "value": 31})
    match_of_all = pair.repeat(0, 3, sep=";").match("a=1;b=2")
    assert match_of_all.captures == {"key": ["a", "b"], "value": [1, 2]}
    assert list(match_of_all.captures) == ["key", "value"]
    assert match_of_all.value == ["a=1", "b=2"]
    assert pair.repeat().match("").captures == {"key": [], "value": []}
    signs = NUMBER.named("n").repeat(sep=gs.choice(["<", "<="]).named("sign"))
    assert signs.match("1<2<=3").captures == {"n": [1, 2, 3], "sign": ["<", "<="]}
    assert signs.match("1").captures == {"n": [1], "sign": []}
    assert signs.match("").captures == {"n": [], "sign": []}
    assert signs.parse("1<2<=3") == [1, 2, 3]
    assert (pair | NUMBER.named("only")).match("3").captures == {"only": 3}
    whole = (NUMBER.named("x") + "," + NUMBER.named("y")).named("point").match("1,2")
    assert whole.captures == {"x": 1, "y": 2, "point": "1,2"}


def test_parts_take_as_much_as_they_can() -> None:
    letters = gs.regex("a*").named("first") + gs.regex("a*b?").named("second")
    assert letters.match("aaab").captures == {"first": "aaa", "second": "b"}
    two = gs.regex("a*").named("first") + gs.regex("a{2}").named("second")
    assert two.match("aaaaa").captures == {"first": "aaa", "second": "aa"}
    schema = gs.json_schema({"type": "integer"}).named("n") + gs.regex(r"\d+").named("rest")
    assert schema.match("123").captures == {"n": 12, "rest": "3"}
    free = gs.text(until=";").named("text") + ";" + gs.text().named("rest")
    assert free.match("a;b;c").captures == {"text": "a", "rest": "b;c"}


def test_free_text() -> None:
    line = gs.text(until="\r\n", max_chars=4)
    assert all(map(line.matches, ["", "abcd", "\r", "a\nb\r", "\U0001f600" * 4]))
    assert not any(map(line.matches, ["abcde", "a\r\n"]))
    for wrong in ({"until": ""}, {"max_chars": -1}):
        with pytest.raises(ValueError, match="until must not be empty"):
            gs.text(**wrong)  # type: ignore[arg-type]


def test_texts_outside_the_language_say_where() -> None:
    grammar = "x = " + NUMBER + "\n" + gs.choice(["yes", "no"])
    for text, said in {
        "x = 1\nyep": "unexpected 'p'; 's' may stand here\n  at line 2, column 3\n    yep\n      ^",
        "x = 1\nyes!": "unexpected '!'; the text may only end here\n  at line 2, column 4\n    yes!\n       ^",
        "x = ": "the text ends here, where '-', '0', '1', '2', '3', '4' or ... must follow\n  at line 1, column 5",
        "x = \ud800": "a lone surrogate is no text\n  at line 1, column 5",
    }.items():
        with pytest.raises(gs.NoMatch) as error:
            grammar.parse(text)
        assert str(error.value).startswith(said)
    with pytest.raises(gs.NoMatch, match="a character beyond ASCII"):
        gs.regex("[äö]").parse("é")


READABLE = [
    gs.literal("it's"),
    gs.choice(["a", "b"]),
    DIGITS,
    gs.regex("a", flags=re.IGNORECASE),
    gs.text(until="\n"),
    gs.json_schema({"type": "integer"}, whitespace="compact"),
    gs.lark('start: "a"+', start="start"),
    "a" + DIGITS + "b",
    "a" + (DIGITS + "b"),
    ("a" | DIGITS) + "c",
    "a" | DIGITS + "c",
    DIGITS & ~WORD | "x",
    WORD & (DIGITS | "x"),
    WORD & (~DIGITS & "x"),
    ~(DIGITS + "a"),
    ~~DIGITS,
    (DIGITS + "a").repeat(1, None, sep=", ").optional(),
    (DIGITS | "a").named("x"),
    (~DIGITS).named("x"),
    DIGITS.map(len),
]


@pytest.mark.parametrize("grammar", READABLE, ids=repr)
def test_representations_read_back(grammar: gs.Grammar[Any]) -> None:
    again = eval(repr(grammar), {"gs": gs, "re": re, "len": len})
    assert again == grammar
    assert hash(again) == hash(grammar)
    copy = pickle.loads(pickle.dumps(grammar))
    assert copy == grammar
    assert repr(copy) == repr(grammar)
    text = grammar.sample(3)
    assert grammar.matches(text)
    assert copy.parse(text) == grammar.parse(text)


def test_grammars_that_mean_something_else_differ() -> None:
    assert DIGITS.map(int) != DIGITS.map(len)
    assert DIGITS.named("a") != DIGITS.named("b")
    assert DIGITS.named("a") != DIGITS
    assert DIGITS != "a"


def test_grammars_from_files(tmp_path: Any) -> None:
    path = tmp_path / "ab.lark"
    path.write_text('start: "a" "b"')
    grammar = gs.load(path)
    assert repr(grammar) == f"gs.load({str(path)!r})"
    grammar = gs.load(path, parser="lalr", g_regex_flags=re.IGNORECASE.value)
    assert repr(grammar) == f"gs.load({str(path)!r}, parser='lalr', g_regex_flags=2)"
    assert grammar.matches("aB")
    assert repr(gs.lark('start: "a"', strict=True)) == "gs.lark('start: \"a\"', strict=True)"
    assert ("<" + grammar + ">").matches("<ab>")


def test_every_front_end_can_be_embedded() -> None:
    person = gs.json_schema(
        {"properties": {"tags": {"items": {"type": "string"}, "uniqueItems": True}}, "type": "object"}
    )
    tree = gs.lark('start: "(" start* ")"')
    both = "A: " + person.named("person") + " B: " + tree.named("tree") + " C: " + person.named("other")
    match = both.match('A: {"tags": ["a", "b"]} B: (()()) C: {}')
    assert match.captures == {"person": {"tags": ["a", "b"]}, "tree": "(()())", "other": {}}
    assert not both.matches('A: {"tags": ["a", "a"]} B: () C: {}')
    assert not both.matches('A: {} B: () C: {"tags": ["a", "a"]}')
    anywhere = gs.json_schema({"required": ["a", "b"], "type": "object"}, property_order="any")
    twice = anywhere.repeat(2, 2, sep="\n")
    assert twice.matches('{"b": 1, "a": 2}\n{"a": 1, "b": 2}')
    assert not twice.matches('{"b": 1, "a": 2}\n{"a": 1}')
    assert not twice.matches('{"b": 1, "a": 2}{"a": 1, "b": 2}')


LEAVES = st.sampled_from(
    [gs.literal(""), gs.literal("a"), gs.literal("b"), gs.choice(["ab", "a"]), gs.regex("[ab]{1,2}")]
)


def _deeper(inner: st.SearchStrategy[gs.Grammar[Any]]) -> st.SearchStrategy[gs.Grammar[Any]]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda pair: pair[0] + pair[1]),
        pairs.map(lambda pair: pair[0] | pair[1]),
        pairs.map(lambda pair: pair[0] & pair[1]),
        inner.map(lambda grammar: ~grammar),
        st.tuples(inner, st.integers(0, 2), st.integers(0, 2), st.sampled_from(["", "b", ","])).map(
            lambda drawn: drawn[0].repeat(drawn[1], drawn[1] + drawn[2], sep=drawn[3])
        ),
        inner.map(lambda grammar: grammar.optional()),
    )


EXPRESSIONS = st.recursive(LEAVES, _deeper, max_leaves=5)


@given(EXPRESSIONS, EXPRESSIONS, st.text("ab,", max_size=5))
def test_laws(one: gs.Grammar[Any], two: gs.Grammar[Any], text: str) -> None:
    """The operators against membership, cut by cut; and a text that is read is read to the end."""

    def has(grammar: gs.Grammar[Any], text: str) -> bool:
        try:
            return grammar.matches(text)
        except gs.UnsupportedFeature:
            discard("a refusal")

    assert has(one | two, text) == (has(one, text) or has(two, text))
    assert has(one & two, text) == (has(one, text) and has(two, text))
    assert has(~one, text) != has(one, text)
    cuts = [(text[:at], text[at:]) for at in range(len(text) + 1)]
    assert has(one + two, text) == any(has(one, left) and has(two, right) for left, right in cuts)
    again = eval(repr(one), {"gs": gs})
    assert again == one
    if has(one, text):
        assert again.parse(text) == one.parse(text)
        assert (
            (one + two).named("all").repeat(1, 1).match(text + two.sample(0)).captures["all"] if has(two, "") else True
        )
        assert has(one, one.sample(1))


def test_names_that_two_parts_have() -> None:
    x, y = DIGITS.named("x"), gs.regex("[a-z]").named("x")
    for join in (
        lambda: x + "," + y,
        lambda: "," + x + (y | "-"),
        lambda: x.repeat(1, sep=y),
        lambda: x.optional().named("x"),
        lambda: (x + "-").repeat().map(len) + y,
    ):
        with pytest.raises(ValueError, match="two parts of a text are named 'x'\n  hint: give them different names"):
            join()
    assert (x | y).match("a").captures == {"x": "a"}
    assert (x.fields() + y).match("1a").captures == {"x": "a"}
    assert (x.repeat() + ";").match("12;").captures == {"x": ["12"]}
    assert (~x + y).match(";a").captures == {"x": "a"}
    assert pickle.loads(pickle.dumps(x + ";")) == x + ";"


def test_operators_that_are_nested_too_deeply() -> None:
    def tower() -> gs.Grammar[str]:
        grammar: gs.Grammar[str] = gs.literal("a")
        for _ in range(3_000):
            grammar = (grammar + "b") | "c"
        return grammar

    one, other = tower(), tower()
    assert repr(one) == "<Union of operators that are nested too deeply to be shown>"
    with pytest.raises(gs.LimitExceeded, match="nesting depth"):
        _ = one == other
    with pytest.raises(gs.LimitExceeded, match="nesting depth"):
        one.matches("c")
