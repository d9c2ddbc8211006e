"""The choices that a schema leaves open: layout, escapes, numbers. Checked here, and kept in one record.

The record is hashable: grammars that are spelled alike share what they begin with (:mod:`.prelude`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.regex import regex
from grammarspec.grammars.expressions import Grammar

__all__ = ["BLANKS", "JSON", "Escapes", "Notation", "Numbers", "Quotes", "Spelling", "Whitespace", "spelling"]

Whitespace = Literal["flexible", "compact", "pretty"]
Escapes = Literal["any", "minimal"]
Numbers = Literal["any", "plain"]

BLANKS = " \t\n\r"
"""JSON's whitespace (RFC 8259, section 2)."""
_MAX_INDENT = 32
_ITEM, _KEY = re.compile(rf"[{BLANKS}]*,[{BLANKS}]*"), re.compile(rf"[{BLANKS}]*:[{BLANKS}]*")


@dataclass(frozen=True, slots=True)
class Quotes:
    """What strings are written in, if not as JSON has it: their characters as they are, nothing escaped.

    Attributes:
        mark: what a string begins and ends with.
        excluded: what no string holds, so that its end is told.
    """

    mark: Grammar[str]
    excluded: str


@dataclass(frozen=True, slots=True)
class Notation:
    """How constants, strings and names are written: as in JSON, or in a notation that differs in these only.

    Attributes:
        null, false, true: the constants.
        quotes: of strings; ``None``: JSON's strings.
        bare_names: the names of members are without quotation marks.
    """

    null: str = "null"
    false: str = "false"
    true: str = "true"
    quotes: Quotes | None = None
    bare_names: bool = False


JSON = Notation()


@dataclass(frozen=True, slots=True)
class Spelling:
    """How values are spelled, whatever the schema.

    Attributes:
        separators: what stands between members or items, and between a name and its value, exactly; ``None``: a comma
            and a colon with free whitespace.
        indent: what each level is indented by, every member and item on a line of its own; ``None``: no line breaks.
        blanks: the free whitespace, as a Python pattern; ``None``: any, up to a limit.
        ascii: characters beyond ASCII are escaped everywhere.
        minimal: free strings are spelled as all others, one spelling per character.
        plain: no exponents, and no fractions of integers.
        notation: constants, strings and names.
    """

    separators: tuple[str, str] | None = None
    indent: str | None = None
    blanks: re.Pattern[str] | None = None
    ascii: bool = False
    minimal: bool = False
    plain: bool = False
    notation: Notation = JSON


def spelling(
    whitespace: Whitespace | re.Pattern[str],
    indent: int | str | None,
    separators: tuple[str, str] | None,
    ensure_ascii: bool,
    escapes: Escapes,
    numbers: Numbers,
) -> Spelling:
    """The record of these options of :func:`grammarspec.json_schema`.

    Raises:
        ValueError: an option's value is none of its kind, or two contradict each other.
        GrammarError: the pattern of whitespace is one that no automaton can decide.
    """
    if escapes not in ("any", "minimal"):
        raise ValueError(f'escapes must be "any" or "minimal", not {escapes!r}')
    if numbers not in ("any", "plain"):
        raise ValueError(f'numbers must be "any" or "plain", not {numbers!r}')
    if not isinstance(ensure_ascii, bool):
        raise ValueError(f"ensure_ascii must be True or False, not {ensure_ascii!r}")
    blanks = None
    if isinstance(whitespace, re.Pattern):
        if indent is not None or separators is not None:
            raise ValueError("whitespace cannot be a pattern where indent or separators say what is written")
        blanks = whitespace
        _check_blanks(blanks)
    elif whitespace not in ("flexible", "compact", "pretty"):
        message = f'whitespace must be "flexible", "compact", "pretty" or a compiled pattern, not {whitespace!r:.60}'
        raise ValueError(message)
    elif whitespace == "compact" and indent is not None:
        raise ValueError('whitespace="compact" has no line breaks to indent; use whitespace="pretty"')
    unit = _unit(2 if indent is None and whitespace == "pretty" else indent)
    if separators is not None:
        _check_separators(separators)
        separators = (separators[0], separators[1])
    elif unit is not None:
        separators = (",", ": ")
    elif whitespace == "compact":
        separators = (",", ":")
    return Spelling(separators, unit, blanks, ensure_ascii, escapes == "minimal", numbers == "plain")


def _unit(indent: int | str | None) -> str | None:
    """The indentation of one level."""
    if indent is None:
        return None
    if isinstance(indent, str) and not indent.strip(BLANKS) and len(indent) <= _MAX_INDENT:
        return indent
    if isinstance(indent, int) and not isinstance(indent, bool) and 0 <= indent <= _MAX_INDENT:
        return " " * indent
    raise ValueError(
        f"indent must be a number of spaces from 0 to {_MAX_INDENT}, or at most so many characters of whitespace, "
        f"not {indent!r:.60}"
    )


def _check_separators(separators: object) -> None:
    match separators:
        case (str(item), str(key)) if _ITEM.fullmatch(item) and _KEY.fullmatch(key):
            return
    message = 'separators must be a comma and a colon, each with whitespace if one likes, as (", ", ": ")'
    raise ValueError(f"{message}, not {separators!r:.60}")


def _check_blanks(pattern: re.Pattern[str]) -> None:
    """Some text of JSON's whitespace matches."""
    from grammarspec.constraint import compile
    from grammarspec.vocabulary import Vocabulary

    if not isinstance(pattern.pattern, str):
        raise ValueError(f"whitespace must be a pattern of text, not of bytes: {pattern.pattern!r:.60}")
    try:
        grammar = regex(pattern.pattern, flags=pattern.flags)
        compile(grammar, Vocabulary.from_tokens([character.encode() for character in BLANKS], [len(BLANKS)]))
    except Unsatisfiable:
        raise ValueError(f"whitespace: no JSON whitespace matches {pattern.pattern!r:.60}") from None
    except GrammarError as error:
        raise type(error)(f"whitespace: {error.message}", where=error.where, hint=error.hint) from None
