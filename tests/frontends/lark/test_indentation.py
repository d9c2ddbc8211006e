"""Tokens of indentation (``postlex``) against lark's own indenter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import grammarspec as gs
from tests import tiers

lark = pytest.importorskip("lark")
indenter = pytest.importorskip("lark.indenter")

BLOCKS = r"""
start: stmt+
stmt: "a" _NL | "b" "(" "a"* ")" _NL | "c" ":" _NL _INDENT stmt+ _DEDENT
%declare _INDENT _DEDENT
LPAR: "("
RPAR: ")"
_NL: /(\r?\n[\t ]*)+/
"""
EXPRESSIONS = r"""
start: stmt+
stmt: "if" e ":" _NL _INDENT stmt+ _DEDENT | e _NL
e: f | f ">" e | f "+" e
f: "a" | "(" e ")" | "-" f
%declare _INDENT _DEDENT
%ignore " "
LPAR: "("
RPAR: ")"
_NL: /(\r?\n[\t ]*)+/
"""
EITHER = r"""
start: (x | y)* _NL*
x: "a" _NL? | "c" ":" _NL _INDENT x+ _DEDENT | x "b" "(" ")"
y: y | "a" _NL | "c" ":" _NL _INDENT (x | y)+ _NL* _DEDENT
%declare _INDENT _DEDENT
LPAR: "("
RPAR: ")"
_NL: /(\r?\n[\t ]*)+/
"""
"""Has two readings of most lines, and a rule that is itself: a parser for LALR grammars refuses it."""
PARTS = ["a", "\n", " ", "c:", "b(", "\t", ")"]


class Blocks(indenter.Indenter):
    NL_type = "_NL"
    OPEN_PAREN_types = ("LPAR",)
    CLOSE_PAREN_types = ("RPAR",)
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 2


class OtherCode(Blocks):
    def handle_NL(self, token: object) -> Iterator[object]:
        yield token


@pytest.fixture(scope="module")
def grammar() -> gs.Grammar:
    return gs.lark(BLOCKS, parser="lalr", postlex=Blocks())


@pytest.mark.property
@pytest.mark.parametrize(
    ("text", "options"),
    [
        (BLOCKS, {"parser": "lalr"}),
        (BLOCKS, {"parser": "earley", "lexer": "basic"}),
        (EITHER, {"parser": "earley", "lexer": "basic"}),
    ],
)
def test_takes_the_texts_that_lark_does(text: str, options: dict[str, str]) -> None:
    parser = lark.Lark(text, **options, postlex=Blocks())
    constraint = gs.compile(gs.lark(text, **options, postlex=Blocks()), gs.Vocabulary.bytes())
    members = 0
    short = ["".join(parts) for size in range(1, 6) for parts in itertools.product(PARTS, repeat=size)]
    nested = ["c:\n a\n" + "".join(parts) + "a\n" for parts in itertools.product(["c:\n", " ", "\t", "a\n"], repeat=4)]
    for tried in tiers.some(short, least=1000) + nested:
        try:
            parser.parse(tried)
            expected = True
        except (lark.exceptions.LarkError, IndexError, AssertionError):  # an indenter's own, on texts without line ends
            expected = False
        matcher, data = constraint.matcher(), tried.encode()
        assert (matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting) == expected, tried
        members += expected
    assert members > 20


@pytest.mark.parametrize(
    ("begun", "allowed", "refused"),
    [
        ("c:", b"\r\n", b"a"),
        ("c:\n", b" \t\n\r", b"a"),
        ("c:\n  ", b"abc \t\n\r", b")"),
        ("c:\n  a\n ", b" \n\t\r", b"abc"),
        ("c:\n  a\n", b"abc \t\n\r", b")"),
        ("b(\n  ", b"a) \n\t\r", b"c"),
    ],
)
def test_next_bytes(grammar: gs.Grammar, begun: str, allowed: bytes, refused: bytes) -> None:
    matcher = gs.compile(grammar, gs.Vocabulary.bytes()).matcher()
    assert matcher.accept_tokens(list(begun.encode())) == len(begun)
    following = matcher.next_bytes()[0]
    assert set(following) == set(allowed)
    assert not set(following) & set(refused)


@pytest.mark.parametrize("begun", ["", "c:", "c:\n", "c:\n   c:\n    ", "c:\n  a\n ", "b(\n\n"])
def test_every_beginning_is_ended(grammar: gs.Grammar, begun: str) -> None:
    constraint = gs.compile(grammar, gs.Vocabulary.bytes())
    matcher = constraint.matcher()
    matcher.accept_tokens(list(begun.encode()))
    text = begun + bytes(constraint.shortest_completion(matcher.state)).decode()
    lark.Lark(BLOCKS, parser="lalr", postlex=Blocks()).parse(text)


@pytest.mark.parametrize("width", [1, 4, 12])
def test_deep_blocks_take_little_work(width: int) -> None:
    """Endings through a line of many blanks are found before all short expressions have been tried."""
    grammar = gs.lark(EXPRESSIONS, parser="lalr", postlex=Blocks())
    lines = [" " * width * depth + "if a > a:\n" for depth in range(8)] + [" " * width * 8 + "a\n", "a\n"]
    matcher = gs.compile(grammar, gs.Vocabulary.bytes(), limits=gs.Limits(max_steps=100_000)).matcher()
    for byte in "".join(lines).encode():
        assert byte in matcher.next_bytes()[0]
        assert matcher.accept_token(byte)
    assert matcher.is_accepting


def test_other_code_is_refused() -> None:
    with pytest.raises(gs.UnsupportedFeature, match="OtherCode of lark is not supported: it has a method handle_NL"):
        gs.lark(BLOCKS, parser="lalr", postlex=OtherCode())
    with pytest.raises(gs.UnsupportedFeature, match="postlex=object of lark"):
        gs.lark(BLOCKS, parser="lalr", postlex=object())


def test_dynamic_lexers_make_no_tokens() -> None:
    with pytest.raises(ValueError, match="lexer='dynamic' makes no tokens that postlex could change"):
        gs.lark(BLOCKS, postlex=Blocks())


def test_rules_behind_nothing_are_refused() -> None:
    """Of the empty rule, an LR parser could make any number before it reads ``a``."""
    text = BLOCKS + 'x: y z "a" | "b"\ny: "c"?\nz: x'
    with pytest.raises(gs.UnsupportedFeature, match="the rule x begins with itself behind what can be empty"):
        gs.lark(text, start="x", parser="earley", lexer="basic", postlex=Blocks())


@pytest.mark.parametrize("parser", ["lalr", "earley"])
def test_blocks_that_cannot_be_closed_take_little_work(parser: str) -> None:
    """The end of a block lacks a line end before it: the search for an ending goes to its limit, and no further."""
    text = BLOCKS + 'x: y "c"\ny: "a" "b" _NL _INDENT y _DEDENT y "c" |'
    grammar = gs.lark(text, start="x", parser=parser, lexer="basic", postlex=Blocks())
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        gs.compile(grammar, gs.Vocabulary.bytes()).matcher().accept_tokens(list(b"ab\n"))


def test_python() -> None:
    file = Path(lark.__file__).parent / "grammars" / "python.lark"
    grammar = gs.load(file, parser="lalr", postlex=indenter.PythonIndenter(), start="file_input")
    for text in (
        "x = 1\n",
        "if a:\n    b()\nelse:\n    c = [1,\n2]\n",
        "def f(a, /, *, c, **d) -> str:\n    return d\n",
    ):
        assert grammar.matches(text), text
    for text in ("if a:\nb()\n", "if a:\n    b()\n  c\n", "def f(a:\n    pass\n"):
        assert not grammar.matches(text), text
