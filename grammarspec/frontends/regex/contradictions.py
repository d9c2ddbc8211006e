"""Why no text matches a regular expression: its smallest part that contradicts itself.

A pattern that no text matches goes in; an error with the place of that part comes out. A part is tried by asking the
engine whether any text holds it: the part, with any text around it wherever the pattern goes on. In a sequence, parts
are left out from the right and then from the left, as long as no text matches what remains.
"""

from __future__ import annotations

import time
from typing import Final

from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.regex import tree
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.lower import lower
from grammarspec.frontends.regex.parser import Parser
from grammarspec.frontends.regex.tree import Node
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import over_bytes
from grammarspec.positions import where

__all__ = ["contradiction"]

_SECONDS: Final = 0.5
"""After which the smallest part so far is told."""


def contradiction(
    parser: Parser, what: str = "no text matches the regular expression", *, anywhere: bool = False
) -> Unsatisfiable:
    """The error that says why no text matches a pattern.

    Args:
        parser: one that has read nothing of the pattern yet.
        what: what the error begins with.
        anywhere: the pattern is searched for in a text, and need not match the whole.

    Raises:
        GrammarError: the pattern cannot be read.
    """
    root = parser.parse()
    parser.spans[id(root)] = (0, len(parser.text))
    found = _Search(parser).smallest([root], anywhere, anywhere)
    begin, end = parser.spans[id(found[0])][0], parser.spans[id(found[-1])][1]
    return Unsatisfiable(f"{what}: {_reason(found, parser)}", where(parser.text, begin, max(end, begin + 1)))


class _Search:
    """The search in one pattern."""

    def __init__(self, parser: Parser) -> None:
        self.spans = parser.spans
        self.until = time.monotonic() + _SECONDS

    def smallest(self, parts: list[Node], before: bool, after: bool) -> list[Node]:
        """Neighbours in a sequence that no text matches, as few and as small as can be found.

        Args:
            parts: neighbours that no text matches.
            before, after: whether any text may stand before or after them.
        """
        last, first = len(parts), 0
        while last > 1 and self.is_empty(parts[: last - 1], before, True):
            last, after = last - 1, True
        while first < last - 1 and self.is_empty(parts[first + 1 : last], True, after):
            first, before = first + 1, True
        found = parts[first:last]
        if len(found) > 1:
            return found
        match found[0]:
            case tree.Sequence(inner):
                within = list(inner)
            case tree.Alternation((branch, *_)):
                within = [branch]
            case tree.Repeat(body, least, _) if least and self.is_empty([body], True, True):
                within, before, after = [body], True, True
            case _:
                return found
        known = all(id(part) in self.spans for part in within)
        return self.smallest(within, before, after) if within and known else found

    def is_empty(self, parts: list[Node], before: bool, after: bool) -> bool:
        """Whether no text matches these parts; not, if that cannot be told or the time is used up."""
        if time.monotonic() > self.until:
            return False
        whole = tree.Sequence((*[tree.ANY_TEXT] * before, *parts, *[tree.ANY_TEXT] * after))
        builder = GrammarBuilder()
        try:
            over_bytes(builder.build(builder.terminal(lower(whole, builder, PlainText(builder)))))
        except Unsatisfiable:
            return True
        except (GrammarError, RecursionError):
            pass
        return False


def _reason(found: list[Node], parser: Parser) -> str:
    """Why no text matches these parts."""
    asserting = [parser.text[slice(*parser.spans[id(part)])] for part in found if part.asserts]
    if not asserting:
        return "no character is in this class" if isinstance(found[0], tree.Chars) else "nothing matches this"
    listed = ", ".join(asserting[:-1]) + f" and {asserting[-1]}" if len(asserting) > 1 else asserting[0]
    if len(asserting) == len(found):
        return f"{listed} contradict each other" if len(found) > 1 else f"{listed} can never hold here"
    return f"{listed} {'contradicts' if len(asserting) == 1 else 'contradict'} what stands beside it"
