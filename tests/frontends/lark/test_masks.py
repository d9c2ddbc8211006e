"""Masks of ``.lark`` grammars: a token is allowed if and only if it is accepted.

Masks are put together of what tokens do inside single lexemes; acceptance follows bytes and knows nothing of that.
Random grammars have a vocabulary of short words, of which each may hold several lexemes; the shipped ones a real
vocabulary, whose runs of letters, digits and blanks are known beforehand.
"""

from __future__ import annotations

import itertools
import random
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests import tiers
from tests.counting import compared, discard, examples
from tests.frontends.lark.small_grammars import grammars, texts

pytest.importorskip("lark")

WORDS = ["".join(letters) for size in (1, 2, 3, 4) for letters in itertools.product("abc", repeat=size)]
VOCABULARY = gs.Vocabulary.from_tokens([b"<eos>", *(word.encode() for word in WORDS)], [0], special_tokens={"<eos>": 0})
GRAMMARS = Path(__file__).parents[3] / "grammars"
SHIPPED = ["json", tiers.slow("sql"), "graphql", "toml", tiers.slow("latex"), "arithmetic", tiers.slow("python")]
LINES = r"""
start: (_NL | stmt)+
stmt: NAME _NL | NAME "(" NAME* ")" _NL | "if" ":" _NL _INDENT stmt+ _DEDENT
%declare _INDENT _DEDENT
LPAR: "("
RPAR: ")"
NAME: /[a-z]+/
_NL: /(NEWLINE)+/
BLANK: / +/
%ignore BLANK
"""
NEWLINES = [
    r"\r?\n[\t ]*",
    r" *(?:#[^\n]*)?\r?\n[\t ]*",
    r"[\n\t ]*\n *(?:#[^\n]*)?",
    r"\r?\n[\t ]*|#[^\n]*",
    r"\r?\n[\t ]*|#[^\n\r]*",
]
"""Line ends: plain, with comments before them, with comments in which a line may end, and with comments as Python's."""
LINE_WORDS = [
    *"abif\n\r\t #():",
    "if",
    " a",
    " if",
    "if:",
    "  ",
    "    ",
    "\n ",
    "\n\n",
    "\n  ",
    "\n  a",
    "\n    if",
    " \n",
    "#a b",
    "# \n ",
]
LINE_WORDS += ["(\n", ")\n", "a\n\t", ":\n  a\n", "):", " #\n", "\n#", "  a b", "   if:\n"]
COMMENTED = [
    "if a:\n    b = 1 # c d\n    e\n# f  g\nh(\n #i\n) \n",
    "a\n # b  c\n#d e\nif f:\n\tg #\n\tif h:\n\t  i\n\t  # j k\n",
]
LETTERS = r"""
start: item*
item: LETTER | DIGIT | "{" start "}" | LETTER "^" (LETTER | DIGIT)
LETTER: /[A-Za-z+*=-]/
DIGIT: /[0-9]/
BLANK: / +/
%ignore BLANK
"""
"""Each letter is a lexeme, so that words are many."""
NESTED = r"""
start: (item NL)*
item: NAME "=" value | "{" NL (item NL)* "}"
value: NAME | NUMBER | "(" value ("+" value)* ")" | NAME "(" [value ("," value)*] ")"
NAME: /[a-z]\w*/
NUMBER: /\d+/
NL: /\n\s*/
COMMENT: /#[^\n]*(?=\n)/
BLANK: / +/
%ignore COMMENT
%ignore BLANK
"""
"""Behind a comment only a line end can stand, so that whether a text has an ending is found out by search."""
REPEATED = r"""
start: product
product: item ("*" item)*
item: "*" | NAME | "(" product ")" | "-" item | "[" product "]" | "--" NAME | "[[" NAME | "{" NL (product NL)* "}"
NAME: /[ab]+/
NL: /\n[ \n]*/
BLANK: / +/
%ignore BLANK
"""
"""A star is an item and an operator."""
CAREFUL = r"""
%extend item: AT+ "a"
COMMENT: /#[ab#]*(?=\n)/
AT: /@(?=[@b])/
%ignore COMMENT
"""
"""Behind an `@` there is always another one."""
REPEATED_WORDS = [
    *"ab {}\n#",
    "ab",
    "# a",
    "\n}}",
    "{\n{",
    "(((#",
    "((a",
    "((((-",
    "(((((*",
    "))))*",
    ")))*)))",
    "]]]])",
]
REPEATED_WORDS += ["**a", "***)", "*-*-*", "****(****", "a****", " ****", " -----a", "**** *", "**{\n", "***#a\n"]
REPEATED_WORDS += ["(****a", "(****]", "*@@@@", "(@@", "@b"]
REPEATED_WORDS += [character * count for character in "*-()[]@" for count in (1, 2, 3, 4, 5, 7, 12, 20)]
DEEP = [
    "{\n" * 12 + "a = b",
    "a = " + "f((" * 8 + "b + 1",
    "{\n" * 5 + "a = " + "(" * 9 + "c)",
    "{\n" * 9 + "a = b # c d",
]
"""More brackets are open than footprints show frames."""


SETTINGS = r"""
start: (NAME "=" (STRING | NUMBER | NAME) ";" | NAME ":" MARK ";")*
"""
CALLS = r"""
start: "let" call
call: NAME "(" [value ("," value)*] ")"
value: call | STRING | NUMBER | "[" value* "]" | "<" MARK "," NUMBER ">"
"""
SAME_LEXEMES = r"""
NAME: /(?!let\b)[a-z_]\w*(?!\w)/
STRING: /"(?:[^"\\]|\\.)*"(?!")/ | /'.*?(?<!\\)(\\\\)*?'/
NUMBER: /[0-9]+(?:\.[0-9]+)?(?![\w.])/
MARK: /T(?:h[a-z]*(?=;)|o[a-z]*(?=,))|%"[^"]*"(?:(?=;)|(?=,))/
COMMENT: /#[^\n]*/
%ignore /[ \t\n]+/
%ignore COMMENT
"""
SHARING = {
    SETTINGS: ["", "na", 'let_x="a\\', "a = '", "a='b\\\\", "a=12", "a = 1.5; # no", "ab: ", "ab: Th", 'ab: %"x'],
    CALLS: [
        "",
        "let na",
        'let f("a\\',
        "let f([[['",
        "let f('b\\\\",
        "let f(12",
        "let f(1.5, # no",
        "let f(<",
        "let f(<To",
        'let f(<%"x',
    ],
}
"""Grammars that have the same lexemes between other ones, and beginnings of texts."""


def lalr(rules: str) -> gs.Grammar:
    return gs.lark(rules, parser="lalr")


def accepted(name: str) -> list[str]:
    """Texts of a shipped grammar."""
    cases = tomllib.loads((GRAMMARS / f"{name}.cases.toml").read_text(encoding="utf-8"))
    return list(cases["accept"])


def allowed(matcher: gs.Matcher, size: int) -> list[bool]:
    row = gs.allocate_bitmask(1, size)
    matcher.fill_bitmask(row)
    words = [int(word) & 0xFFFFFFFF for word in row[0]]
    return [bool(words[token >> 5] >> (token & 31) & 1) for token in range(size)]


def check(matcher: gs.Matcher, size: int, said: str) -> None:
    """Compare the mask of a state with the acceptance of each token."""
    row = allowed(matcher, size)
    differing = [token for token in range(size) if row[token] != (matcher.validate_tokens([token]) == 1)]
    assert not differing, f"{said}: {[(token, row[token]) for token in differing[:5]]}"
    compared(size)


def check_walks(constraint: gs.Constraint, words: list[str], chosen: random.Random, count: int) -> None:
    """Check the masks along random texts of words, which are the tokens from the second one on."""
    size = len(words) + 1
    for _ in range(count):
        matcher, text = constraint.matcher(), ""
        for _ in range(14):
            row = allowed(matcher, size)
            check(matcher, size, text)
            going_on = [token for token in range(1, size) if row[token]]
            if not going_on:
                break
            token = chosen.choice(going_on)
            assert matcher.accept_token(token)
            text += words[token - 1]


@examples(240, kept=0.4)
@given(grammars(), st.sampled_from([("lalr", "contextual"), ("lalr", "basic"), ("earley", "dynamic")]))
def test_small_grammars(grammar: str, options: tuple[str, str]) -> None:
    parser, lexer = options
    try:
        constraint = gs.compile(gs.lark(grammar, parser=parser, lexer=lexer), VOCABULARY)
        for text in tiers.some(texts(3), least=12):
            matcher = constraint.matcher()
            if matcher.accept_tokens([WORDS.index(letter) + 1 for letter in text]) == len(text):
                check(matcher, VOCABULARY.size, text)
    except gs.GrammarError as error:  # lark's refusals, too
        discard(type(error).__name__)
    except gs.LimitExceeded:
        discard("limit exceeded")


@pytest.mark.property
@pytest.mark.parametrize("newline", NEWLINES)
def test_lines_of_counted_blanks(newline: str) -> None:
    members: dict[str, object] = {"NL_type": "_NL", "OPEN_PAREN_types": ["LPAR"], "CLOSE_PAREN_types": ["RPAR"]}
    members |= {"INDENT_type": "_INDENT", "DEDENT_type": "_DEDENT", "tab_len": 2}
    postlex = type("Blocks", (pytest.importorskip("lark.indenter").Indenter,), members)()
    words = [b"<eos>", *(word.encode() for word in LINE_WORDS)]
    vocabulary = gs.Vocabulary.from_tokens(words, [0], special_tokens={"<eos>": 0})
    constraint = gs.compile(gs.lark(LINES.replace("NEWLINE", newline), parser="lalr", postlex=postlex), vocabulary)
    check_walks(constraint, LINE_WORDS, random.Random(tiers.seed(2)), tiers.draws(60, least=20))


@pytest.mark.property
@pytest.mark.parametrize("characters", [r"[^\n]", r"[^\r\n]"])
def test_comments_among_indented_lines(characters: str, smollm2_tokenizer: Any) -> None:
    """What tokens do in a comment is known for all columns, and runs of them are not walked."""
    python = resources.files("lark").joinpath("grammars", "python.lark").read_text(encoding="utf-8")
    grammar = python.replace(r"COMMENT: /#[^\n]*/", f"COMMENT: /#{characters}*/")
    assert characters in grammar
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    postlex = pytest.importorskip("lark.indenter").PythonIndenter()
    constraint = gs.compile(gs.lark(grammar, parser="lalr", start="file_input", postlex=postlex), vocabulary)
    places = [(text, place) for text in COMMENTED for place in range(len(text))]
    for text, place in random.Random(tiers.seed(4)).sample(places, tiers.draws(30, least=6)):
        matcher = constraint.matcher()
        tokens = smollm2_tokenizer.encode(text[:place], add_special_tokens=False)
        assert matcher.accept_tokens(tokens) == len(tokens)
        check(matcher, vocabulary.size, text[:place])


def test_letters_that_are_lexemes(smollm2_tokenizer: Any) -> None:
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    constraint = gs.compile(gs.lark(LETTERS, parser="lalr"), vocabulary)
    for text in ["", "x", "ab {c", "a ^", "a^b 1 "]:
        matcher = constraint.matcher()
        matcher.accept_tokens(smollm2_tokenizer.encode(text, add_special_tokens=False))
        check(matcher, vocabulary.size, text)


@pytest.mark.property
@pytest.mark.parametrize(
    "grammar",
    [
        lalr(REPEATED),
        lalr(REPEATED + CAREFUL),
        lalr('start: "("') + (lalr('start: "*"+ "a"') | lalr('start: "*"+ "]"')),
    ],
    ids=["plain", "careful", "either"],
)
def test_characters_that_stand_many_times(grammar: gs.Grammar) -> None:
    words = [b"<eos>", *(word.encode() for word in REPEATED_WORDS)]
    vocabulary = gs.Vocabulary.from_tokens(words, [0], special_tokens={"<eos>": 0})
    constraint = gs.compile(grammar, vocabulary)
    check_walks(constraint, REPEATED_WORDS, random.Random(tiers.seed(5)), tiers.draws(100, least=20))


@pytest.mark.parametrize("first", SHARING, ids=["settings", "calls"])
def test_what_tokens_do_in_a_lexeme_is_shared(first: str, smollm2_tokenizer: Any) -> None:
    """Masks do not depend on what other grammars, or an equal one before, have found out."""
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    vocabulary.keep(constraints=0)
    for rules, beginnings in [*sorted(SHARING.items(), key=lambda item: item[0] != first), (first, SHARING[first])]:
        constraint = gs.compile(gs.lark(rules + SAME_LEXEMES, parser="lalr"), vocabulary)
        for text in beginnings:
            matcher = constraint.matcher()
            tokens = smollm2_tokenizer.encode(text, add_special_tokens=False)
            assert matcher.accept_tokens(tokens) == len(tokens), text
            check(matcher, vocabulary.size, text)


def test_little_memory(smollm2_tokenizer: Any) -> None:
    """Masks are the same where memory is short; what only new ones need is forgotten first, and the others stay."""
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    wide = gs.compile(gs.load("graphql"), vocabulary)
    narrow = gs.compile(gs.load("graphql"), vocabulary, limits=gs.Limits(max_memory=10 << 20))
    before, fell = narrow.stats(), {"forgotten": 0, "collected": 0}
    row, other = (gs.allocate_bitmask(1, vocabulary.size) for _ in range(2))
    for text in accepted("graphql"):
        matcher, beside = wide.matcher(), narrow.matcher()
        for token in smollm2_tokenizer.encode(text, add_special_tokens=False):
            matcher.fill_bitmask(row)
            beside.fill_bitmask(other)
            assert (row == other).all(), text
            assert matcher.accept_token(token) and beside.accept_token(token)
            after = narrow.stats()
            if after["memory"] < before["memory"] - (1 << 20):
                fell["forgotten" if after["masks"] >= before["masks"] else "collected"] += 1
            before = after
    assert all(fell.values()), fell


@pytest.mark.property
def test_deep_stacks(smollm2_tokenizer: Any) -> None:
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    constraint = gs.compile(gs.lark(NESTED, parser="lalr"), vocabulary)
    chosen = random.Random(tiers.seed(3))
    for text in DEEP:
        tokens = smollm2_tokenizer.encode(text, add_special_tokens=False)
        matcher = constraint.matcher()
        assert matcher.accept_tokens(tokens) == len(tokens)
        for step in range(tiers.draws(6, least=3)):
            check(matcher, vocabulary.size, f"{text!r}, {step} tokens behind it")
            row = allowed(matcher, vocabulary.size)
            going_on = [
                token for token in range(vocabulary.size) if row[token] and token not in vocabulary.eos_token_ids
            ]
            assert matcher.accept_token(chosen.choice(going_on))


@pytest.mark.property
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_grammars(name: str, smollm2_tokenizer: Any) -> None:
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    constraint = gs.compile(gs.load(name), vocabulary)
    chosen, cases = random.Random(tiers.seed(1)), accepted(name)
    for text in chosen.sample(cases, min(len(cases), tiers.draws(12, least=3))):
        tokens = smollm2_tokenizer.encode(text, add_special_tokens=False)
        matcher = constraint.matcher()
        matcher.accept_tokens(tokens[: chosen.randint(0, len(tokens))])
        check(matcher, vocabulary.size, text)
