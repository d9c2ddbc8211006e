"""Primitives as grammars, ``gs.types``: numbers, dates, addresses and the like, as they are written in a text.

``gs.grammar(T)`` describes the *JSON* of a type's values, where a date is in quotes; the grammars here are made to be
parts of other text: ``"on " + gs.types.date()``. Only :func:`string` has quotes, which mark where it ends;
:func:`grammarspec.text` has none. The value of a text is of the Python type: ``gs.types.date().parse("2024-02-29")`` is
a ``datetime.date``.
"""

from __future__ import annotations

import datetime as _datetime
import json
from collections.abc import Callable
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeVar
from uuid import UUID

from grammarspec.frontends.types.dates import DATE, TIME, ZONE, dates
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.expressions import Grammar
from grammarspec.imports import importing

__all__ = [
    "boolean",
    "date",
    "datetime",
    "email",
    "hostname",
    "integer",
    "ipv4",
    "ipv6",
    "number",
    "string",
    "time",
    "uri",
    "uuid",
]

T = TypeVar("T")


def integer(
    *,
    ge: int | None = None,
    gt: int | None = None,
    le: int | None = None,
    lt: int | None = None,
    multiple_of: int | None = None,
) -> Grammar[int]:
    """Integers in decimal, such as ``-12``, within bounds.

    Args:
        ge, gt, le, lt: bounds: greater or equal, greater, less or equal, less.
        multiple_of: only multiples of this number.

    Raises:
        GrammarSyntaxError: a bound is no number, or ``multiple_of`` is not above 0.
        UnsupportedFeature: ``multiple_of`` needs too large an automaton.
        LimitExceeded: a bound has more than 400 digits.
    """
    bounds = {"ge": ge, "gt": gt, "le": le, "lt": lt, "multiple_of": multiple_of}
    return _json("integer", {"type": "integer"}, bounds, int)


def number(
    *,
    ge: float | Decimal | None = None,
    gt: float | Decimal | None = None,
    le: float | Decimal | None = None,
    lt: float | Decimal | None = None,
    multiple_of: float | Decimal | None = None,
) -> Grammar[float]:
    """Numbers in decimal, such as ``-1.5`` or ``2``, without exponents, within bounds as of :func:`integer`.

    Raises:
        GrammarSyntaxError, UnsupportedFeature, LimitExceeded: as :func:`integer`.
    """
    bounds = {"ge": ge, "gt": gt, "le": le, "lt": lt, "multiple_of": multiple_of}
    return _json("number", {"type": "number"}, bounds, float)


def boolean() -> Grammar[bool]:
    """``true`` or ``false``, as in JSON."""
    return _json("boolean", {"type": "boolean"}, {})


def string(*, min_length: int | None = None, max_length: int | None = None, pattern: str | None = None) -> Grammar[str]:
    """A string in quotes, with JSON's escapes; means what is between the quotes.

    Args:
        min_length, max_length: in code points.
        pattern: a regular expression of ECMA-262, which matches somewhere in the string unless it says ``^`` and ``$``.

    Raises:
        GrammarSyntaxError: the pattern is malformed, or a length is no natural number.
        UnsupportedFeature: the pattern uses what no automaton can decide.
        LimitExceeded: a length or a count of the pattern is too large, or its groups are nested too deeply.
    """
    return _json("string", {"type": "string"}, {"min_length": min_length, "max_length": max_length, "pattern": pattern})


def date(
    *,
    ge: _datetime.date | None = None,
    gt: _datetime.date | None = None,
    le: _datetime.date | None = None,
    lt: _datetime.date | None = None,
) -> Grammar[_datetime.date]:
    """Dates of the calendar, such as ``2024-02-29``, within bounds.

    Raises:
        TypeError: a bound is no date, or one with a time.
    """
    bounds = {"ge": ge, "gt": gt, "le": le, "lt": lt}
    return _regex("date", dates(**bounds), bounds, _datetime.date.fromisoformat)


def time(*, aware: bool | None = None) -> Grammar[_datetime.time]:
    """Times such as ``23:59:59`` and ``12:00:00.5+01:00``.

    Args:
        aware: with a time zone (``Z`` or an offset), or without; by default both may be written.
    """
    return _regex("time", TIME + _zone(aware), {"aware": aware}, _datetime.time.fromisoformat)


def datetime(*, aware: bool | None = None) -> Grammar[_datetime.datetime]:
    """Dates and times such as ``2024-02-29T12:00:00Z``; ``aware`` as of :func:`time`."""
    return _regex("datetime", f"{DATE}T{TIME}{_zone(aware)}", {"aware": aware}, _datetime.datetime.fromisoformat)


def uuid() -> Grammar[UUID]:
    """UUIDs such as ``123e4567-e89b-12d3-a456-426614174000`` (RFC 4122)."""
    return _format("uuid", UUID)


def ipv4() -> Grammar[IPv4Address]:
    """IPv4 addresses such as ``127.0.0.1``."""
    return _format("ipv4", IPv4Address)


def ipv6() -> Grammar[IPv6Address]:
    """IPv6 addresses such as ``::1`` (RFC 4291)."""
    return _format("ipv6", IPv6Address)


def email() -> Grammar[str]:
    """Mail addresses (RFC 5321)."""
    return _format("email")


def hostname() -> Grammar[str]:
    """Names of hosts (RFC 1123)."""
    return _format("hostname")


def uri() -> Grammar[str]:
    """URIs with their scheme, such as ``https://example.org/a?b`` (RFC 3986)."""
    return _format("uri")


_KEYWORDS = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
    "min_length": "minLength", "max_length": "maxLength", "pattern": "pattern",
}  # fmt: skip


def _json(
    name: str, schema: dict[str, Any], options: dict[str, Any], read: Callable[[str], T] = json.loads
) -> Grammar[T]:
    """The JSON of a schema with the keywords of these options; ``read`` makes a value of a text."""
    with importing:
        from grammarspec.frontends.json_schema import json_schema

    asked = {_KEYWORDS[option]: value for option, value in options.items() if value is not None}
    return _named(name, options, json_schema(schema | asked, numbers="plain"), read)


def _regex(name: str, pattern: str, options: dict[str, Any], read: Callable[[str], T]) -> Grammar[T]:
    """The texts that match a pattern; ``read`` makes a value of a text."""
    with importing:
        from grammarspec.frontends.regex import regex

    return _named(name, options, regex(pattern), read)


def _format(name: str, read: Callable[[str], T] | None = None) -> Grammar[T]:
    """A format of JSON Schema, in plain text: nothing is quoted or escaped."""
    with importing:
        from grammarspec.frontends.json_schema.formats.table import Formats
        from grammarspec.frontends.regex import PlainText

    builder = GrammarBuilder()
    node = Formats(builder, PlainText(builder)).inside(name)
    return _named(name, {}, Grammar(builder.build(builder.terminal(node))), read)


def _named(name: str, options: dict[str, Any], grammar: Grammar[Any], read: Callable[[str], T] | None) -> Grammar[T]:
    """A grammar with the same language, which is read by ``read`` and whose ``repr`` is a call of this module."""
    said = ", ".join(f"{option}={value!r}" for option, value in options.items() if value is not None)
    return Grammar(grammar.ir, read=read, call=f"gs.types.{name}({said})")


def _zone(aware: bool | None) -> str:
    return f"{ZONE}?" if aware is None else ZONE if aware else ""
