"""Reports on ``.lark`` grammars: what is found in them, why a text does not belong to one, and how they are drawn."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

import grammarspec as gs
from grammarspec.frontends.lark.shipped import shipped
from tests import tiers
from tests.frontends.lark.small_grammars import grammars
from tests.oracles.shipped import NAMES

lark = pytest.importorskip("lark")

MALFORMED = """\
start: NAME nmae XX other
NAME: /a/ QQ
foo: "x"
foo: nmae
SELF: SELF "x"
RULE: foo
use: list{foo, foo}
too: nothing{foo}
list{x}: x
other: start )
"""
REFUSED = """\
start: A B | c
A: /a*/
B: /(?<=xy)b/
c: "x" /(.)\\1/ d~3..2
d: "d"
unused: A
%import common.INT
%import common.WORD
%ignore /z*/
"""
DANGLING = """\
start: statement
statement: "if" NAME statement ["else" statement] | NAME
NAME: /[a-z]+/
%ignore " "
"""
AMBIGUOUS = """\
start: a | b
a: NAME
b: NAME | MORE
MORE: "-" NAME
NAME: /x/
"""


def places(report: gs.GrammarReport, kind: Any) -> list[tuple[int | None, int | None, str]]:
    return [(finding.line, finding.column, finding.message) for finding in report.of_kind(kind)]


def test_all_malformed_lines_are_found() -> None:
    report = gs.check_lark('start: "a" )\nb: "x"\nc: ~\nd: "y" ]\n')
    assert [finding.line for finding in report.findings] == [1, 3, 4]
    assert {finding.kind for finding in report.findings} == {"refused"}
    assert report.findings[0].excerpt == '    start: "a" )\n               ^'


def test_all_that_lark_refuses_is_found() -> None:
    text = MALFORMED.replace("other: start )\n", "other: start\n")
    found = places(gs.check_lark(text), "refused")
    assert [(line, column) for line, column, _ in found] == [
        (1, 13),
        (1, 18),
        (2, 11),
        (4, 1),
        (5, 1),
        (6, 1),
        (7, 1),
        (8, 6),
    ]
    for (_, _, message), part in zip(
        found,
        ["'nmae'", "'XX'", "QQ", "'foo' defined more", "Recursion", "Rules aren't", "arguments", "'nothing'"],
        strict=True,
    ):
        assert part in message


def test_many_errors_are_cut_short() -> None:
    undefined = "start: " + " ".join(f"a{number}" for number in range(150))
    for text in (undefined, "start: a\n" + ")\n" * 150):
        report = gs.check_lark(text)
        assert len(report.findings) == 100
        assert report.notes == ("no more than 100 errors are looked for",)


@pytest.mark.parametrize(("parser", "lexer"), [("earley", "dynamic"), ("earley", "basic"), ("lalr", "contextual")])
def test_all_obstacles_are_found(parser: str, lexer: str) -> None:
    report = gs.check_lark(REFUSED, parser=parser, lexer=lexer)
    refused = {(finding.line, finding.column) for finding in report.of_kind("refused")}
    assert refused == {(2, 1), (3, 1), (4, 8), (4, 17), (9, 9)}
    assert [(line, column) for line, column, _ in places(report, "unused")] == [(6, 1), (7, 1), (8, 1)]
    mended = REFUSED.replace("a*", "a+").replace("(?<=xy)", "").replace("(.)\\1", "..").replace("3..2", "2..3")
    assert gs.check_lark(mended.replace("z*", "z+"), parser=parser, lexer=lexer).ok


@pytest.mark.parametrize(
    ("text", "unproductive"),
    [
        ('start: a | "y"\na: "x" a', [(2, "the rule a derives no text: it needs itself")]),
        ('start: a | "y"\na: b "x"\nb: "x" a', [(2, "it needs b"), (3, "it needs a")]),
        ('start: a | "y"\na: N\nN: /x[^\\s\\S]/', [(2, "it needs N"), (3, "the terminal N matches no text")]),
    ],
)
def test_unproductive(text: str, unproductive: list[tuple[int, str]]) -> None:
    report = gs.check_lark(text)
    assert report.ok
    found = places(report, "unproductive")
    assert [line for line, _, _ in found] == [line for line, _ in unproductive]
    assert all(why in message for (_, _, message), (_, why) in zip(found, unproductive, strict=True))


def test_no_texts_at_all_are_refused() -> None:
    report = gs.check_lark('start: "x" start')
    assert [finding.message for finding in report.of_kind("refused")] == [
        "no text belongs to the grammar: the rule start always needs itself"
    ]


def test_conflicts() -> None:
    report = gs.check_lark(DANGLING, parser="lalr")
    assert report.ok
    ((line, _, message),) = places(report, "conflict")
    assert line == 2
    assert message.startswith('shift/reduce conflict: "else" is taken')
    assert gs.check_lark(DANGLING).findings == ()
    with pytest.raises(lark.exceptions.GrammarError, match="Shift/Reduce conflict for terminal ELSE"):
        lark.Lark(DANGLING, parser="lalr", strict=True)
    assert not gs.check_lark(DANGLING, parser="lalr", strict=True).ok

    ((line, _, message),) = places(gs.check_lark(AMBIGUOUS, parser="lalr"), "refused")
    assert (line, message) == (
        2,
        "reduce/reduce conflict: before the end of the text, either of these may have ended: a: NAME or b: NAME",
    )
    assert gs.check_lark(AMBIGUOUS).ok
    assert gs.check_lark(AMBIGUOUS.replace("a: NAME", "a.2: NAME"), parser="lalr").findings == ()


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("/[a-f]+x/", "/[d-z]{2}/", "dx|ex|fx"),
        ("/[a-f]+/", "/[g-z]+/", None),
        ("/aa*/", "/(aaa)+/", "aaa"),
        ("/a(?!b)[a-z]/", "/ab/", None),
        ("/é+/i", "/É/", "É"),
    ],
)
def test_collisions(one: str, other: str, common: str | None) -> None:
    text = f"start: (ONE | OTHER)+\nONE: {one}\nOTHER: {other}"
    for options in ({"parser": "lalr"}, {"lexer": "basic"}):
        found = gs.check_lark(text, **options).of_kind("collision")
        assert len(found) == (common is not None)
        if common is not None:
            witness = re.search("both match '(.*)'", found[0].message)
            assert witness is not None and re.fullmatch(common, witness[1])
            for pattern in (one, other):
                expression, _, flags = pattern[1:].rpartition("/")
                assert re.fullmatch(expression, witness[1], re.IGNORECASE if flags else 0)
    assert gs.check_lark(text).of_kind("collision") == ()
    assert gs.check_lark(text.replace("ONE:", "ONE.2:"), parser="lalr").of_kind("collision") == ()


def test_collisions_are_those_of_larks_strict_mode() -> None:
    pytest.importorskip("interegular")
    text = "start: (ONE | OTHER)+\nONE: /[a-c]+/\nOTHER: /[c-e]+/"
    with pytest.raises(lark.exceptions.LexError, match="Collision between Terminals"):
        lark.Lark(text, parser="lalr", strict=True)
    report = gs.check_lark(text, parser="lalr", strict=True)
    assert not report.ok
    assert [finding.line for finding in report.of_kind("collision")] == [3]


@pytest.mark.parametrize("name", NAMES)
def test_shipped_grammars_are_taken_and_use_all_they_define(name: str) -> None:
    report = gs.check_lark(Path(name))
    assert {finding.kind for finding in report.findings} <= {"conflict", "collision"}


def test_terminals_that_are_not_used_are_not_refused() -> None:
    grammar = 'start: B\nother: A\nA: /[^a]?/\nB: "b"'
    report = gs.check_lark(grammar, parser="earley", lexer="dynamic")
    assert report.ok
    assert [finding.message.split()[2] for finding in report.findings] == ["other", "A"]
    used = gs.check_lark(grammar.replace("start: B", "start: B A"), parser="earley", lexer="dynamic")
    assert [finding.message for finding in used.of_kind("refused")] == ["the terminal A can be empty"]


@pytest.mark.parametrize(("parser", "lexer"), [("lalr", "contextual"), ("lalr", "basic"), ("earley", "dynamic")])
@settings(max_examples=tiers.each_round(60))
@given(grammars())
def test_what_is_refused_is_what_cannot_be_compiled(parser: str, lexer: str, grammar: str) -> None:
    try:
        gs.compile(gs.lark(grammar, parser=parser, lexer=lexer), gs.Vocabulary.bytes())
        taken = True
    except gs.GrammarError:
        taken = False
    report = gs.check_lark(grammar, parser=parser, lexer=lexer)
    assert report.ok == taken, report


def test_errors_of_the_call() -> None:
    assert gs.check_lark('start: "a"', lexer="basic", lexer_callbacks={}, tree_class=dict).ok
    with pytest.raises(FileNotFoundError):
        gs.check_lark(Path("no/such.lark"))
    with pytest.raises(ValueError, match="parser must be"):
        gs.check_lark("start: A", parser="ll")
    assert [finding.kind for finding in gs.check_lark('start: "a"', start="x").findings] == ["refused"]
    assert [finding.kind for finding in gs.check_lark('start: "a"', limits=gs.Limits(max_steps=1)).findings] == [
        "refused"
    ]


# ---------------------------------------------------------------------- texts
QUERY = """\
start: "SELECT " columns " FROM " NAME ";"
columns: "*" | NAME (", " NAME)*
NAME: /[a-zé]+/
"""


@pytest.mark.parametrize("parser", ["earley", "lalr"])
@pytest.mark.parametrize(
    ("text", "line", "column", "expected", "at", "completed"),
    [
        ("SELECT * FRM a;", 1, 12, {'" FROM "'}, (1, 9), r"SELECT \* FROM [a-zé];"),
        ("SELECT a, ", 1, 11, {"NAME"}, (1, 11), "SELECT a, [a-zé] FROM [a-zé];"),
        ("SELECT a\n", 1, 9, {'" FROM "', '", "'}, (1, 9), "SELECT a FROM [a-zé];"),
        ("SELECT * FROM a;;", 1, 17, {"the end of the text"}, (1, 17), r"SELECT \* FROM a;"),
        ("", 1, 1, {'"SELECT "'}, (1, 1), "SELECT [*a-zé] FROM [a-zé];"),
    ],
)
def test_explanations(
    text: str, line: int, column: int, expected: set[str], at: tuple[int, int], completed: str, parser: str
) -> None:
    found = gs.explain_lark(QUERY, text, parser=parser)
    assert not found.ok
    assert (found.line, found.column) == (line, column)
    assert found.excerpt.endswith("\n" + " " * (column + 3) + "^")
    assert set(found.expected) == expected
    assert found.expected_at == at
    assert re.fullmatch(completed, found.completed)
    assert gs.lark(QUERY, parser=parser).matches(found.completed)
    for character in found.following:
        if character != "...":
            before = text[: column - 1] + character
            assert gs.explain_lark(QUERY, before, parser=parser).column == len(before) + 1


def test_what_follows() -> None:
    found = gs.explain_lark(QUERY, "SELECT 1")
    assert found.following == ("*", *"abcdefghijklmnopqrstuvwxyz", "...")
    assert not found.may_end
    assert gs.explain_lark('start: "ab"*', "abc").may_end


def test_a_text_that_belongs() -> None:
    assert gs.explain_lark(QUERY, "SELECT * FROM é;") == gs.Explanation(True)
    assert gs.explain_lark(Path("json"), "[1, 2]").ok


def test_the_furthest_start_is_explained() -> None:
    found = gs.explain_lark('a: "x" "y"\nb: "x" "z" "w"', "xz!", start=["a", "b"], parser="lalr")
    assert found.expected == ('"w"',)


# ---------------------------------------------------------------------- diagrams
DRAWN = """\
start: item+ [tail] list{NAME, ","} | "<&>"?
tail: NUMBER~2..3 | NUMBER~0..2 |
item: (NAME | /x/i)*
list{x, y}: x (y x)*
NAME: /[a-z]+/
%import common.INT -> NUMBER
"""


@pytest.mark.parametrize("what", [DRAWN, *map(Path, shipped())], ids=str)
def test_svg(what: Any) -> None:
    pytest.importorskip("railroad")
    svg = ElementTree.fromstring(gs.draw_lark(what))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    drawn = [part for part in svg.iter("{http://www.w3.org/2000/svg}svg") if part is not svg]
    bottom = [float(part.attrib["y"]) + float(part.attrib["height"]) for part in drawn]
    assert sorted(bottom) == bottom and bottom[-1] <= float(svg.attrib["height"])


def test_what_is_drawn() -> None:
    pytest.importorskip("railroad")
    svg = ElementTree.fromstring(gs.draw_lark(DRAWN))
    texts = {part.text for part in svg.iter("{http://www.w3.org/2000/svg}text")}
    titles = {"start", "tail", "item", "list{x, y}", "NAME"}
    assert titles | {'list{NAME, ","}', '"<&>"', "NUMBER", "2 to 3 times", "/x/i", "/[a-z]+/"} <= texts
    page = gs.draw_lark(DRAWN, format="html")
    assert page.count("<h2 ") == len(titles)
    assert 'href="#item"' in page and '<h2 id="item">' in page
    wrong: Any = "png"
    with pytest.raises(ValueError, match="format must be"):
        gs.draw_lark(DRAWN, format=wrong)
    with pytest.raises(gs.GrammarSyntaxError):
        gs.draw_lark("start: nothing")
