"""JSON values in a schema: their types as bits, exact numbers, and when two are equal."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from grammarspec.errors import GrammarSyntaxError

__all__ = [
    "ALL_TYPES", "ARRAY", "BOOLEAN", "FALSE", "FRACTION", "INTEGER", "NULL", "NUMBER", "OBJECT", "STRING", "TRUE",
    "TYPE_BITS", "Bound", "Number", "canonical", "check_names", "is_finite", "is_whole", "type_of",
]  # fmt: skip

NULL, FALSE, TRUE, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << bit for bit in range(8))
BOOLEAN, NUMBER, ALL_TYPES = FALSE | TRUE, INTEGER | FRACTION, 255

TYPE_BITS: Final = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": INTEGER,
    "number": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}

Number = int | Decimal
Bound = tuple[Number, bool]
"""A bound and whether it is exclusive."""


def is_finite(value: float | Decimal) -> bool:
    """Whether a number is neither infinite nor not-a-number."""
    return Decimal(value).is_finite()


def is_whole(value: Number | float) -> bool:
    """Whether the finite number has no fractional part (for JSON Schema, 1.0 is an integer)."""
    return isinstance(value, int) or Decimal(value) == Decimal(value).to_integral_value()


def type_of(value: Any) -> int:
    """The type bit of a constant.

    Raises:
        GrammarSyntaxError: it is no JSON value.
    """
    match value:
        case str():
            return STRING
        case None:
            return NULL
        case True:
            return TRUE
        case False:
            return FALSE
        case int():
            return INTEGER
        case float() | Decimal():
            if is_finite(value):
                return INTEGER if is_whole(value) else FRACTION
        case dict():
            return OBJECT
        case list():
            return ARRAY
    raise GrammarSyntaxError(f"{value!r:.60} is no JSON value")


def check_names(value: dict[Any, Any]) -> None:
    """Check that the keys of a constant are names of members.

    Raises:
        GrammarSyntaxError: one is no text.
    """
    for name in value:
        if not isinstance(name, str):
            raise GrammarSyntaxError(f"{name!r:.60} is no name of a JSON object's member")


def canonical(value: Any) -> Any:
    """A hashable form of a constant, the same for constants that are equal in JSON Schema.

    So ``1`` and ``1.0`` have the same form, and the order of members plays no part.

    Raises:
        GrammarSyntaxError: the constant is no JSON value.
    """
    match value:
        case str():
            return value
        case None | True | False:
            return (value,)  # a tuple, as True == 1 and False == 0 in Python
        case int() | Decimal():
            return value  # 1 == Decimal("1.0"), with equal hashes
        case float():
            return Decimal(repr(value))
        case list():
            return ("[", *map(canonical, value))
        case dict():
            return ("{", frozenset((key, canonical(member)) for key, member in value.items()))
    raise GrammarSyntaxError(f"{value!r:.60} is no JSON value")
