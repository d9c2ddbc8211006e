"""``.lark`` grammars against lark itself: its Earley parser with its dynamic lexers."""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests import tiers
from tests.counting import discard, examples, tally
from tests.endings import ends

lark = pytest.importorskip("lark")


def reference(grammar: str, lexer: str = "dynamic", kind: str = "earley") -> Callable[[str], bool]:
    parser = lark.Lark(grammar, parser=kind, lexer=lexer)

    def contains(text: str) -> bool:
        try:
            parser.parse(text)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    return contains


def matches(grammar: gs.Grammar) -> Callable[[str], bool]:
    """Membership by the compiled automaton over single bytes."""
    constraint = gs.compile(grammar, gs.Vocabulary.bytes())

    def contains(text: str) -> bool:
        matcher, data = constraint.matcher(), text.encode()
        return matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting

    return contains


# Random grammars: rules that call each other in any way, templates, terminals with choices whose order matters.

TERMINALS = [
    '"a"', '"b"', '"ab"', '"c"', "/a+/", "/[ab]/", "/a|ab/", "/a*b/", "/[^a]/", "/a+?/", "/b.*?c/", '"A"i', '"a".."b"',
    "/(?:ab?)+/", "/(a|b)+c?/", "/[ab]{2}/", "/ c?/", '" "', "/c{1,2}/", "/b*?c|a/", "/a(?=b)b?/", "/b(?!c)[ac]/",
    "/a(?<=a)b/",
]  # fmt: skip
IGNORED = ['" "', "/ +/", "/c+/", "/#[^c]*/", '"b"', "/ca*?c/", "A", '" " | "c" "a"']
SUFFIXES = ["?", "*", "+", "~2", "~1..2"]


def alternatives(items: st.SearchStrategy[str], least: int) -> st.SearchStrategy[str]:
    sequences = st.lists(items, min_size=least, max_size=3).map(" ".join)
    return st.lists(sequences, min_size=1, max_size=3, unique=True).map(" | ".join)


def repeated(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(str.__add__, items, st.one_of(st.just(""), st.just(""), st.sampled_from(SUFFIXES)))


terminal_atoms = st.sampled_from(TERMINALS)
terminal_bodies = alternatives(
    repeated(st.one_of(terminal_atoms, terminal_atoms, alternatives(terminal_atoms, 1).map("({})".format))), 1
)
symbols = st.sampled_from(["A", "B", "x", "y", "start", "t{A}", "t{x}", 't{"a"}', "t{/b+/}", "t{t{B}}"])
rule_atoms = st.one_of(st.sampled_from(TERMINALS), symbols)
rule_items = st.one_of(
    repeated(rule_atoms),
    alternatives(rule_atoms, 1).map("[{}]".format),
    repeated(alternatives(rule_atoms, 1).map("({})".format)),
)
rule_bodies = alternatives(rule_items, 0)
grammars = st.builds(
    'start: {}\n?x: {}\ny.2: {}\nt{{p}}: p "c" | p\nA: {}\nB.3: {}\n{}'.format,
    rule_bodies,
    rule_bodies,
    rule_bodies,
    terminal_bodies,
    terminal_bodies,
    st.lists(st.sampled_from(IGNORED), max_size=2).map(lambda ignored: "".join(f"%ignore {x}\n" for x in ignored)),
)
SHORT_TEXTS = tiers.some(
    ["".join(letters) for size in range(4) for letters in itertools.product("abc ", repeat=size)], least=20
)


@examples(250, kept=0.5)
@given(grammars, st.lists(st.text("abc #", min_size=4, max_size=7), min_size=10, max_size=10))
def test_accepts_the_texts_that_lark_does(grammar: str, samples: list[str]) -> None:
    try:
        theirs, ours = reference(grammar, "dynamic_complete"), matches(gs.lark(grammar, lexer="dynamic_complete"))
    except gs.Unsatisfiable:
        discard("a grammar without texts")
    except (lark.exceptions.LarkError, ValueError):  # ValueError: refused by either
        discard("a grammar that is refused")
    texts = tally("texts", 0.9)
    for text in SHORT_TEXTS + samples:
        try:
            expected = theirs(text)
        except RuntimeError:  # lark gives up on circular rules
            texts.discard("a circular rule")
            continue
        try:
            found = ours(text)
        except gs.LimitExceeded:
            texts.discard("limit exceeded")
            continue
        texts.keep()
        assert found == expected, text


JSON = """
start: value
?value: "{" [pair ("," pair)*] "}" | "[" [value ("," value)*] "]" | ESCAPED_STRING | SIGNED_NUMBER -> number
pair: ESCAPED_STRING ":" value
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""


def test_lazy_strings_end_at_their_first_quote() -> None:
    ours = matches(gs.lark(JSON))
    for text in (r'"a\"b"', r'"\\"', r'[ "a" , -1.5e3 , {"b\\\"" : []} ]', '"\t"'):
        assert ours(text), text
    for text in (r'"a"b"', r'"\"', r'["a"b"]', '"\n"', r'"\\""'):
        assert not ours(text), text


@pytest.mark.parametrize(
    ("grammar", "accepted", "rejected"),
    [
        ("start: /a|ab/", ["a"], ["ab"]),
        ("start: /a|ab/ \"b\"?", ["a", "ab"], ["abb"]),
        ('start: "a" /[a-z]+/\n%ignore "b"', ["ac", "bacb", "abc", "ab"], ["a", "b", "ba"]),
        ('start: A B\nA: "a"i+\nB.5: /b /x\n%ignore /#.*/', ["aAb", "ab#b"], ["aB", "a#b"]),
        ('start: x~2..3\nx: "a" | [x] "b"', ["aa", "abab", "bbb"], ["a", "abba" * 3 + "c"]),
        (
            'start: pair{"a", X}\npair{p, q}: p q | wrap{p}\nwrap{p}: "(" p ")"\nX: "x".."z"',
            ["ay", "(a)"],
            ["(x)", "a"],
        ),
        ('start: a\na: "x"\n%override a: "y"\n%extend a: "z"', ["y", "z"], ["x"]),
        ('start: "a"~0..1000 "b"', ["b", "a" * 1000 + "b"], ["a" * 1001 + "b"]),
        ('!start: "é"i "\\u00df" "\\x41" /\\x42/', ["éßAB", "ÉßAB"], ["éßaB"]),
        ("start: NL\nNL: /\\n/ \" \"*", ["\n", "\n  "], ["", " "]),
    ],
)  # fmt: skip
def test_constructs(grammar: str, accepted: list[str], rejected: list[str]) -> None:
    ours, theirs = matches(gs.lark(grammar)), reference(grammar)
    for text in accepted:
        assert ours(text), text
        assert theirs(text), text
    for text in rejected:
        assert not ours(text), text
        assert not theirs(text), text


def test_an_ignored_comment_takes_its_whole_line() -> None:
    ours = matches(gs.lark("start: NAME+\nNAME: /[a-z]+/\n%ignore /#[^\\n]*/\n%ignore /\\s/"))
    assert ours("a # b\nc")
    assert ours("a # b")
    assert not ours("# a")


def test_start_and_relative_imports(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text('greeting: HELLO | _bye\nHELLO: "hello"\n_bye: "bye"\n', encoding="utf-8")
    main = tmp_path / "main.lark"
    main.write_text('top: greeting "!"\n%import .words.greeting\n', encoding="utf-8")
    ours = matches(gs.load(main, start="top"))
    assert ours("hello!")
    assert ours("bye!")
    assert not ours("hello")


def imports(folder: Path, **files: str) -> Path:
    """A folder with grammars, by name."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.lark").write_text(text, encoding="utf-8")
    return folder


def test_a_text_reads_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imports(tmp_path, secret='A: "password"')
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "script.py"), raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gs.UnsupportedFeature, match="the relative import secret") as caught:
        gs.lark("start: A\n%import .secret.A")
    assert caught.value.where.startswith("line 2, column 1")
    with pytest.raises(gs.GrammarSyntaxError, match="no grammar secret to import") as absolute:
        gs.lark("start: A\n%import secret.A")
    assert absolute.value.where.startswith("line 2, column 1")
    for hostile in ("..secret.A", "/secret.A", ".secret..A", '"secret".A', "./secret.A", ".", "..", ".secret"):
        with pytest.raises(gs.GrammarError):
            gs.lark(f"start: A\n%import {hostile}")


def test_a_text_imports_what_lark_has_and_what_the_caller_names(tmp_path: Path) -> None:
    folder = imports(tmp_path / "words", greeting='A: "hi" B\n%import .second.B', second='B: "!"')
    assert matches(gs.lark("start: INT\n%import common.INT"))("12")
    assert matches(gs.lark("start: LETTER\n%import common (LETTER, INT)"))("a")
    for dots in ("", "."):
        grammar = gs.lark(f"start: A\n%import {dots}greeting.A", import_paths=[folder])
        assert matches(grammar)("hi!")
        assert eval(repr(grammar)) == grammar
    with pytest.raises(TypeError, match="sequence of paths"):
        gs.lark("start: A\n%import greeting.A", import_paths=str(folder))


def test_a_file_reads_what_stands_in_its_folder_only(tmp_path: Path) -> None:
    outside = imports(tmp_path / "outside", secret='A: "password"')
    folder = imports(tmp_path / "inside", main="start: A\n%import .secret.A", loop="start: A\n%import .loop.A")
    with pytest.raises(gs.GrammarSyntaxError, match="no grammar secret to import"):
        gs.load(folder / "main.lark")
    (folder / "secret.lark").symlink_to(outside / "secret.lark")
    with pytest.raises(gs.UnsupportedFeature, match="a link that leads out of its folder"):
        gs.load(folder / "main.lark")
    assert matches(gs.load(folder / "main.lark", import_paths=[outside]))("password")
    (outside / "main.lark").symlink_to(folder / "main.lark")  # the grammar itself may be a link
    assert matches(gs.load(outside / "main.lark"))("password")
    with pytest.raises(gs.LimitExceeded, match="nesting depth"):
        gs.load(folder / "loop.lark")


def test_imported_files_that_cannot_be_read(tmp_path: Path) -> None:
    folder = imports(tmp_path, main="start: A\n%import .other.A", other='A: "' + "\\\\" * 100)
    with ends(), pytest.raises(gs.GrammarSyntaxError, match="never ends"):
        gs.load(folder / "main.lark")
    (folder / "other.lark").write_bytes(b"A: \xff")
    with pytest.raises(gs.GrammarSyntaxError, match="the import other cannot be read"):
        gs.load(folder / "main.lark")


REFUSED = [
    ("start: A\n%declare A", "only declared", "line 2, column 1"),
    ("start: a\n%declare a", "only declared", ""),
    ("start: A\nA: /(a)\\1/", "backreference", "line 2, column 1"),
    ("start: /(?<!bc)a/", "lookbehind before the start", "line 1, column 8"),
    ('start: A\nA: "a"?', "can be empty", "line 2, column 1"),
    ('start: "a"\n%ignore /b*/', "can be empty", ""),
    ("start: /([ab]{2,90}[bc]+)+d/", "counted to 90", "line 1, column 8"),
]


@pytest.mark.parametrize(("grammar", "feature", "where"), REFUSED)
def test_refused_by_name(grammar: str, feature: str, where: str) -> None:
    with pytest.raises(gs.UnsupportedFeature, match=feature) as caught:
        gs.lark(grammar)
    assert caught.value.where.startswith(where)


@pytest.mark.parametrize(
    ("grammar", "feature", "where"),
    [
        ("start: A\nA: /a(?!b)/", "lookahead past the end", "line 2, column 1"),
        ("start: /a$/", "anchor at the end", "line 1, column 8"),
        ("start: /(?<!b)a/", "lookbehind before the start", "line 1, column 8"),
        ("start: /^a/", "anchor at the start", "line 1, column 8"),
        ("start: /\\ba/", "lookbehind before the start", "line 1, column 8"),
    ],
)
def test_dynamic_complete_tries_texts_alone(grammar: str, feature: str, where: str) -> None:
    with pytest.raises(gs.UnsupportedFeature, match=feature) as caught:
        gs.lark(grammar, lexer="dynamic_complete")
    assert caught.value.where.startswith(where)


@pytest.mark.parametrize(
    "grammar",
    [
        "start: A\nA: /a(?!b)c/", "start: A\nA: /a(?=b)b/", "start: A\nA: /a(?<=a)b/", r'start: A\nA: /"(?!x)[a-z]+"/',
        r"start: A\nA: /a\b-/", "start: A\nA: /a(?<!b)c(?!d)e/",
    ],
)  # fmt: skip
def test_interior_lookarounds_are_fine(grammar: str) -> None:
    gs.lark(grammar.replace("\\n", "\n"))


@pytest.mark.parametrize(
    ("grammar", "where"),
    [
        ("start: (", "line 1, column"),
        ("start: b", "line 1, column 8\n    start: b\n           ^"),
        ("start: /b/ // b\nb: start c", "line 2, column 10"),
        ('start: a\n//"\na: "B" | B', "line 3, column 10"),
        ('start: a\na: "x" -> c\nb: c', "line 3, column 4"),
        ("start: A\nA: B", "line 2, column 4"),
        ('start: "a"\n%ignore A', "line 2, column 9"),
        ('a: "x"', ""),
        ('start: "a"\n  | %', "line 2, column 5"),
        ('start: "a"~3..2', ""),
        ("start: A\nA: /a(/", "line 2, column 1"),
        ('start: A\nA: "x" A', ""),
        ("start: A\n%import nowhere.A", "line 2, column 1"),
        ('start: "' + "\\\\" * 100, "line 1, column 8"),
        ('start: "\ud800"', "line 1, column 9"),
        ('start: start{"a"}', ""),
        ('start: a{"a"}', "line 1, column 8"),
        ("start: t\nt{x}: x", ""),
    ],
)
def test_malformed(grammar: str, where: str) -> None:
    with pytest.raises(gs.GrammarSyntaxError) as caught:
        gs.lark(grammar)
    assert caught.value.where.startswith(where)


@pytest.mark.parametrize(
    ("parser", "lexer"),
    [("earley", "dynamic"), ("earley", "dynamic_complete"), ("lalr", "contextual"), ("earley", "basic")],
)
@pytest.mark.parametrize(
    ("terminal", "flags"),
    [
        (r"/\s/", 0), (r"/\w/", 0), (r"/\d/", 0), (r"/[[:alpha:]]+/", 0), (r"/\p{Greek}/", 0), (r"/\pL/i", 0),
        (r"/(?<name>a)|²/", 0), (r"/[[:punct:]]/", 0), (r"/\w/", "A"), (r"/k/", "I"), (r"/./", "S"), (r"/\w/", "D"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Possible nested set")  # says re, which lark asks for the width
def test_expressions_of_the_package_regex(parser: str, lexer: str, terminal: str, flags: int | str) -> None:
    regex = pytest.importorskip("regex")
    options = {"regex": True, "g_regex_flags": getattr(regex, flags) if isinstance(flags, str) else flags}
    grammar = f"start: A\nA: {terminal}"
    ours = gs.lark(grammar, parser=parser, lexer=lexer, **options).matches
    theirs = lark.Lark(grammar, parser=parser, lexer=lexer, **options)
    seen = set()
    for text in ("a", "K", "k", "\u212a", "²", "٣", "\x1c", "\x85", "\u3000", "\n", "α", "é", "_", "$", "!", "+", "ab"):
        try:
            theirs.parse(text)
            valid = True
        except lark.exceptions.UnexpectedInput:
            valid = False
        assert ours(text) == valid, text
        seen.add(valid)
    assert seen == {True, False}


def test_flags_that_change_nothing_and_what_the_package_alone_has() -> None:
    grammar = "start: A\nA: /a/"
    for flags in (re.DEBUG, 1):  # the latter is re.TEMPLATE, where there is one
        assert gs.lark(grammar, g_regex_flags=flags).matches("a")
    pytest.importorskip("regex")
    for terminal, options in (("/(?:ab){e<=1}/", {}), ("/a/", {"g_regex_flags": 256})):
        with pytest.raises(gs.UnsupportedFeature, match=r"fuzzy matching|the flag VERSION1"):
            gs.lark(f"start: A\nA: {terminal}", regex=True, **options)


@pytest.mark.parametrize("lexer", ["dynamic", "dynamic_complete"])
@pytest.mark.parametrize("terminal", ["/(?!b)+[ab]/", "/(?=a)*[ab]/", "/(?=a){2}[ab]/", "/(?:(?!b)(?!c))+[a-d]/"])
def test_assertions_may_be_repeated(terminal: str, lexer: str) -> None:
    grammar = f"start: A\nA: {terminal}"
    theirs, ours = reference(grammar, lexer), matches(gs.lark(grammar, lexer=lexer))
    for text in "abcd":
        assert ours(text) == theirs(text), text


def test_options_are_checked() -> None:
    one = 'start: "a"'
    for options, match in (
        ({"parser": "peg"}, "parser must be one of"),
        ({"lexer": "fast"}, "lexer must be one of"),
        ({"parser": "lalr", "lexer": "dynamic"}, "has the lexers contextual, basic"),
        ({"lexer": "contextual"}, "has the lexers dynamic"),
    ):
        with pytest.raises(ValueError, match=match):
            gs.lark(one, **options)
    for name, value in (("parser", "cyk"), ("lexer_callbacks", {"A": print}), ("use_bytes", True)):
        with pytest.raises(gs.UnsupportedFeature, match=name):
            gs.lark(one, **{name: value})
    with pytest.raises(TypeError, match="no option colour of"):
        gs.lark(one, colour="red")
    for name, value in (("start", []), ("start", 5), ("g_regex_flags", "i")):
        with pytest.raises(TypeError, match=f"{name} takes"):
            gs.lark(one, **{name: value})
    assert gs.lark(one, lexer_callbacks={}, tree=True).parse("a").data == "start"
    shaping = {"propagate_positions": True, "maybe_placeholders": False, "ambiguity": "explicit", "priority": "invert"}
    assert matches(gs.lark(one, **shaping, keep_all_tokens=True, g_regex_flags=re.IGNORECASE))("A")
    assert [matches(gs.lark('a: "a"\nb: "b"', start=["a", "b"], parser="lalr"))(text) for text in "abc"] == [1, 1, 0]


# What lark's lexers make of one grammar: (parser, lexer), text, and whether it is taken.

WORDS = """
start: ("if" NAME | NAME "=" NAME) ";"
NAME: /[a-z]+/
%ignore " "
"""
MEANINGS = [
    ("lalr", "contextual", "if x;", True),
    ("lalr", "contextual", "ifx;", False),
    ("lalr", "contextual", "x=if;", True),
    ("lalr", "basic", "x=if;", False),
    ("lalr", "basic", "if x;", True),
    ("earley", "basic", "x=if;", False),
    ("earley", "basic", "ify=x;", True),
    ("earley", "dynamic", "ifx;", True),
    ("earley", "dynamic", "x=if;", True),
]


@pytest.mark.parametrize(("parser", "lexer", "text", "taken"), MEANINGS)
def test_the_lexer_decides(parser: str, lexer: str, text: str, taken: bool) -> None:
    assert matches(gs.lark(WORDS, parser=parser, lexer=lexer))(text) == taken
    assert reference(WORDS, lexer, parser)(text) == taken


HOSTILE = {
    "parentheses": ("start: " + "(" * 15_000 + '"a"' + ")" * 15_000, "nesting depth"),
    "doubling terminals": (
        "start: A_0\n" + "".join(f"A_{i}: A_{i + 1} A_{i + 1}\n" for i in range(60)) + 'A_60: "x"', "written out",
    ),
    "doubling rules": ("start: a0\n" + "".join(f"a{i}: a{i + 1} a{i + 1}\n" for i in range(60)) + 'a60: "x"', None),
    "choices in sequence": ("start: " + '("a" | "b") ' * 60, None),
    "template without end": ('start: t{"a"}\nt{x}: x | t{u{x}}\nu{x}: "b" x', "templates"),
    "large count": ('start: x~1000000\nx: "a"', None),
    "larger count": ('start: "a"~99999999999999999999', "count"),
    "nested stars": ("start: /(a*)*b/", None),
    "blank lines": ('start: "a"\n' + "\n" * 300_000, None),
    "ambiguous": ('start: start start | "a"', None),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_are_answered(name: str) -> None:
    grammar, error = HOSTILE[name]
    with ends(), contextlib.nullcontext() if error is None else pytest.raises(gs.LimitExceeded, match=error):
        gs.lark(grammar)


def test_lark_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "lark" or name.startswith("lark.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"grammarspec\[lark\]"):
        gs.lark('start: "a"')


def test_what_lark_would_write_out_is_charged() -> None:
    keywords = "start: (NAME | " + " | ".join(f'"k{i}"' for i in range(1_500)) + ")+\nNAME: /[a-z]+/"
    with pytest.raises(gs.LimitExceeded, match="LALR tables of 3002 places and 1501 terminals"):
        gs.lark(keywords, parser="lalr")
    with pytest.raises(gs.LimitExceeded, match="the rule start, 266240 alternatives in BNF"):
        gs.lark('start: ("a"? "b"? "c"? "d"? "e"? "f"?)~2..3', parser="lalr")


def test_rules_that_double_end_at_a_limit() -> None:
    """Joined texts are copied, part by part, and each part is paid for."""
    rules = [f"r{number}: r{number + 1} r{number + 1}" for number in range(40)]
    grammar = gs.lark("\n".join(["start: r0", *rules, 'r40: "a"']))
    constraint = gs.compile(grammar, gs.Vocabulary.bytes(), limits=gs.Limits(max_call_steps=100_000))
    with pytest.raises(gs.LimitExceeded):
        constraint.mask(constraint.start)
