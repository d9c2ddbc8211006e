"""Small grammars under each of lark's lexers: the same texts belong to them, and every prefix of a mask has an ending.

Each example compares the verdicts on all texts over three letters up to a length: in the tier ``all`` up to 70,000 with
each lexer of ``lalr``, and 30,000 with each of ``earley``. A lexer that is not supported yet is an expected failure,
until it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, example, given, settings

import grammarspec as gs
from tests import tiers
from tests.counting import Tally, count_examples, discard, tally
from tests.frontends.lark.small_grammars import grammars, texts

lark = pytest.importorskip("lark")
indenter = pytest.importorskip("lark.indenter")
judge = pytest.importorskip("tests.frontends.lark.judge")

LOADED = 0.5
"""The share of the grammars that lark loads which we must load."""
LENGTHS = {"lalr": 5, "earley": 4}
"""The most letters of a text, by parser: 364 or 121 texts for each grammar."""
SECONDS = 1.0
"""What lark has for a verdict. Where it reduces the empty text again and again, it takes a gigabyte in each second."""
VOCABULARY = gs.Vocabulary.bytes()


class Ours:
    """A grammar of ours, or that of no texts, over single bytes."""

    def __init__(self, grammar: gs.Grammar[str]) -> None:
        self.matcher: gs.Matcher | None = None
        try:
            self.constraint = gs.compile(grammar, VOCABULARY)
            self.matcher = self.constraint.matcher()
        except gs.Unsatisfiable:
            pass

    def read(self, text: str) -> bool:
        """Go to where a text ends. Returns whether the masks led there."""
        if self.matcher is None:
            return False
        self.matcher.reset()
        data = text.encode()
        return self.matcher.accept_tokens([*data]) == len(data)

    def takes(self, text: str) -> bool:
        return self.read(text) and self.matcher is not None and self.matcher.is_accepting

    def is_alive(self, prefix: str) -> bool:
        """Whether the mask behind a prefix allows anything, a token or the end."""
        if self.matcher is None or not self.read(prefix):
            return False
        row = gs.allocate_bitmask(1, VOCABULARY.size)
        self.matcher.fill_bitmask(row)
        return any(word for word in row[0])

    def ended(self, prefix: str) -> str:
        """A prefix that is alive, with its shortest ending."""
        assert self.read(prefix) and self.matcher is not None
        try:
            tokens = self.constraint.shortest_completion(self.matcher.state)
        except gs.Unsatisfiable:
            pytest.fail(f"a dead end: nothing ends {prefix!r}")
        ending = bytes(token for token in tokens if token < 256)
        return (prefix.encode() + ending).decode()


def drawn(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``counting.examples``, without explanations of failures: for these, Hypothesis traces each line of lark."""
    phases = set(Phase) - {Phase.explain}

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        return count_examples(settings(max_examples=tiers.each_round(count), phases=phases)(test), kept=0.5)

    return decorate


def unless_supported(parser: str, lexer: str) -> pytest.MarkDecorator:
    """A mark of tests with a lexer: expected failures, and not run, while the lexer is not supported."""
    try:
        gs.lark('start: "a"', parser=parser, lexer=lexer)
    except gs.UnsupportedFeature as error:
        return pytest.mark.xfail(run=False, reason=f"not supported yet: {error.message}")
    return pytest.mark.property


def compare(grammar: str, parser: str, lexer: str, **options: Any) -> None:
    """Compare one grammar, with further options.

    Its texts get lark's verdict. Behind each of their prefixes that the masks lead to something is allowed, and what
    the prefix then ends to by our shortest ending is a text that lark takes.
    """
    try:
        theirs = judge.open_theirs(grammar, {"parser": parser, "lexer": lexer, **options}, SECONDS)
    except lark.exceptions.LarkError as error:
        discard(f"lark refuses the grammar: {type(error).__name__}")
    loaded = tally("grammars that load", LOADED)
    try:
        ours = Ours(gs.lark(grammar, parser=parser, lexer=lexer, **options))
    except gs.GrammarError as error:
        loaded.discard(f"{type(error).__name__}: {error.message.partition('(')[0]}")
        return
    try:
        check_texts(ours, theirs, parser)
    except gs.LimitExceeded as error:
        loaded.discard(f"LimitExceeded: {error.message.partition('(')[0]}")
    else:
        loaded.keep()


def check_texts(ours: Ours, theirs: judge.Theirs, parser: str) -> None:
    """Check the verdicts on all short texts, and their prefixes."""
    found = {}
    counted, members = tally("texts", 0.9), tally("members", 0.02)
    for text in texts(LENGTHS[parser]):
        expected = decided(theirs, text, counted)
        if expected is None:
            continue
        assert ours.takes(text) == expected, f"{text!r}: lark {'takes' if expected else 'refuses'} it"
        found[text] = expected
        if expected:
            members.keep()
        else:
            members.discard("lark refuses the text")
    check_prefixes(ours, theirs, found)


def check_prefixes(ours: Ours, theirs: judge.Theirs, found: dict[str, bool]) -> None:
    """Check that no prefix that the masks lead to is a dead end, and that prefixes of members are none."""
    prefixes = {text[:end] for text, expected in found.items() if expected for end in range(len(text) + 1)}
    counted = tally("prefixes that are alive", 0.9)
    for prefix in found:
        if prefix in prefixes:
            assert ours.is_alive(prefix), f"a dead end behind {prefix!r}"
        elif ours.read(prefix):
            assert ours.is_alive(prefix), f"a dead end behind {prefix!r}"
            ended = ours.ended(prefix)
            assert decided(theirs, ended, counted) is not False, f"{prefix!r} ends as {ended!r}, which lark refuses"


def decided(theirs: judge.Theirs, text: str, counted: Tally) -> bool | None:
    """What lark says of a text, or ``None``; counted."""
    try:
        expected: bool = theirs(text)
    except judge.TooLong:
        discard("lark does not end")
    except judge.Undecided as reason:
        counted.discard(str(reason))
        return None
    counted.keep()
    return expected


@unless_supported("lalr", "contextual")
@drawn(200)
@given(grammars())
def test_contextual(grammar: str) -> None:
    compare(grammar, "lalr", "contextual")


@unless_supported("lalr", "basic")
@drawn(200)
@given(grammars())
def test_basic(grammar: str) -> None:
    compare(grammar, "lalr", "basic")


@unless_supported("earley", "basic")
@drawn(150)
@given(grammars())
@example('start: "c" | "a" start "b" | B |\nB: "a"\nC.1: "a"\nD: "b"')  # "a" in a rule is a C
def test_basic_under_earley(grammar: str) -> None:
    compare(grammar, "earley", "basic")


@unless_supported("earley", "basic")
@drawn(150)
@given(grammars())
@example('start: x | y\nx: "a" z\ny: "a" z "b"\nz: z | "a" |')  # reductions in a circle
@example('start: x?\nx: x x | "a" | "b"')  # all ways to put brackets
def test_all_actions_of_tables(grammar: str) -> None:
    """With ``postlex``, Earley's parser is the tables of an LALR parser with all their actions."""
    compare(grammar, "earley", "basic", postlex=indenter.PythonIndenter())  # which finds no lines in these texts


@unless_supported("earley", "dynamic")
@drawn(250)
@given(grammars())
def test_dynamic(grammar: str) -> None:
    compare(grammar, "earley", "dynamic")


@unless_supported("earley", "dynamic_complete")
@drawn(250)
@given(grammars())
def test_dynamic_complete(grammar: str) -> None:
    compare(grammar, "earley", "dynamic_complete")


# The lexer reads each "B" as an "A", so that no list ends with a "B"; behind /[ab]+/, which takes
# all letters, no "A" can follow; and the first of two lists takes each "A", so that the second has none.
NO_ENDING = [
    ('start: A | A* B\nA: "a"\nB: "a"', "lalr", "basic"),
    ('start: A | A* B\nA: "a"\nB: "a"', "lalr", "contextual"),
    ('start: A | (A | /a+?b/)* B\nA: "a"\nB: "a"', "lalr", "contextual"),
    ('start: A | A* (/[ab]+/ A)+\nA: "a"', "earley", "dynamic"),
    ('start: A | A* B+\nA: "a"\nB: "a"', "lalr", "contextual"),  # behind a "B", a "B" could be read
    ('start: (x | A)+\nx: A x\nA: "a"', "lalr", "contextual"),  # an "x" has no texts
    ('start: A | A A x A\nx: x\nA: "a"', "lalr", "contextual"),
    ('start: A | list list\nlist: A+\nA: "a"', "lalr", "contextual"),
    ('start: A | whole list\nwhole: list\nlist: A+\nA: "a"', "lalr", "basic"),
    # behind an "A" each "B" is read as a "D", so that a list that is begun by two or more never ends
    ('start: list | C B\nlist: A list B | A | A D list\nA: "a"\nB: "d"\nC: "c"\nD.2: "d"', "lalr", "contextual"),
]


@pytest.mark.parametrize(("grammar", "parser", "lexer"), NO_ENDING)
def test_branches_without_an_ending(grammar: str, parser: Any, lexer: Any) -> None:
    """Where some of what the rules allow has an ending and the rest has none, only the former is allowed."""
    ours = Ours(gs.lark(grammar, parser=parser, lexer=lexer))
    assert ours.takes("a")
    assert not ours.read("aa") and not ours.read("ab")


# Where lark resolves a conflict by shifting, or its lexer never reads what the tables expect there, a rule may never be
# completed on some stacks; and where ignored text is read depends on the lexer's mode.
STARVED = [
    ('start: y z\nz: y D C+\ny: z | C\nC: "a"\nD: "b"', "contextual"),
    ('start: z B\nz: B* | E\nB: "a"\nE: "c"', "contextual"),
    ('start: z\nz: x E\ny: z\nx: y x | D\nD: "a"\nE: "b"', "basic"),  # "y x" is reduced nowhere
    ('start: x* E\nx: A | A E B\nA: "c"\nB: "a"\nE.1: "a"', "basic"),
    ('start: x w | x E\nx: D | y\ny: z | w\nz: E\nw: (E E)* A\nA: "a"\nD.2: "a"\nE: "b"', "basic"),
    ('start: x B | D C\nx: E\nB: "c"\nC: "c"\nD: "aa"\nE: "abc"', "basic"),  # no "C" is read behind the nearest end
    ('start: z z | C\nz: x w\nx: D\nw: x B |\nB: "a"\nC: "b"\nD: "c"\n%ignore B', "contextual"),
    ('start: w |\nw: (E D)+ A\nA: "a"\nD: "c"\nE.2: "c"\n%ignore /ca/', "contextual"),
    ('start: y A | w y\nw: D\ny: B | start C\nA: "a"\nB: /[ab]+/\nC.2: "c"\nD: "a"\n%ignore /ca/', "contextual"),
]


@pytest.mark.parametrize(("grammar", "lexer"), STARVED)
def test_rules_that_are_never_completed(grammar: str, lexer: str) -> None:
    compare(grammar, "lalr", lexer)


def test_terminals_are_read_before_rules_are_complete() -> None:
    """Behind the second ``A`` a ``B`` is read as an ``A``, as behind the first: both stand in one state."""
    ours = Ours(gs.lark('start: x~2 B |\nx: A\nA: "a"\nB: "a"', parser="lalr", lexer="contextual"))
    assert ours.takes("") and not ours.read("a")


# What is ignored character by character is read in runs, where nothing else is ever tried between two of them.
RUNS = [
    'start: (B | C)+\nB: "b"\nC: "c"\n%ignore "a"',
    'start: (B | C)+\nB: "b"\nC: "ca"\n%ignore /[ab]/',
    'start: (A | C)+\nA.2: "aab"\nC: "c"\n%ignore "a"',  # A may begin within a run
    'start: (A | C)+\nA.2: /(?<=a)ab/\nC: "c"\n%ignore /a/',  # behind the first "a" only
    'start: B A | C\nA.2: "ab"\nB: "b"\nC: "c"\n%ignore "a"',  # with "contextual", only behind B
    'start: B A | C\nA: "ab"\nB: "b"\nC: "c"\n%ignore /a/\n%ignore "c"',
]


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
@pytest.mark.parametrize("grammar", RUNS)
def test_runs_of_what_is_ignored(grammar: str, lexer: str) -> None:
    compare(grammar, "lalr", lexer)


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_runs_are_lexemes(lexer: str) -> None:
    single, run = (
        gs.lark(f"start: WORD+\nWORD: /[ac]+/\n%ignore {ignored}", parser="lalr", lexer=lexer)
        for ignored in ['"b"', "/b+/"]
    )
    assert single.to_bytes() == run.to_bytes()
