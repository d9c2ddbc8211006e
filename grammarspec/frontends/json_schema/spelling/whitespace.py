"""Free whitespace: where JSON allows it, between the tokens of a text (RFC 8259, section 2).

It is a node of the grammar builder: the usual whitespace, with a bound so that no model can write it for ever, or the
whitespace that a user's pattern matches.
"""

from __future__ import annotations

import re
from typing import Final

from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.regex.patterns import lower_pattern
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import over_bytes

__all__ = ["BLANKS", "bounded_whitespace", "check_whitespace", "whitespace_matching"]

BLANKS: Final = " \t\n\r"
"""JSON's whitespace."""

# Spaces or tabs on the line; or one line break and the indentation of the next line, of which the latter bound is the
# widest that `json.dumps(indent=4)` writes 30 levels deep.
_SPACES, _INDENT = 8, 120


def bounded_whitespace(builder: GrammarBuilder) -> int:
    """At most eight spaces and tabs, or a line break and at most 120 of them.

    One may stand before the line break, as ``json.dumps`` has it with ``indent`` and separators that end in a space.
    """
    b = builder
    blank = b.bytes_in(((0x20, 0x20), (0x09, 0x09)))
    line_break = b.seq(b.optional(b.literal(b"\r")), b.literal(b"\n"))
    return b.alt(b.repeat(blank, 0, _SPACES), b.seq(b.optional(blank), line_break, b.repeat(blank, 0, _INDENT)))


def whitespace_matching(builder: GrammarBuilder, pattern: re.Pattern[str]) -> int:
    """The texts of JSON's whitespace that a pattern of Python's ``re`` matches as a whole.

    Raises:
        GrammarError: the pattern is one that no automaton can decide.
    """
    blank = builder.bytes_in([(ord(character), ord(character)) for character in BLANKS])
    matching = lower_pattern(pattern.pattern, builder, flags=pattern.flags)
    return builder.terminal(builder.both(matching, builder.repeat(blank, 0, None)))


def check_whitespace(pattern: re.Pattern[str]) -> None:
    """Check that some text of JSON's whitespace matches a pattern.

    Raises:
        ValueError: none does, or it is a pattern of bytes.
        GrammarError: the pattern is one that no automaton can decide.
    """
    if not isinstance(pattern.pattern, str):
        raise ValueError(f"whitespace must be a pattern of text, not of bytes: {pattern.pattern!r:.60}")
    builder = GrammarBuilder()
    try:
        over_bytes(builder.build(whitespace_matching(builder, pattern)))
    except Unsatisfiable:
        raise ValueError(f"whitespace: no JSON whitespace matches {pattern.pattern!r:.60}") from None
    except GrammarError as error:
        raise type(error)(f"whitespace: {error.message}", where=error.where, hint=error.hint) from None
