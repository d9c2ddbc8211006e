"""Terminals of ``.lark`` grammars whose texts are those of another grammar."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import discard, examples

lark = pytest.importorskip("lark")

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
    "required": ["a"],
    "additionalProperties": False,
}
CALLS = """
start: call+
call: NAME "(" [ARGS] ")"
NAME: /[a-z]+/
%declare ARGS
%ignore /[ \\n]+/
"""
ARGS = gs.json_schema(SCHEMA)


def is_args(part: Any) -> bool:
    return isinstance(part, lark.Token) and part.type == "ARGS"


def calls(**options: Any) -> gs.Grammar[Any]:
    return gs.lark(CALLS, lexer="dynamic_complete", terminals={"ARGS": ARGS}, **options)


def test_texts_are_those_of_the_other_grammar() -> None:
    grammar = calls()
    for text in ('f({"a": 1})', 'f ( {"a": 1, "b": ["})", "x"]} ) g(\n)', 'f({  "a" : 1 })'):
        assert grammar.matches(text), text
    for text in (
        'f({"b": []})',
        'f({"a": 1',
        'f({"a": 1}',
        'f({"a": 1, "b": ["x", "x"]})',
        'f("a")',
        'f({"a": 1}{"a": 1})',
    ):
        assert not grammar.matches(text), text
    constraint = gs.compile(grammar, gs.Vocabulary.bytes())
    matcher = constraint.matcher()
    assert matcher.accept_tokens(b'f({"a": 1}') == 10
    assert not matcher.accept_token(ord("{"))


def test_lark_reads_the_texts() -> None:
    text = 'f({"a": 1})  g (\n {"a": 2, "b": ["}) é", "y"]} ) h()'
    found = calls(tree=True, captures=["ARGS", "call"]).match(text)
    assert [json.loads(token) for token in found.value.scan_values(is_args)] == [
        {"a": 1},
        {"a": 2, "b": ["}) é", "y"]},
    ]
    assert found.captures == {
        "ARGS": ['{"a": 1}', '{"a": 2, "b": ["}) é", "y"]}'],
        "call": ['f({"a": 1})', 'g (\n {"a": 2, "b": ["}) é", "y"]} )', "h()"],
    }


def test_samples_have_trees() -> None:
    grammar = calls(tree=True)
    for seed in range(20):
        tree = grammar.parse(grammar.sample(seed, max_bytes=60))
        for token in tree.scan_values(is_args):
            assert ARGS.matches(token)


def test_as_values() -> None:
    grammar = calls(tree=True, captures=["ARGS"])
    again = pickle.loads(pickle.dumps(grammar))
    assert again == grammar != calls()
    assert again.match('f({"a": 1})') == grammar.match('f({"a": 1})')
    assert eval(repr(grammar), {"gs": gs}) == grammar
    assert calls() != gs.lark(CALLS, lexer="dynamic_complete", terminals={"ARGS": gs.json_schema({"type": "object"})})


def test_any_grammar() -> None:
    inner = gs.lark('start: "[" start* "]" | X\nX: "x"')
    nested = gs.lark(
        'start: (A ";")+ I\n%declare A I',
        terminals={"A": inner, "I": gs.grammar(int)},
        lexer="dynamic_complete",
        tree=True,
    )
    assert [str(child) for child in nested.parse("[[x][]];x;-12").children] == ["[[x][]]", "x", "-12"]
    assert not nested.matches("[[x];1")
    defined = gs.lark('start: A\nA: "a"', terminals={"A": gs.literal("b")}, lexer="dynamic_complete")
    assert (defined.matches("a"), defined.matches("b")) == (False, True)
    template = gs.lark("start: twice{A}\ntwice{x}: x x\n%declare A", terminals={"A": inner}, lexer="dynamic_complete")
    assert template.matches("[x]x")


def test_every_cut_is_tried_where_terminals_are_languages() -> None:
    grammar = gs.lark(
        'start: A B\nB: "b"\n%declare A', lexer="dynamic_complete", terminals={"A": gs.regex("a|ab+")}, captures=["A"]
    )
    assert grammar.match("abb").captures == {"A": ["ab"]}
    assert grammar.match("ab").captures == {"A": ["a"]}


EXPRESSIONS = [
    (gs.regex("a|ab"), "/a|ab/"),
    (gs.regex("[a-b]+?b"), "/[a-b]+?b/"),
    (gs.regex("A b #c", flags=re.IGNORECASE | re.VERBOSE), "/A b /ix"),
    (gs.literal("a.b"), '"a.b"'),
    (gs.choice(["a", "ab", "abb"]), '("a" | "ab" | "abb")'),
]


@pytest.mark.parametrize(("grammar", "written"), EXPRESSIONS)
@pytest.mark.parametrize(
    ("parser", "lexer"), [("earley", "dynamic"), ("earley", "basic"), ("lalr", "contextual"), ("lalr", "basic")]
)
def test_expressions_are_as_the_files_own(grammar: gs.Grammar[str], written: str, parser: str, lexer: str) -> None:
    text = 'start: (X Y)+ "!"\nY: /b+|[ab]c/\n%ignore " "\n'
    ours = gs.lark(text + "%declare X", parser=parser, lexer=lexer, terminals={"X": grammar}, tree=True)
    theirs = lark.Lark(f"{text}X: {written}", parser=parser, lexer=lexer)
    accepted = 0
    for sample in (
        "abb!", "ab!", "aab!", "AB b!", "a.bb!", "abbb!", "abab!", "aac!", "abac!", "ab ac ab b!", "a bc!", "!", "ab b",
    ):  # fmt: skip
        try:
            tree = theirs.parse(sample)
        except lark.exceptions.UnexpectedInput:
            assert not ours.matches(sample), sample
            continue
        accepted += 1
        assert ours.parse(sample) == tree
    assert accepted


PIECES = st.lists(st.sampled_from(["[", "]", "x", "a", " ", ";"]), max_size=8).map("".join)
IGNORES = ["", '%ignore " "', "%ignore / +/", "%ignore / +a/"]


@examples(60, kept=0.5)
@given(
    st.sampled_from(IGNORES),
    st.sampled_from(["start: (A | X)*", 'start: (A ";"?)+ X?', "start: A start A | X"]),
    PIECES,
)
def test_embedding_is_writing_it_out(ignored: str, rules: str, text: str) -> None:
    """A terminal that is given a language is a terminal that is defined to have it."""
    texts = ["x", "[x]", "[[x]]", "[]", " x", "[ ]"]
    words = "(" + " | ".join(f'"{word}"' for word in texts) + ")"
    source = f'{rules}\nX: "a" | "xa"\n{ignored}\n'
    ours = gs.lark(f"{source}%declare A", lexer="dynamic_complete", terminals={"A": gs.choice(texts)})
    theirs = lark.Lark(f"{source}A: {words}", lexer="dynamic_complete")
    try:
        theirs.parse(text)
    except lark.exceptions.UnexpectedInput:
        expected = False
    except RuntimeError:  # lark gives up where the end can be ignored as well as matched
        discard("lark fails")
    else:
        expected = True
    assert ours.matches(text) == expected


@pytest.mark.parametrize(
    ("terminals", "options", "error", "message"),
    [
        ({"ARG": ARGS}, {}, gs.GrammarSyntaxError, "no terminal ARG; its terminals are ARGS, NAME"),
        ({"call": ARGS}, {}, gs.GrammarSyntaxError, "no terminal call; its terminals are ARGS, NAME"),
        ({"ARGS": "x"}, {}, TypeError, "is no grammar, but 'x'"),
        ([ARGS], {}, TypeError, "takes a dict of names and grammars"),
        ({"ARGS": gs.regex("a*")}, {}, gs.UnsupportedFeature, r"can be empty\n  at terminals\['ARGS'\]"),
        ({"ARGS": gs.regex("a") & "b"}, {}, gs.Unsatisfiable, "has no texts"),
        ({"ARGS": gs.special("<end>")}, {}, gs.UnsupportedFeature, "special tokens: <end>"),
        ({"ARGS": gs.regex("a").named("n")}, {}, gs.UnsupportedFeature, "named parts: n"),
        ({"ARGS": ARGS}, {"g_regex_flags": re.I}, gs.UnsupportedFeature, "g_regex_flags and terminals"),
        (
            {"ARGS": ARGS},
            {"lexer": "dynamic"},
            gs.UnsupportedFeature,
            r'lexer=.dynamic.(.|\n)*hint: .*"dynamic_complete"',
        ),
        ({"ARGS": ARGS}, {"parser": "lalr", "lexer": "basic"}, gs.UnsupportedFeature, r"lexer='basic'"),
        ({"ARGS": gs.regex(r"\p{Lu}")}, {"lexer": "dynamic", "tree": True}, gs.GrammarSyntaxError, r"bad escape \\p"),
        ({"ARGS": gs.regex("a", dialect="ecma262")}, {"lexer": "basic"}, gs.UnsupportedFeature, r"lexer='basic'"),
    ],
)
def test_refused(terminals: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gs.lark(CALLS, **{"lexer": "dynamic_complete", **options}, terminals=terminals)


@pytest.mark.parametrize("lexer", ["dynamic", "dynamic_complete"])
def test_terminals_made_of_given_ones_are_refused(lexer: str) -> None:
    text = 'start: A\nA: "x" B\nB: "y"\n'
    with pytest.raises(gs.UnsupportedFeature, match=r"(?s)the terminal A is made of B.*line 2, column 1"):
        gs.lark(text, lexer=lexer, terminals={"B": gs.regex("a|b")})
    assert gs.lark(text, lexer=lexer, terminals={"A": gs.regex("a|b")}).matches("b")


def test_ignored_terminals() -> None:
    text = 'start: "a"+\n%ignore B\nB: "b"\n'
    with pytest.raises(gs.UnsupportedFeature, match="the terminal B is ignored"):
        gs.lark(text, lexer="dynamic_complete", terminals={"B": gs.grammar(int)})
    assert gs.lark(text, terminals={"B": gs.regex("[c ]+")}).matches("a cc a")


def test_files(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text("WORD: /[a-z]+/")
    file = tmp_path / "main.lark"
    file.write_text("start: WORD\n%import .words.WORD\n")
    numbers = gs.load(file, lexer="dynamic_complete", terminals={"WORD": gs.grammar(list[int])}, tree=True)
    assert numbers.parse("[1, 2]").children == ["[1, 2]"]
    assert not numbers.matches("word")
    assert eval(repr(numbers), {"gs": gs}) == numbers
    version = gs.load("semver", terminals={"NUMBER": gs.regex("[1-9]")})
    assert (version.matches("1.2.3"), version.matches("1.2.0")) == (True, False)
