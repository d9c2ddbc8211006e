"""GBNF and XGrammar's EBNF: what grammars mean, by hand and by XGrammar, and what is refused, with its place."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

import grammarspec as gs
from tests import tiers
from tests.oracles.engines import mutated, xgrammar_judge

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= [ \n\t]{0,3}
"""
ARITHMETIC = r"""
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
"""
LIST = 'root ::= item+\n# each item on a line of its own\nitem ::= "- " [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ "\\n"\n'
CHESS = r"""
root    ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move    ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn    ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle  ::= "O-O" "-O"?
"""
C_LIKE = r"""
root        ::= declaration*
declaration ::= type name "(" parameter? ")" "{" statement* "}"
type        ::= ("int" | "float" | "char") " "
name        ::= [a-zA-Z_] [a-zA-Z_0-9]*
parameter   ::= type name
statement   ::=
  ( type name "=" sum ";" ) |
  ( name "=" sum ";" ) |
  ( "while" "(" sum ("<=" | "<" | "==") sum ")" "{" statement* "}" ) |
  ( "return " sum ";" )
sum         ::= product (("+" | "-") product)*
product     ::= "-" product | name | [0-9]+ | "(" sum ")"
"""
JAPANESE = r"""
root     ::= jp-char+ ([ \t\n] jp-char+)*
jp-char  ::= hiragana | katakana | punctuation | cjk
hiragana ::= [ぁ-ゟ]
katakana ::= [ァ-ヿ]
punctuation ::= [、-〾]
cjk      ::= [一-鿿]
"""
SHIPPED = {
    "json": (JSON, list('{}[],:"ab1 \\é')),
    "arithmetic": (ARITHMETIC, list("ab1+-()= \n")),
    "list": (LIST, list("- a\né\u2028")),
    "chess": (CHESS, list("abN18xO-+#=. \n")),
    "c-like": (C_LIKE, ["int ", "a", "1", "(", ")", "{", "}", "while", "return ", ";", "="]),
    "japanese": (JAPANESE, list("ぁア、一a \n")),
}


@pytest.mark.property
@pytest.mark.parametrize("name", SHIPPED)
def test_grammars_like_those_of_llama_cpp(name: str) -> None:
    text, pool = SHIPPED[name]
    grammar, judge = gs.gbnf(text), xgrammar_judge(text)
    draw = random.Random(tiers.seed(1))
    for number in range(tiers.draws(100)):
        member = grammar.sample(number, max_bytes=80)
        assert judge(member), member
        for _ in range(3):
            other = mutated(member, pool, draw.randrange)
            assert grammar.matches(other) == judge(other), other


@pytest.mark.parametrize(
    ("text", "members", "others"),
    [
        (r'root ::= "\x41\u0042\U00000043\t\"\\\[\]"', ['ABC\t"\\[]'], ["ABC"]),
        (r"root ::= [a\-\]\\x-z\x41-\u0043]", list("a-]\\xyzABC"), ["b", "D", "["]),
        (r"root ::= [^a-y\n]", ["z", "é", "-", "\U0001f600"], ["a", "\n", ""]),
        ("root ::= [a-] [-b]", ["--", "ab", "a-"], ["c-"]),
        ("root ::= .", ["a", "\n", "\U0010ffff"], ["", "ab"]),
        ('root ::= "a"{2} "b"{1,} "c"{0,2}', ["aab", "aabbcc"], ["ab", "aabccc"]),
        ('root ::= "ab"* "c"? "d"+', ["d", "ababcdd"], ["abad", "abac"]),
        ('root ::= "a"{ 2 , 3 }', ["aa", "aaa"], ["a"]),
        ('root ::= "a"{2,-1}', ["aa", "aaaa"], ["a"]),
        ('root ::= | "a" | ()', ["", "a"], ["aa"]),
        ('root ::= ("a" |\n  "b") # comment\n  | "c"\n\nx-1 ::= "d"', ["a", "b", "c"], ["d"]),
        ('root ::= 1a\r\n1a ::= "x" 2-b |\r\n "y"\r\n2-b ::= "z"', ["xz", "y"], ["x"]),
        ('root ::= a.b\na.b ::= "x"', ["x"], ["axb"]),
        ('root ::= a.b\na ::= "x"\nb ::= "y"', ["x.y", "xéy"], ["xy"]),
        ('root ::= root "a" | "b"', ["b", "baa"], ["a"]),
        ('root ::= "(" root ")" root | ""', ["", "(())()"], ["(()", ")"]),
        ('root ::= "a"?* "b"', ["b", "aab"], ["a"]),
        ('root ::= Token ("x")\nToken ::= "t"', ["tx"], ["t"]),
        (r'root ::= "\a\b\f\v\0\e\?"', ["\a\b\f\v\0\x1b?"], [""]),
    ],
)
def test_meaning(text: str, members: list[str], others: list[str]) -> None:
    grammar = gs.gbnf(text)
    assert [member for member in members if not grammar.matches(member)] == []
    assert [other for other in others if grammar.matches(other)] == []


def test_counts_are_exact() -> None:
    grammar = gs.gbnf('root ::= ("a" | "bc"){3000,4294967294}')
    assert grammar.matches("a" * 3000) and not grammar.matches("a" * 2999)


def test_special_tokens() -> None:
    grammar = gs.gbnf("root ::= <think> [a-z]+ </think>")
    assert grammar == gs.gbnf("root ::= <think> [a-z]+ </think>")
    assert grammar.matches("<think>x</think>") and not grammar.matches("<think></think>")


def test_root_and_repr() -> None:
    grammar = gs.gbnf('a ::= "x"\nb ::= a a', root="b")
    assert grammar.matches("xx")
    assert repr(grammar) == "gs.gbnf('a ::= \"x\"\\nb ::= a a', root='b')"
    assert eval(repr(grammar), {"gs": gs}) == grammar


# ---------------------------------------------------------------------- TagDispatch
@pytest.mark.property
def test_tag_dispatch_is_that_of_xgrammar() -> None:
    draw = random.Random(tiers.seed(2))
    compared = 0
    for _ in range(tiers.draws(200)):
        tags = ["".join(draw.choices("ab", k=draw.randint(1, 3))) for _ in range(draw.randint(1, 2))]
        excludes = ["".join(draw.choices("ab", k=3)) for _ in range(draw.randint(0, 1))]
        named = ", ".join(f'("{tag}", r{number})' for number, tag in enumerate(dict.fromkeys(tags)))
        options = f", loop_after_dispatch={draw.choice(['true', 'false'])}"
        options += f", excludes=({', '.join(map(chr(34).join, (['', x, ''] for x in excludes)))},)" if excludes else ""
        text = f'root ::= "[" TagDispatch({named}{options}) "]"\n' + 'r0 ::= "0" | "x"\nr1 ::= "1" r1 | "x"'
        try:
            grammar = gs.gbnf(text)
        except (gs.UnsupportedFeature, gs.GrammarSyntaxError):  # texts that are within each other
            continue
        judge = xgrammar_judge(text)
        for _ in range(30):
            written = "[" + "".join(draw.choices("aabbx01", k=draw.randint(0, 7))) + "]"
            assert grammar.matches(written) == judge(written), (text, written)
            compared += 1
    assert compared


# ---------------------------------------------------------------------- refused
@pytest.mark.parametrize(
    ("text", "kind", "message", "where"),
    [
        ('root ::= "a', gs.GrammarSyntaxError, "a literal that never ends", "line 1, column 10"),
        ("root ::= [a", gs.GrammarSyntaxError, "a class that never ends", "line 1, column 10"),
        ("root ::=\n  (", gs.GrammarSyntaxError, "missing )", "line 2, column 3"),
        ("root ::= )", gs.GrammarSyntaxError, "an unexpected )", "line 1, column 10"),
        ("root ::= * x", gs.GrammarSyntaxError, "the rule x is not defined", "line 1, column 12"),
        ("root ::= *", gs.GrammarSyntaxError, "nothing stands before *", "line 1, column 10"),
        ('root ::= "a"{3,2}', gs.GrammarSyntaxError, "the least count is above the most", "line 1, column 13"),
        ('root ::= "a"{,2}', gs.GrammarSyntaxError, "a count that is no", "line 1, column 13"),
        ('root ::= "a"{4294967295}', gs.LimitExceeded, "must be below the limit", "line 1, column 13"),
        ("root ::= foo", gs.GrammarSyntaxError, "the rule foo is not defined", "line 1, column 10"),
        ('root ::= "a"\nx ::= 12', gs.GrammarSyntaxError, "the rule 12 is not defined", "line 2, column 7"),
        ("root ::= [z-a]", gs.GrammarSyntaxError, "a range of characters that goes down", "line 1, column 11"),
        ("root ::= []", gs.GrammarSyntaxError, "a class without characters", "line 1, column 10"),
        ("root ::= [^]", gs.GrammarSyntaxError, "a class without characters", "line 1, column 10"),
        (r'root ::= "\q"', gs.GrammarSyntaxError, r"the escape \q", "line 1, column 11"),
        (r'root ::= "\x4"', gs.GrammarSyntaxError, r"the escape \x is unknown or incomplete", "line 1, column 11"),
        (r'root ::= "\uD800"', gs.GrammarSyntaxError, "U+D800 is no character", "line 1, column 11"),
        ('root ::= "\ud800"', gs.GrammarSyntaxError, "U+D800 is no character", "line 1, column 11"),
        (r'root ::= "\U00110000"', gs.GrammarSyntaxError, "U+110000 is no character", "line 1, column 11"),
        ('root ::= "a"\nroot ::= "b"', gs.GrammarSyntaxError, "root is defined a second time", "line 2, column 1"),
        ("x", gs.GrammarSyntaxError, "a rule is expected", "line 1, column 1"),
        ('a ::= "b"', gs.GrammarSyntaxError, "there is no rule 'root'", ""),
        ("", gs.GrammarSyntaxError, "there is no rule 'root'", ""),
        ('root ::= "a" § "b"', gs.GrammarSyntaxError, "an unexpected character", "line 1, column 14"),
        ("root ::= <>", gs.GrammarSyntaxError, "a token without a name", "line 1, column 10"),
        ("root ::= <[12]>", gs.UnsupportedFeature, "a token by its number", "line 1, column 10"),
        ("root ::= !<a>", gs.UnsupportedFeature, "any token but one", "line 1, column 10"),
        ('root ::= "a" (="b")', gs.UnsupportedFeature, "a lookahead assertion", "line 1, column 14"),
        ("root ::= Token(1)", gs.UnsupportedFeature, "the macro Token", "line 1, column 10"),
        ('root ::= Regex("a")', gs.UnsupportedFeature, "the macro Regex", "line 1, column 10"),
        ('root[max_tokens=3] ::= "a"', gs.UnsupportedFeature, "the attributes [max_tokens=3]", "line 1, column 5"),
        ("root ::= TagDispatch()", gs.GrammarSyntaxError, "without a tag", "line 1, column 10"),
        ('root ::= TagDispatch(("a", b))', gs.GrammarSyntaxError, "the rule b is not defined", "line 1, column 28"),
        ('root ::= TagDispatch(("", root))', gs.GrammarSyntaxError, "an empty text", "line 1, column 23"),
        ('root ::= TagDispatch(("a", root)', gs.GrammarSyntaxError, "do not end", "line 1, column 10"),
        ('root ::= TagDispatch(("a", root), x=1)', gs.GrammarSyntaxError, "no option x", "line 1, column 35"),
        (
            'root ::= TagDispatch(("a", root), ("ab", root))',
            gs.UnsupportedFeature,
            "one is within",
            "line 1, column 10",
        ),
    ],
)
def test_what_is_refused(text: str, kind: type[gs.GrammarError], message: str, where: str) -> None:
    with pytest.raises(kind) as raised:
        gs.gbnf(text)
    assert type(raised.value) is kind and message in raised.value.message
    assert raised.value.where.startswith(where) and ("^" in raised.value.where or not where)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="takes the text of a grammar"):
        gs.gbnf(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="limits must be"):
        gs.gbnf('root ::= "a"', limits=3)  # type: ignore[arg-type]
    token = gs.CancelToken()
    token.cancel()
    with pytest.raises(gs.Cancelled):
        gs.gbnf(JSON, cancel=token)


def test_a_grammar_without_texts() -> None:
    with pytest.raises(gs.Unsatisfiable):
        gs.gbnf('root ::= "a" root').sample()


@pytest.mark.parametrize(
    "text",
    [
        "root ::= " + "(" * 300_000,
        "root ::= " + '("b" | ' * 20_000 + '"a"' + ")" * 20_000,
        "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(60)) + '\nr60 ::= "a"\nroot ::= r0',
        'root ::= (("a"?){0,4000000000}){0,4000000000}',
        'root ::= root root | root "a" | ""',
        "#" * 1_000_000 + '\nroot ::= "a"',
        "root ::= " + " | ".join(f'"w{i}"' for i in range(100_000)),
    ],
    ids=["open", "nested", "doubling", "counts", "left", "comment", "words"],
)
def test_hostile_texts_end(text: str) -> None:
    with suppress(gs.LimitExceeded, gs.GrammarSyntaxError):
        gs.gbnf(text).matches("a")


@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        ('root ::= "a" x\nx ::= "b" x', "the rule x always needs itself", 2),
        (
            'root ::= ("a" | "b") y | z+\ny ::= x{2,3}\nx ::= y "c"\nz ::= z',
            "the rule y always needs itself again, by x",
            2,
        ),
        (
            'root ::= "a"? ("b" | "c" "d"*) x y\nx ::= "a" x*\ny ::= [a] ("b" y){1,} x',
            "the rule y always needs itself",
            3,
        ),
        ("root ::= [^\\x00-\\U0010FFFF]", "the rule root has none", 1),
        (
            "root ::= r0\n" + "\n".join(f'r{i} ::= "x" r{i + 1}' for i in range(20_000)) + "\nr20000 ::= r0",
            "the rule r0 always needs itself again, by r1, r2, r3, r4, r5, r6, ...",
            2,
        ),
    ],
    ids=["itself", "another", "optional parts", "no character", "many"],
)
def test_rules_that_cannot_end_are_named(text: str, why: str, line: int) -> None:
    with pytest.raises(gs.Unsatisfiable) as caught:
        gs.compile("- " + gs.gbnf(text), gs.Vocabulary.bytes())
    assert caught.value.message == f"no text belongs to the grammar: {why}"
    assert caught.value.where.startswith(f"line {line}, column 1\n")


def test_what_may_be_left_out_needs_no_end() -> None:
    text = 'root ::= "a" x{0,3} x? x* ("b" | x) TagDispatch(("c", x))\nx ::= "b" x'
    assert gs.compile(gs.gbnf(text), gs.Vocabulary.bytes()).matcher().accept_tokens(b"ab") == 2
