"""Terminals that look at the character before their own text."""

from __future__ import annotations

import itertools

import pytest

import grammarspec as gs

lark = pytest.importorskip("lark")

TEXTS = ["".join(letters) for size in range(6) for letters in itertools.product("ab \n", repeat=size)]
VOCABULARY = gs.Vocabulary.bytes()

GRAMMARS = {
    "blanks that begin no text and no line": r"""
        start: (A | NEWLINE)*
        A: /[ab]+/
        NEWLINE: /\n+ */
        BLANK: /(?<=\S) +/
        %ignore BLANK""",
    "the beginning of a line": r"""
        start: (A | B)*
        A: /(?m:^)[ab]+/
        B: /\s/""",
    "a string that is a keyword only where the other terminal begins": r"""
        start: (B | C)*
        B: "a"
        C: /(^|(?<=\n))a/""",
    "a string among what is not behind itself": r"""
        start: (B | C)*
        B: /(?<!\n)\n/
        C: "\n"
        %ignore /[ab]/""",
    "boundaries of words": r"""
        start: (A | B | " ")*
        A: /\ba/
        B: /\Bb+/""",
    "a lookbehind in a lookahead": r"""
        start: (A | B | " ")*
        A: /(?!\ba)[ab]/
        B: "a" """,
    "the first of several rounds": r"""
        start: (A | B)*
        A: /(?:(?!(?<!a)b)\S)+/
        B: /\s/""",
    "what is ignored decides what follows": r"""
        start: (A | B)*
        A: "a"
        B: /(?<=\s)b/
        %ignore /[ \n]/""",
}


@pytest.mark.parametrize(
    ("parser", "lexer"), [("lalr", "contextual"), ("lalr", "basic"), ("earley", "dynamic"), ("earley", "basic")]
)
@pytest.mark.parametrize("name", GRAMMARS)
def test_like_lark(name: str, parser: str, lexer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lark.lexer.has_interegular", False)  # which fails at boundaries of words
    reference = lark.Lark(GRAMMARS[name], parser=parser, lexer=lexer)
    constraint = gs.compile(gs.lark(GRAMMARS[name], parser=parser, lexer=lexer), VOCABULARY)

    def parses(text: str) -> bool:
        try:
            reference.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    members = 0
    for text in TEXTS:
        matcher, data = constraint.matcher(), list(text.encode())
        read = matcher.accept_tokens(data) == len(data)
        assert (read and matcher.is_accepting) == parses(text), text
        members += read and matcher.is_accepting
        if read:
            ending = bytes(token for token in constraint.shortest_completion(matcher.state) if token < 256).decode()
            assert parses(text + ending), (text, ending)
    assert 0 < members < len(TEXTS)


@pytest.mark.parametrize("parser", ["earley", "lalr"])
def test_more_than_a_character_is_refused_by_name(parser: str) -> None:
    with pytest.raises(gs.UnsupportedFeature, match="the terminal A has a lookbehind before the start") as caught:
        gs.lark("start: A+\nA: /(?<!ab)b/", parser=parser)
    assert "line 2, column 1" in caught.value.where


@pytest.mark.parametrize("pattern", ["(?<=a", "a(", "[a", "*a", "a{2,1}"])
def test_malformed_expressions_are_our_errors_with_their_place(pattern: str) -> None:
    with pytest.raises(gs.GrammarSyntaxError, match="malformed regular expression") as caught:
        gs.lark(f"start: A\nA: /{pattern}/", parser="lalr")
    assert "line 2, column 4" in caught.value.where
