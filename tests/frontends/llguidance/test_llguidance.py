"""llguidance's dialect: what grammars mean, by hand and by llguidance, and what is refused, with its place."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

import grammarspec as gs
from tests import tiers
from tests.oracles.engines import llguidance_judge, mutated

TOOLS = r"""
start: ( f_foo | f_bar )* f_end
f_end: TEXT
TEXT: /(.|\n)*/

f_foo_hd[lazy]: TEXT "<function"
f_foo: f_foo_hd "=foo>" %json { "type": "object" } "</function>"

f_bar_hd[lazy]: TEXT "<function"
f_bar: f_bar_hd "=bar>" /[0-9]+/ "</function>"
"""
ARITHMETIC = r"""%llguidance {}
start: expr
expr: expr ("+" | "-") term | term
term: term ("*" | "/") factor | factor
factor: "(" expr ")" | NUMBER | "-" factor
NUMBER: /[0-9]+(\.[0-9]+)?/
%ignore /[ \t]+/
"""
SQL = r"""
start: "SELECT" columns "FROM" NAME ("WHERE" condition)? ";"
columns: "*" | NAME ("," NAME)*
condition: NAME SIGN NUMBER
SIGN: "=" | "<" | "<=" | "!="
NAME: /[a-z_]+/
%import common.INT -> NUMBER
%ignore " "
"""
THINKING = r"""
start: think answer
think[suffix="</t>"]: /(.|\n)*/
answer: /[a-z]+/ | "<x>"
"""
OPERATORS = r"""
start: A "." B{1,2} [C]
A: /[a-z ]*/ & ~/(?s:.*)  (?s:.*)/
B: "a".."f" | "é"i | %regex {"substring_words": "one two three"}
C: "x" ~ 2..3
"""
JSON = r"""
start: "call " call ";"
call: %json { "type": "object", "properties": { "a": { "type": "boolean" } }, "required": ["a"],
  "additionalProperties": false }
%ignore " "
"""
GRAMMARS = {
    "tools": (TOOLS, ["<function", "=bar>", "</function>", "1", "a"]),
    "arithmetic": (ARITHMETIC, list("0123+-*/(). ")),
    "sql": (SQL, ["SELECT", " ", "a", "1", ",", "=", "<"]),
    "thinking": (THINKING, ["</t>", "<", "a", "<x>"]),
    "operators": (OPERATORS, ["  ", "one", "two", " ", ".", "a", "é", "É", "x"]),
}


@pytest.mark.property
@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars_mean_what_they_mean_to_llguidance(name: str) -> None:
    text, pool = GRAMMARS[name]
    grammar, judge = gs.llguidance(text), llguidance_judge(text)
    draw = random.Random(tiers.seed(1))
    for number in range(tiers.draws(100)):
        member = grammar.sample(number, max_bytes=60)
        assert judge(member), member
        for _ in range(3):
            other = mutated(member, pool, draw.randrange)
            assert grammar.matches(other) == judge(other), other


@pytest.mark.property
def test_values_of_schemas_are_those_of_llguidance() -> None:
    grammar, judge = gs.llguidance(JSON), llguidance_judge(JSON)
    for number in range(tiers.draws(100)):
        member = grammar.sample(number, max_bytes=60)
        assert judge(member), member


CASES = [
    ('start: "a" "b"', ["ab"], ["a", "a b"]),
    ('start: ("a"\n | "b") # comment\n | "c" // comment', ["a", "b", "c"], ["ab"]),
    ('start: "a" ~ 2..3 "b"{2} "c"{,1} "d"{1,}', ["aabbd", "aaabbcdd"], ["abbd", "aabbccd"]),
    ('start: ["a"] "b"? "c"* "d"+', ["d", "abccdd"], ["ac"]),
    ('start: "\\x41\\u0042\\n\\/"', ["AB\n/"], ["AB"]),
    ('start: "straße"i', ["STRAßE", "straẞe"], ["strasse"]),
    ('start: "a".."c"', ["b"], ["d", "ab"]),
    ("start: /(?i)k[^a-z]/", ["K1", "\u212a1"], ["ka", "kA"]),
    (r"start: /[\w--\d]\d\s/", ["a1 ", "é١\u3000"], ["11 "]),
    (r"start: /[[a-c][x]&&[^b]]+/", ["acx"], ["b"]),
    (r"start: /[[:alpha:]]\pL\x{41}\u{42}/", ["aéAB"], ["éaAB"]),
    ("start: /^a.b$/", ["axb"], ["a\nb"]),
    ("start: /(?s:.)(?<name>x)a*?/", ["\nx", "yxa"], ["x"]),
    ('start: A\nA: "a" B & /.b+/ | "c"\nB: "b"+', ["abb", "c"], ["a", "b"]),
    ('start: ~"a"', ["", "b", "aa", "é"], ["a"]),
    ('start: a "x"\na[lazy]: /.*b/', ["abx"], ["bbx", "ax"]),
    ('start: a\na[suffix=/[bc]+/]: /.*/', ["ab", "c"], ["abb"]),
    ("start[lazy]: A B\nA: /a+/\nB: /b+/", ["aab"], ["aabb"]),
    ('start: "a" (a | TEXT)\nTEXT: /(.|\\n)*/\na[lazy]: TEXT "x"', ["aabcx", "aabc", "ax"], ["aabxabc"]),
    ('%ignore " "\n%ignore "#"\nstart: "a" "b"', ["ab", "a # b"], [" ab", "ab "]),
    ('%ignore " "\nstart: A? "b" A*\nA: "a"', ["b", "a b", "b a", "b a "], [" b", " ab"]),
    ('%llguidance {"allow_initial_skip": true}\n%ignore " "\nstart: "a" "b"', [" a b"], ["a b "]),
    ('start: %regex {"substring_words": "foo bar. baz"}', ["", "foo bar", "bar. baz"], ["fo"]),
    ('start: %regex {"substring_chars": "abc"} "x"', ["x", "bcx"], ["acx"]),
    ('start: %regex {"substring_chunks": ["ab", "c"]}', ["ab", "abc", "c"], ["b"]),
    ('start: "x" %json {"type": "integer"} "y"\n%ignore " "', ["x1y", "x1 y"], ["x 1y"]),
    ('start: %json {"x-guidance": {"whitespace_flexible": false}, "type": "array"}', ["[]"], ["[ ]"]),
    ('%import common.INT -> N\n%import common (WS, CNAME)\nstart: N WS CNAME', ["1 a"], ["a 1"]),
    ('?start: "a" -> foo\n | x\n!x: "b" ->  bar', ["a", "b"], ["ab"]),
    ('start: start "a" | "b"', ["b", "baa"], ["a"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "members", "others"), CASES)
def test_meaning(text: str, members: list[str], others: list[str]) -> None:
    grammar = gs.llguidance(text)
    assert [member for member in members if not grammar.matches(member)] == []
    assert [other for other in others if grammar.matches(other)] == []


@pytest.mark.parametrize(("text", "members", "others"), CASES)
def test_the_cases_are_right(text: str, members: list[str], others: list[str]) -> None:
    judge = llguidance_judge(text)
    assert [member for member in members if not judge(member)] == []
    assert [other for other in others if judge(other)] == []


def test_texts_may_be_cut_into_lexemes_in_any_way() -> None:
    text = 'start: "a" "b" "c" | "ab" "d"'
    assert gs.llguidance(text).matches("abc") and not llguidance_judge(text)("abc")


def test_special_tokens_start_and_repr() -> None:
    grammar = gs.llguidance("a: <|x|> /[a-z]+/ <|y|>", start="a")
    assert grammar.matches("<|x|>b<|y|>")
    assert eval(repr(grammar), {"gs": gs}) == grammar


@pytest.mark.parametrize(
    ("text", "kind", "message", "where"),
    [
        ("start: (", gs.GrammarSyntaxError, "the text ends here", "line 1, column 8"),
        ('start: "a" )', gs.GrammarSyntaxError, "an unexpected )", "line 1, column 12"),
        ("start: /a", gs.GrammarSyntaxError, "a pattern that never ends", "line 1, column 8"),
        ("start: 'a'", gs.GrammarSyntaxError, "a single quote", "line 1, column 8"),
        (r'start: "\q"', gs.GrammarSyntaxError, "in a literal", "line 1, column 9"),
        (r'start: "\ud800"', gs.GrammarSyntaxError, "a lone surrogate", "line 1, column 8"),
        ("start: foo", gs.GrammarSyntaxError, "foo is not defined", "line 1, column 8"),
        ("A: B\nB: A\nstart: A", gs.GrammarSyntaxError, "the terminal A needs itself", "line 2, column 4"),
        ("start: A\nA: b\nb: A", gs.GrammarSyntaxError, "the rule b within a terminal", "line 2, column 4"),
        ("start: A\nA: <x>", gs.GrammarSyntaxError, "<x> within a terminal", "line 2, column 4"),
        ('start: "a"\nstart: "b"', gs.GrammarSyntaxError, "start is defined a second time", "line 2, column 1"),
        ('start: "a" & "b"', gs.GrammarSyntaxError, "& in a rule", "line 1, column 8"),
        ('start: "b".."a"', gs.GrammarSyntaxError, "a range goes from", "line 1, column 8"),
        ('start: "a"{3,2}', gs.GrammarSyntaxError, "the least count is above", "line 1, column 11"),
        ('start: "a"{9999999999}', gs.LimitExceeded, "must be below the limit", "line 1, column 12"),
        ("start: /a(/", gs.GrammarSyntaxError, "unterminated group", "line 1, column 8"),
        ("start: %json {", gs.GrammarSyntaxError, "a JSON value is expected", "line 1, column 14"),
        ('start: %json {"type": 3}', gs.GrammarSyntaxError, "type must be", "line 1, column 8"),
        ("%import common.FOO\nstart: FOO", gs.GrammarSyntaxError, "common has no terminal FOO", "line 1, column 16"),
        ('a: "b"', gs.GrammarSyntaxError, "there is no rule 'start'", ""),
        ("start[foo]: /a/", gs.GrammarSyntaxError, "there is no attribute foo", "line 1, column 7"),
        ("start: /(?=a)b/", gs.UnsupportedFeature, "a lookaround", "line 1, column 8"),
        (r"start: /a\b/", gs.UnsupportedFeature, r"the assertion \b", "line 1, column 8"),
        ("start: /a b/x", gs.UnsupportedFeature, "the flag x", "line 1, column 8"),
        ("start[max_tokens=3]: /a/", gs.UnsupportedFeature, "the attribute max_tokens", "line 1, column 7"),
        ("start[temperature=0.5]: /a/", gs.UnsupportedFeature, "the attribute temperature", "line 1, column 7"),
        ('start[stop="x"]: /a/', gs.UnsupportedFeature, "the attribute stop", "line 1, column 7"),
        ("start: <[12]>", gs.UnsupportedFeature, "tokens by their numbers", "line 1, column 8"),
        ('start: "a" @foo', gs.UnsupportedFeature, "another grammar", "line 1, column 12"),
        ("start: a{x}", gs.UnsupportedFeature, "a template", "line 1, column 8"),
        ("start::3", gs.UnsupportedFeature, "a rule with a parameter", "line 1, column 1"),
        ("A.2: /a/", gs.UnsupportedFeature, "a priority", "line 1, column 1"),
        ("%declare A\nstart: A", gs.UnsupportedFeature, "only declared", "line 1, column 1"),
        ("%import python.NAME", gs.UnsupportedFeature, "an import from python", "line 1, column 9"),
        ('%llguidance {"a": 1}', gs.UnsupportedFeature, "the option 'a'", "line 1, column 1"),
        ('start: %regex {"x": 1}', gs.UnsupportedFeature, "%regex with", "line 1, column 8"),
        ("start: " + "(" * 2000, gs.LimitExceeded, "the nesting depth", "line 1, column 108"),
        (
            'start: "1" a | "1" T | "2" T\nT: /[a-z]*/\na[lazy]: /[a-z]*x/',
            gs.UnsupportedFeature,
            "a lexeme that the lazy rule a ends in some contexts",
            "",
        ),
    ],
)
def test_what_is_refused(text: str, kind: type[gs.GrammarError], message: str, where: str) -> None:
    with pytest.raises(kind) as raised:
        gs.llguidance(text)
    assert type(raised.value) is kind and message in raised.value.message
    assert raised.value.where.startswith(where) and ("^" in raised.value.where or not where)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="takes the text of a grammar"):
        gs.llguidance(3)  # type: ignore[arg-type]
    token = gs.CancelToken()
    token.cancel()
    with pytest.raises(gs.Cancelled):
        gs.llguidance(TOOLS, cancel=token)


@pytest.mark.parametrize(
    "text",
    [
        "start: T0\n" + "\n".join(f"T{i}: T{i + 1}" for i in range(20_000)) + '\nT20000: "a"',
        "start: T0\n" + "\n".join(f"T{i}: T{i + 1} T{i + 1}" for i in range(60)) + '\nT60: "a"',
        tiers.slow("start: r0\n" + "\n".join(f"r{i}: r{i + 1}" for i in range(20_000)) + '\nr20000: "a"'),
        '%ignore " "\nstart: ' + '"a"? ' * 5_000,
        "start: ("
        + "|".join(f"x{i}" for i in range(500))
        + ")*\n"
        + "\n".join(f"x{i}[lazy]: /.*{i}/" for i in range(500)),
        "start: /" + "(" * 50_000 + "a" + ")" * 50_000 + "/",
        "start: A\nA: " + "~" * 9_000 + '"a"',
        "start: %json " + '{"items":' * 5_000 + "{}" + "}" * 5_000,
    ],
    ids=["chain", "doubling", "rules", "ignored", "lazy", "pattern", "not", "json"],
)
def test_hostile_texts_end(text: str) -> None:
    with suppress(gs.LimitExceeded, gs.GrammarSyntaxError):
        gs.llguidance(text).matches("a")
