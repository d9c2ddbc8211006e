"""What is said of ``.lark`` grammars that have no texts: the rules that need each other, or the terminal."""

from __future__ import annotations

import pytest

import grammarspec as gs
from tests.endings import ends

pytest.importorskip("lark")

CASES = [
    ('start: a\na: "x" a', "the rule a always needs itself", "line 2, column 1"),
    ('start: ("x" start)~1..2', "the rule start always needs itself", "line 1, column 1"),
    (
        'start: "x" a | b\na: b+\nb: [c] d\nc: "c"\nd: "(" a ")"',
        "the rule a always needs itself again, by b, d",
        "line 2, column 1",
    ),
    (
        'start: "x" NAME | "y" start\nNAME: /x(?=a)b/',
        "the terminal NAME matches none: (?=a) contradicts what stands beside it",
        "line 2, column 1",
    ),
    (
        'start: "x" /x[^\\s\\S]/ | y\ny: y "a"',
        "the terminal /x[^\\s\\S]/ matches none: no character is in this class",
        "line 1, column 12",
    ),
    ('start: l{x}\nl{y}: y\nx: x "a"', "the rule start has none", "line 1, column 1"),
    (
        "start: r0\n" + "\n".join(f'r{i}: "x" r{i + 1}' for i in range(2_000)) + "\nr2000: r0",
        "the rule r0 always needs itself again, by r1, r2, r3, r4, r5, r6, ...",
        "line 2, column 1",
    ),
]


@pytest.mark.parametrize(("grammar", "why", "where"), CASES)
def test_what_contradicts_is_named(grammar: str, why: str, where: str) -> None:
    with pytest.raises(gs.Unsatisfiable) as caught:
        gs.compile("- " + gs.lark(grammar), gs.Vocabulary.bytes())
    assert caught.value.message == f"no text belongs to the grammar: {why}"
    assert caught.value.where.split("\n")[0] == where
    if "terminal" in why:
        assert "in its expression, line 1, column 2\n" in caught.value.where


def test_many_rules_are_told_in_time() -> None:
    rules = "\n".join(f'r{n}: "x" r{n + 1} | "y" r{n + 1} r{n + 2}' for n in range(500))
    with ends(), pytest.raises(gs.Unsatisfiable, match="no text belongs to the grammar"):
        gs.compile(gs.lark(f'start: r0 s\n{rules}\nr500: "z"\nr501: "z"\ns: s "a"'), gs.Vocabulary.bytes())
