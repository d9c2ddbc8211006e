"""Grammars written in GBNF and in llguidance's syntax: the same language, as read back and as other engines read it."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date

import pytest

import grammarspec as gs
from tests import tiers
from tests.oracles.engines import llguidance_judge, mutated, xgrammar_judge

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0}},
    "required": ["age"],
    "additionalProperties": False,
}
TREE = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "array", "items": {"$ref": "#"}}}}
SUMS = 'start: e\ne: e "+" e | "(" e ")" | /[0-9]+/\n%ignore " "'
GRAMMARS: dict[str, Callable[[], gs.Grammar]] = {
    "classes": lambda: gs.regex(r"[a-zé]+(é|ü|x)?[^\"\]\\^-]{2,3}"),
    "choice": lambda: gs.choice(["ab", "ac", "b", 'q"\\\n\t\x7f\u2028']),
    "empty": lambda: gs.literal(""),
    "object": lambda: gs.json_schema(PERSON, whitespace="compact"),
    "recursive": lambda: gs.json_schema(TREE),
    "anything": gs.json_value,
    "until": lambda: gs.text(until="</x>"),
    "complement": lambda: ~gs.regex("a*b"),
    "both": lambda: gs.regex(".*foo.*", flags=16) & ~gs.regex("[a-z]*bar[a-z]*"),
    "lookarounds": lambda: gs.regex("(?=.*[0-9])(?=.*[a-z]).{2,6}"),
    "inner lookaround": lambda: gs.regex("(a(?!b)[a-c])*"),
    "left recursion": lambda: gs.lark(SUMS, lexer="dynamic_complete"),
    "brackets": lambda: gs.gbnf('root ::= "a" root "b" | [a-z]+ "z" | "" '),
    "dates": lambda: gs.literal("on ") + date,
}  # fmt: skip
POOL = list('ab"{}[],:0 é\\xyz()+</')


def texts_of(grammar: gs.Grammar) -> list[tuple[str, bool]]:
    """Texts of a grammar, and texts near them, each with whether it is one."""
    draw = random.Random(tiers.seed(1))
    members = [grammar.sample(number, max_bytes=60) for number in range(tiers.draws(60))]
    others = [mutated(member, POOL, draw.randrange) for member in members for _ in range(2)]
    return [(text, grammar.matches(text)) for text in [*members, *others]]


@pytest.mark.property
@pytest.mark.parametrize("name", GRAMMARS)
def test_gbnf(name: str) -> None:
    grammar = GRAMMARS[name]()
    written = grammar.to_gbnf()
    assert written.lost == ()
    back, judge = gs.gbnf(written.text), xgrammar_judge(written.text)
    for text, member in texts_of(grammar):
        assert back.matches(text) == judge(text) == member, text
    for number in range(tiers.draws(60)):
        text = back.sample(number, max_bytes=60)
        assert grammar.matches(text), text


@pytest.mark.property
@pytest.mark.parametrize("name", GRAMMARS)
def test_llguidance(name: str) -> None:
    grammar = GRAMMARS[name]()
    written = grammar.to_llguidance()
    assert written.lost == ()
    back, judge = gs.llguidance(written.text), llguidance_judge(written.text)
    for text, member in texts_of(grammar):
        assert back.matches(text) == judge(text) == member, text


def test_how_it_looks() -> None:
    grammar = gs.regex("[a-z]+") + gs.choice(["=", ":="]) + gs.regex("[0-9]{1,3}|[^a-z]")
    assert str(grammar.to_gbnf()) == 'root ::= [a-z]+ (":=" | "=") ([0-9]{1,3} | [^a-z])\n'
    assert str(grammar.to_llguidance()) == (
        '%llguidance {}\n\nstart: START\nSTART: /[a-z]/+ (":=" | "=") (/[0-9]/{1,3} | /[^a-z]/)\n'
    )


def test_special_tokens() -> None:
    grammar = gs.special("<|a|>") + "x" + gs.special("<b>").optional()
    for written, read in ((grammar.to_gbnf(), gs.gbnf), (grammar.to_llguidance(), gs.llguidance)):
        back = read(written.text)
        assert [back.matches(text) for text in ("<|a|>x", "<|a|>x<b>", "x", "<|a|>")] == [True, True, False, False]
    with pytest.raises(gs.UnsupportedFeature, match="the special token '\\[INST\\]'"):
        gs.special("[INST]").to_gbnf()


def test_what_is_lost_is_told() -> None:
    grammar = gs.json_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    for written, read in ((grammar.to_gbnf(), gs.gbnf), (grammar.to_llguidance(), gs.llguidance)):
        assert [lost.feature for lost in written.lost] == ["values that must differ"]
        assert "values that must differ in the rule unique" in str(written.lost[0])
        back = read(written.text)
        assert back.matches("[1,1]") and not grammar.matches("[1,1]")
        assert all(back.matches(grammar.sample(number)) for number in range(10))


def test_parameters_are_lost() -> None:
    schema = {"type": "object", "properties": {name: {"type": "null"} for name in "abc"}, "required": ["a"]}
    grammar = gs.json_schema({**schema, "additionalProperties": False}, property_order="any", whitespace="compact")
    written = grammar.to_gbnf()
    assert {lost.feature for lost in written.lost} == {"a condition on what came before"}
    back = gs.gbnf(written.text)
    assert back.matches('{"b":null,"a":null}') and back.matches('{"b":null,"b":null}')


def test_large_complements_are_lost() -> None:
    grammar = gs.text(max_chars=5000) & ~gs.regex("(?s:.*)a(?s:.){12}")
    written = grammar.to_gbnf()
    assert "an intersection" in {lost.feature for lost in written.lost}
    assert gs.gbnf(written.text).matches("xay")
    assert grammar.to_llguidance().lost == ()


def test_what_cannot_be_written() -> None:
    with pytest.raises(gs.Unsatisfiable):
        gs.gbnf('root ::= "a" root').to_gbnf()
    with pytest.raises(gs.Unsatisfiable):
        gs.gbnf('root ::= "a" root').to_llguidance()


def test_rules_without_texts_are_left_out() -> None:
    grammar = gs.gbnf('root ::= "a" b | "c" d* | "e"\nb ::= "x" b\nd ::= b d')
    back = gs.gbnf(grammar.to_gbnf().text)
    assert [back.matches(text) for text in ("e", "c", "a", "ax")] == [True, True, False, False]


def test_large_grammars_take_no_long() -> None:
    doubling = "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(60)) + '\nr60 ::= "a"\nroot ::= r0'
    assert len(gs.gbnf(doubling).to_gbnf().text) < 10_000
    words = gs.choice([f"w{number}" for number in range(20_000)])
    assert gs.gbnf(words.to_gbnf().text).matches("w19999")


@pytest.mark.parametrize("parser", ["earley", "lalr"])
def test_what_lexers_take_has_no_notation(parser: str) -> None:
    grammar = gs.lark(SUMS.replace('e "+" e', 'e "+" /[a-z]+/'), parser=parser)
    for write in (grammar.to_gbnf, grammar.to_llguidance):
        with pytest.raises(gs.UnsupportedFeature, match=r"cannot be written in other notations\n.*dynamic_complete"):
            write()
