"""Patterns of dates and times that Python's ``datetime`` reads, and patterns of the dates between bounds.

These are the texts of ISO 8601 that both ``fromisoformat`` and Pydantic take: years from 0001 on, days that the month
has in that year, no leap seconds, at most six digits of a fraction.
"""

from __future__ import annotations

from datetime import date, datetime

__all__ = ["DATE", "TIME", "ZONE", "dates"]

_YEAR = "(?!0000)[0-9]{4}"
_LEAP = "(?!0000)(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_LONG = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
_SHORT = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
_FEBRUARY = "02-(?:0[1-9]|1[0-9]|2[0-8])"
DATE = f"(?:{_YEAR}-(?:{_LONG}|{_SHORT}|{_FEBRUARY})|{_LEAP}-02-29)"
TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
ZONE = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"


def dates(ge: date | None = None, gt: date | None = None, le: date | None = None, lt: date | None = None) -> str:
    """The pattern of the dates within bounds: from ``ge`` or after ``gt``, up to ``le`` or before ``lt``.

    The texts of all dates have the same length, so the order of dates is that of their texts: the later one has the
    greater digit where they first differ.

    Raises:
        TypeError: a bound is no date, or one with a time.
    """
    for name, bound in {"ge": ge, "gt": gt, "le": le, "lt": lt}.items():
        if bound is not None and (isinstance(bound, datetime) or not isinstance(bound, date)):
            raise TypeError(f"{name} is a datetime.date, not {bound!r:.60}")
    ahead = [
        f"(?={_beyond(bound, above, itself)})"
        for bound, above, itself in ((ge, True, True), (gt, True, False), (le, False, True), (lt, False, False))
        if bound is not None
    ]
    return "".join(ahead) + DATE


def _beyond(bound: date, above: bool, itself: bool) -> str:
    """A pattern of the prefixes by which a date is recognised as being on one side of a bound.

    Args:
        above: whether later dates match; if not, earlier ones do.
        itself: whether the bound matches, too.
    """
    text = bound.isoformat()
    beginnings = [text] if itself else []
    for index, digit in enumerate(text):
        if digit not in ("9" if above else "0") + "-":
            further = f"[{int(digit) + 1}-9]" if above else f"[0-{int(digit) - 1}]"
            beginnings.append(text[:index] + further)
    return f"(?:{'|'.join(beginnings)})"
