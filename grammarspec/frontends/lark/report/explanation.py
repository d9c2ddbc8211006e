"""``gs.explain_lark``: whether a text belongs to a ``.lark`` grammar; if not, where it leaves it, and why.

The engine says behind which character no text of the grammar goes on, and with which characters one would. lark, which
reads the same text, says which terminals it expected, at the beginning of the lexeme that it could not take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any, Final, Unpack

from grammarspec.constraint import CancelToken, Limits
from grammarspec.errors import LimitExceeded
from grammarspec.frontends.lark import grammar_of
from grammarspec.frontends.lark.limits import check_expansion
from grammarspec.frontends.lark.loader import Source, read
from grammarspec.frontends.lark.opening import Opened, OpeningOptions, opened
from grammarspec.frontends.lark.report.naming import END, Names
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.reading import completed, departure
from grammarspec.positions import Position, excerpt

__all__ = ["Explanation", "explain_lark"]

_TOKEN: Final = 20
"""Steps of a character of a text that lark reads."""
_ITEM: Final = 60
"""Steps of an item of lark's Earley parser, about ten microseconds."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a text belongs to a grammar, and if not, why.

    Attributes:
        ok: whether it does. If so, all else is empty.
        message: what is wrong.
        line, column: where the text leaves the grammar, counted from 1; 0 if it does not.
        excerpt: the line of that place, with a caret below it.
        following: the characters that may stand there; ``"..."`` for those beyond ASCII.
        may_end: whether the text may end there.
        expected: the names of the terminals, and the strings, that lark expected; of an ambiguous place, of all parses.
        expected_at: the line and column from which on lark expected them: where the lexeme begins that is not taken.
        completed: the shortest text of the grammar that begins with what is right of this one.
    """

    ok: bool
    message: str = ""
    line: int = 0
    column: int = 0
    excerpt: str = ""
    following: tuple[str, ...] = ()
    may_end: bool = False
    expected: tuple[str, ...] = ()
    expected_at: tuple[int, int] = (0, 0)
    completed: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The explanation in JSON's types."""
        return asdict(self)

    def __str__(self) -> str:
        if self.ok:
            return "the text belongs to the grammar"
        lines = [f"{self.line}:{self.column}: {self.message}", self.excerpt]
        if self.expected:
            place = f" (at {self.expected_at[0]}:{self.expected_at[1]})" * (
                self.expected_at != (self.line, self.column)
            )
            lines.append(f"expected{place}: {', '.join(self.expected)}")
        return "\n".join([*lines, f"shortest way on: {self.completed}"])


def explain_lark(
    what: str | PathLike[str],
    text: str,
    *,
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
    **options: Unpack[OpeningOptions],
) -> Explanation:
    """Whether a text belongs to a ``.lark`` grammar; if not, where it leaves it, and what might stand there.

    Args:
        what: the grammar, as for :func:`grammarspec.check_lark`.
        text: the text.
        limits, cancel: as for :func:`grammarspec.lark`.
        options: those of :func:`grammarspec.lark`.

    Raises:
        OSError: the file cannot be read, or no grammar of the package has this name.
        UnicodeDecodeError: it is not UTF-8.
        GrammarError, MissingPackage, Cancelled, TypeError, ValueError: as :func:`grammarspec.lark`; or the grammar
            cannot be compiled.
    """
    if not isinstance(text, str):
        raise TypeError(f"explain_lark() takes the text to explain as a string, not {text!r:.60}")
    grammar, budget = opened(what, options), Budget(limits, cancel)
    node = grammar_of(grammar, budget).node
    found = departure(node, text)
    if found is None:
        return Explanation(True)
    position = Position.of(text, found.at, found.at + 1)
    expected, at = _expected(grammar, text, budget)
    if found.may_end and at == position[:2] and END not in expected:  # Earley's parser does not say that
        expected = (*expected, END)
    following = sorted({chr(byte) for byte in found.following if byte < 128})
    return Explanation(
        ok=False,
        message=found.message,
        line=position.line,
        column=position.column,
        excerpt=excerpt(text, position),
        following=(*following, *["..."][: any(byte >= 128 for byte in found.following)]),
        may_end=found.may_end,
        expected=expected,
        expected_at=at,
        completed=completed(node, text[: found.at]),
    )


def _expected(grammar: Opened, text: str, budget: Budget) -> tuple[tuple[str, ...], tuple[int, int]]:
    """What lark expected where it refuses a text, and the line and column; nothing, if it does not say that.

    Nor does it say it if it takes more than is left of the budget.
    """
    from lark.exceptions import LarkError, UnexpectedInput

    options, found = grammar.options, dict[int, set[str]]()
    try:
        source = read(grammar.text, grammar.file, options.folders, options.given)
        check_expansion(source.rules, budget, tables=options.parser == "lalr")
        parser = options.reader(grammar.text, grammar.file, source.grammar)
        if options.parser == "earley":
            _charge(parser.parser.parser, budget)
        for start in options.start:
            budget.spend(_TOKEN * len(text))
            try:
                parser.parse(text, start=start)
            except UnexpectedInput as error:
                offset = error.pos_in_stream
                at = offset if isinstance(offset, int) and offset >= 0 and not _at_end(error) else len(text)
                found.setdefault(at, set()).update(_names(error, source, parser))
            except (LarkError, RecursionError):  # of an Indenter
                continue
    except LimitExceeded:
        pass  # what was found before is told
    if not found:
        return (), (0, 0)
    at = max(found)
    position = Position.of(text, at, at + 1)
    return tuple(sorted(found[at])), (position.line, position.column)


def _charge(earley: Any, budget: Budget) -> None:
    """Have lark's Earley parser, whose time grows with the cube of the text, take its steps from a budget."""
    advance, waiting = earley.predict_and_complete, list[Counter[Any]]()

    def charged(place: int, to_scan: Any, columns: Any, *others: Any) -> None:
        advance(place, to_scan, columns, *others)
        waiting.append(Counter(item.expect for item in columns[place] if not item.is_complete))
        advanced = sum(waiting[item.start][item.s] for item in columns[place] if item.is_complete)
        budget.spend(_ITEM * (len(columns[place]) + advanced), "the text, as lark reads it")

    earley.predict_and_complete = charged


def _at_end(error: Any) -> bool:
    """Whether lark has read the text to its end, whose place it takes for that of the last token."""
    from lark.exceptions import UnexpectedEOF, UnexpectedToken

    return isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END")


def _names(error: Any, source: Source, parser: Any) -> Iterator[str]:
    """What an error of lark's says was expected."""
    going_on = getattr(error, "interactive_parser", None)
    known = getattr(error, "allowed", None) or getattr(error, "expected", None) or ()
    found = going_on.accepts() if going_on is not None else known
    names = Names(source, parser.terminals)
    yield from (names.of(str(getattr(one, "name", one))) for one in found if one not in source.ignored)
