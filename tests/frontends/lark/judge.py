"""lark and grammarspec, side by side: do they take the same texts?

A grammar goes in, with the options of ``lark.Lark``, and inputs; counts of verdicts that agree come out, and the texts
on which the two differ. Texts are the inputs themselves, mutations of them, and samples of our grammar: a sample that
lark refuses is a text that we should never have generated.

lark's verdict is whether ``Lark.parse`` returns. It is no verdict at all where lark fails in another way than by
refusing the text, or takes longer than ``SECONDS``. What was met of lark 1.3.1:

* A bug: ``start: "a" "c"?`` with ``%ignore "c"`` and ``parser="earley"`` is ``RuntimeError: Earley should not generate
  multiple start symbol items`` for ``ac``. So it is wherever the end of a text can be ignored as well as matched, and
  the rule ``start`` has ended before it. There is no verdict.
* ``parser="lalr"`` refuses grammars with reduce/reduce conflicts. Shift/reduce conflicts are shifts without a word,
  which takes texts from the language: with ``start: a "x"`` and ``a: "y" ["x"]``, ``yx`` is refused.
* A terminal whose expression can be empty is a ``LexError`` for the lexers ``basic`` and ``contextual`` and a
  ``GrammarError`` for those of Earley.
* Options and repetitions are multiplied out, and what is then there twice is refused (``Rules defined twice``) but for
  empty rules; equal alternatives as they are written are not.
* Terminals of one priority, greatest width and length of expression are tried in the order of their names, those of
  anonymous regular expressions (``__ANON_3``) being numbered as they are met.
* An ``Indenter`` refuses texts by ``DedentError``, which is no ``UnexpectedInput``; other classes for ``postlex`` may
  raise anything for texts that make no sense. There is no verdict then.
* Earley takes seconds for a few thousand characters.
"""

from __future__ import annotations

import random
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import lark
from lark.indenter import DedentError

import grammarspec as gs
from grammarspec.frontends.lark.options import LarkOptions

__all__ = [
    "KINDS",
    "SECONDS",
    "Score",
    "Theirs",
    "TooLong",
    "Undecided",
    "judge",
    "mutations",
    "open_ours",
    "open_theirs",
    "our_options",
    "samples",
    "shrunk",
]

SECONDS = 5.0
"""After which one verdict of either side, or one sample, is given up."""

KINDS = ("real", "mutated", "sampled")
"""Where texts come from."""

OF_TREES = frozenset(
    {
        "propagate_positions",
        "maybe_placeholders",
        "keep_all_tokens",
        "ambiguity",
        "tree_class",
        "debug",
        "regex",
        "strict",
        "cache",
    }
)
"""Options of lark that make no difference to which texts a grammar has, once it loads."""


class Undecided(Exception):
    """There is no verdict."""


class TooLong(Undecided):
    """There is no verdict in the time that is given for one."""


# ---------------------------------------------------------------------- the two sides
class Theirs:
    """Membership by lark."""

    def __init__(self, parser: lark.Lark, seconds: float | None = None) -> None:
        self.parser = parser
        self.seconds = SECONDS if seconds is None else seconds

    def __call__(self, text: str) -> bool:
        """Whether lark takes a text.

        Raises:
            Undecided: lark fails, or takes too long.
        """
        try:
            with within(self.seconds):
                self.parser.parse(text)
        except (lark.exceptions.UnexpectedInput, DedentError):
            return False
        except Undecided:
            raise
        except Exception as error:
            raise Undecided(f"lark: {type(error).__name__}") from error
        return True

    def takes(self, text: str) -> bool:
        """Whether lark takes a text; not if there is no verdict."""
        try:
            return self(text)
        except Undecided:
            return False


def open_theirs(source: str | Path, options: Mapping[str, Any], seconds: float | None = None) -> Theirs:
    """A grammar, opened by lark, which has some seconds for each verdict.

    Raises:
        LarkError, ValueError: lark rejects the grammar or the options.
    """
    # With interegular, lark takes up to seconds to log which terminals collide.
    with patch("lark.lexer.has_interegular", bool(options.get("strict"))):
        if isinstance(source, str):
            return Theirs(lark.Lark(source, **options), seconds)
        return Theirs(lark.Lark.open(str(source), **options), seconds)


def our_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of :func:`gs.lark` that mean what those of lark mean.

    Raises:
        UnsupportedFeature: there is none for one that makes a difference.
    """
    known = {*signature(gs.lark).parameters, *LarkOptions.__annotations__}
    given = {name: value for name, value in options.items() if name not in OF_TREES}
    unknown = sorted(name for name, value in given.items() if name not in known and value is not None)
    if unknown:
        raise gs.UnsupportedFeature(f"there is no option {', '.join(unknown)}")
    parser = given.get("parser", "earley")
    lexer = given.get("lexer", "auto")
    if lexer == "auto":  # as Lark.__init__ has it
        without_lexer = "dynamic" if given.get("postlex") is None else "basic"
        lexer = {"lalr": "contextual", "earley": without_lexer}.get(parser, "basic")
    return {**given, "parser": parser, "lexer": lexer}


def open_ours(source: str | Path, options: Mapping[str, Any]) -> gs.Grammar[str]:
    """A grammar, opened by grammarspec with lark's options.

    Raises:
        GrammarError: it is refused, or there is no such option.
    """
    ours = our_options(options)
    return gs.lark(source, **ours) if isinstance(source, str) else gs.load(source, **ours)


def _is_called_back(frame: FrameType | None) -> bool:
    """Whether what runs is Hypothesis's callback around collections of garbage, or pytest's for what is raised there.

    What is raised in them is lost, or fails the test.
    """
    while frame is not None:
        code = frame.f_code
        if code.co_name == "gc_callback" or Path(code.co_filename).name == "unraisableexception.py":
            return True
        frame = frame.f_back
    return False


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """See that what is done here takes no longer.

    Raises:
        TooLong: it does.
    """

    def late(number: int, frame: FrameType | None) -> None:
        if not _is_called_back(frame):
            raise TooLong(f"longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    # again and again: it may come in a callback, and what is raised in a destructor is lost
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds / 10)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---------------------------------------------------------------------- texts
_TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
_BLANKS = re.compile(r"\s+")


def mutations(texts: Sequence[str], count: int, seed: int) -> Iterator[str]:
    """Texts that are not quite these: characters and tokens that are left out, put in, swapped, or glued together."""
    rng = random.Random(seed)
    texts = [text for text in texts if text]
    characters = sorted(set("".join(texts)) | {" ", "\n", "a", "0", '"', "é"})
    for _ in range(count if texts else 0):
        text = rng.choice(texts)
        for _ in range(rng.choice((1, 1, 1, 2))):
            text = rng.choice(_MUTATIONS)(text, characters, rng)
        yield text


def _delete(text: str, characters: Sequence[str], rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + text[at + 1 :]


def _insert(text: str, characters: Sequence[str], rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(characters) + text[at:]


def _replace(text: str, characters: Sequence[str], rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(characters) + text[at + 1 :]


def _swap(text: str, characters: Sequence[str], rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]


def _delete_token(text: str, characters: Sequence[str], rng: random.Random) -> str:
    tokens = _TOKENS.findall(text)
    at = rng.randrange(len(tokens) + 1)
    return "".join(tokens[:at] + tokens[at + 1 :])


def _swap_tokens(text: str, characters: Sequence[str], rng: random.Random) -> str:
    tokens = _TOKENS.findall(text)
    at = rng.randrange(len(tokens) + 1)
    return "".join(tokens[:at] + tokens[at : at + 2][::-1] + tokens[at + 2 :])


def _repeat_token(text: str, characters: Sequence[str], rng: random.Random) -> str:
    tokens = _TOKENS.findall(text)
    at = rng.randrange(len(tokens) + 1)
    return "".join(tokens[: at + 1] + tokens[at:])


def _glue(text: str, characters: Sequence[str], rng: random.Random) -> str:
    blanks = [*_BLANKS.finditer(text)]
    if not blanks:
        return _delete(text, characters, rng)
    gone = rng.choice(blanks)
    return text[: gone.start()] + text[gone.end() :]


_MUTATIONS = (_delete, _insert, _replace, _swap, _delete_token, _swap_tokens, _repeat_token, _glue, _glue)


def shrunk(text: str, differs: Callable[[str], bool], trials: int = 300) -> str:
    """A smaller text of which the same is true: parts are left out while it stays so."""
    size = max(len(text) // 2, 1)
    while size and trials > 0:
        at, found = 0, False
        while at < len(text) and trials > 0:
            smaller, trials = text[:at] + text[at + size :], trials - 1
            if differs(smaller):
                text, found = smaller, True
            else:
                at += size
        size = size if found and size == 1 else size // 2
    return text


# ---------------------------------------------------------------------- the comparison
@dataclass
class Score:
    """How the verdicts on a grammar's texts compare."""

    agreed: Counter[str] = field(default_factory=Counter)
    """Verdicts that agree, by kind."""
    members: Counter[str] = field(default_factory=Counter)
    """Those of them that say the text belongs to the grammar."""
    undecided: Counter[str] = field(default_factory=Counter)
    """Texts without a verdict, by reason."""
    differing: list[tuple[str, str, bool]] = field(default_factory=list)
    """The kind of a text, the text, and whether lark takes it and we do not."""

    @property
    def smallest(self) -> tuple[str, str, bool] | None:
        """The shortest text on which verdicts differ."""
        return min(self.differing, key=lambda found: len(found[1]), default=None)


def judge(ours: Callable[[str], bool], theirs: Callable[[str], bool], texts: Mapping[str, Iterable[str]]) -> Score:
    """Compare the verdicts on texts; those on which they differ are shrunk.

    Args:
        texts: by kind. Duplicates are left out.
    """
    score, seen = Score(), set[str]()
    for kind, some in texts.items():
        for text in some:
            if text in seen:
                continue
            seen.add(text)
            try:
                expected, found = theirs(text), _decided(ours, text)
            except Undecided as reason:
                score.undecided[str(reason)] += 1
                continue
            if expected != found:
                score.differing.append((kind, text, expected))
            else:
                score.agreed[kind] += 1
                score.members[kind] += expected
    if score.smallest is not None:
        kind, text, expected = score.smallest
        score.differing.append((kind, shrunk(text, lambda smaller: _differ(ours, theirs, smaller, expected)), expected))
        score.differing.remove((kind, text, expected))
    return score


def samples(grammar: gs.Grammar[Any], count: int, max_bytes: int) -> Iterator[str]:
    """Texts that are drawn from our grammar, some of them short."""
    for seed in range(count):
        try:
            with within(SECONDS):
                text = grammar.sample(seed, max_bytes=max_bytes if seed % 2 else max_bytes // 8)
        except Undecided:
            return
        yield text


def _decided(ours: Callable[[str], bool], text: str) -> bool:
    try:
        with within(SECONDS):
            return ours(text)
    except gs.GrammarError as error:
        raise Undecided(f"grammarspec: {type(error).__name__}") from error


def _differ(ours: Callable[[str], bool], theirs: Callable[[str], bool], text: str, expected: bool) -> bool:
    try:
        return theirs(text) == expected and _decided(ours, text) != expected
    except Undecided:
        return False
