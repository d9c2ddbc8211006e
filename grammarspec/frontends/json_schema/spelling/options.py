"""What a schema leaves open about the texts of values: the options are checked here and kept in one record.

The options of :func:`grammarspec.json_schema` go in (layout, escapes, numbers), and a :class:`Spelling` comes out. Tool
formats whose arguments are not quite JSON make one with a :class:`Notation` of their own. Records are hashable, so that
what all grammars of one spelling share is made once (:mod:`.prelude`).
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from grammarspec._compiler import Grammar as Ir
from grammarspec.frontends.json_schema.spelling.whitespace import BLANKS, check_whitespace

__all__ = [
    "JSON", "Element", "Elements", "Escapes", "Notation", "Numbers", "Quotes", "Spelling", "Whitespace", "spelling",
]  # fmt: skip

Whitespace = Literal["flexible", "compact", "pretty"]
Escapes = Literal["any", "minimal"]
Numbers = Literal["any", "plain"]

_MAX_INDENT = 32
_ITEM, _KEY = re.compile(rf"[{BLANKS}]*,[{BLANKS}]*"), re.compile(rf"[{BLANKS}]*:[{BLANKS}]*")


class Quotes(NamedTuple):
    """What encloses strings in a notation whose strings are not JSON's: nothing in them is escaped.

    Attributes:
        mark: the language of what stands before and after a string.
        excluded: a text that no string holds, so that the end of a string can be told.
    """

    mark: Ir
    excluded: str


class Notation(NamedTuple):
    """How constants, strings and names are written: as in JSON, or in a notation that differs in these only.

    Attributes:
        null: how ``null`` is written.
        false: how ``false`` is written.
        true: how ``true`` is written.
        quotes: what encloses strings; ``None``: they are JSON's strings.
        bare_names: the names of members are without quotation marks.
        excluded: texts that no string and no name holds, as it is written.
    """

    null: str = "null"
    false: str = "false"
    true: str = "true"
    quotes: Quotes | None = None
    bare_names: bool = False
    excluded: tuple[str, ...] = ()


JSON = Notation()


class Element(NamedTuple):
    """How values of some types are written as elements.

    Attributes:
        types: the types, as bits.
        form: whether a value is written as a text, which is not quoted; as JSON; or, if it is an object or an array, as
            the elements of its members or items.
        member: what stands before the value of a member, with ``$name`` for the member's name.
        item: what stands before an item of an array.
    """

    types: int
    form: Literal["text", "json", "elements"]
    member: str
    item: str = ""


class Elements(NamedTuple):
    """How objects are written as XML: an element for each member, with blanks between them as one likes.

    Attributes:
        kinds: the elements of the types of values; each type is in one of them.
        end: what stands behind the value of a member, with ``$name`` for the member's name, if it is written there.
        mark: the end, or the part of it that no text holds.
        item_end: what stands behind an item of an array.
        blanks: the most characters of whitespace in one place.
        special: names of special tokens, which stand for these where elements begin and end.
    """

    kinds: tuple[Element, ...]
    end: str
    mark: str
    item_end: str = ""
    blanks: int = 16
    special: tuple[str, ...] = ()


class Spelling(NamedTuple):
    """How values are spelled, whatever the schema.

    Attributes:
        separators: exactly what stands between members or items, and between a name and its value; ``None``: a comma
            and a colon with free whitespace.
        indent: what each level is indented by, every member and item on a line of its own; ``None``: no line breaks.
        blanks: a pattern of Python's ``re`` that free whitespace matches; ``None``: any, up to a bound.
        ascii: characters beyond ASCII are escaped everywhere.
        minimal: strings that no keyword constrains have one spelling per character, as all others have.
        plain: numbers have no exponents, and integers no fractions.
        notation: constants, strings and names.
        elements: how the outermost object is written, if not in this notation.
    """

    separators: tuple[str, str] | None = None
    indent: str | None = None
    blanks: re.Pattern[str] | None = None
    ascii: bool = False
    minimal: bool = False
    plain: bool = False
    notation: Notation = JSON
    elements: Elements | None = None


def spelling(
    whitespace: Whitespace | re.Pattern[str],
    indent: int | str | None,
    separators: tuple[str, str] | None,
    ensure_ascii: bool,
    escapes: Escapes,
    numbers: Numbers,
) -> Spelling:
    """The record of these options of :func:`grammarspec.json_schema`, which says what they mean.

    Raises:
        ValueError: an option cannot have such a value, or two contradict each other.
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
        check_whitespace(blanks)
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
    """Check that separators are a comma and a colon, with whitespace or without."""
    match separators:
        case (str(item), str(key)) if _ITEM.fullmatch(item) and _KEY.fullmatch(key):
            return
    message = 'separators must be a comma and a colon, each with whitespace if one likes, as (", ", ": ")'
    raise ValueError(f"{message}, not {separators!r:.60}")
