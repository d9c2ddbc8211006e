"""Patterns of the texts that Pydantic's types of texts read: URLs, mail addresses, base64, sizes of files.

Each takes fewer texts than Pydantic does, and none that Pydantic refuses. Patterns are those of JSON Schema.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ASCII_IN_BASE64",
    "BASE64",
    "BYTE_SIZE",
    "EMAIL",
    "LOWER_CASE",
    "OCTET",
    "UPPER_CASE",
    "unchanged_by",
    "url",
    "url_safe",
    "uuid",
]

OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"

BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"

_FIRST, _SECOND, _THIRD = "[A-Za-f]", "[A-HQ-Xg-nw-z0-3]", "[ABEFIJMNQRUVYZcdghklopstwx014589]"
ASCII_IN_BASE64 = (
    f"^(?:{_FIRST}{_SECOND}{_THIRD}[A-Za-z0-9+/])*(?:{_FIRST}[AQgw]==|{_FIRST}{_SECOND}[AEIMQUYcgkosw048]=)?$"
)
"""Base64 of ASCII: of 24 bits, those that begin a byte (in the first, second and third digit) are zero."""

BYTE_SIZE = "^(?:0|[1-9][0-9]{0,8})(?:\\.[0-9]{1,3})? ?(?:[kKMGT]i?B|B)$"

_SPECIAL_DOMAINS = "arpa|invalid|local|localhost|onion|test|example"  # no mail goes there, by RFC 6761 and others
EMAIL = (
    "^(?=[^@]{1,64}@[^@]{1,180}$)[A-Za-z0-9_]+(?:[.+-][A-Za-z0-9_]+)*@"
    f"(?:(?=[a-z0-9-]{{1,63}}\\.)[a-z0-9]+(?:-[a-z0-9]+)*\\.)+(?!(?:{_SPECIAL_DOMAINS})$)[a-z]{{2,63}}$"
)

LOWER_CASE = "^(?=[^\\p{Ll}]*\\p{Ll})[^\\p{Lu}\\p{Lt}\\p{Nl}\\p{So}]*$"
UPPER_CASE = "^(?=[^\\p{Lu}]*\\p{Lu})[^\\p{Ll}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}\\p{Nl}\\p{So}]*$"

_UNCHANGED = {
    "strip_whitespace": "^(?:[^\\s\\x85\\x1c-\\x1f](?:[^]*[^\\s\\x85\\x1c-\\x1f])?)?$",
    "to_lower": "^[^\\p{Lu}\\p{Lt}\\p{Nl}\\p{So}]*$",
    "to_upper": "^[^\\p{Ll}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}\\p{Nl}\\p{So}]*$",
    "ascii_only": "^[\\x00-\\x7f]*$",
}


def unchanged_by(schema: Any) -> list[str]:
    """Patterns of the texts that a string schema of Pydantic's leaves as they are: every value is one of them."""
    return [pattern for option, pattern in _UNCHANGED.items() if schema.get(option)]


def url_safe(pattern: str) -> str:
    """A pattern of base64 with ``-`` and ``_`` as the last two digits."""
    return pattern.replace("+/]", "_-]")


def uuid(version: int) -> str:
    """A pattern of UUIDs of a version."""
    return f"^[0-9a-f]{{8}}-[0-9a-f]{{4}}-{version}[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$"


_LABEL = "[A-Za-z0-9]{1,30}(?:-[A-Za-z0-9]{1,15}){0,2}"
_LAST_LABEL = "[A-Za-z][A-Za-z0-9]{0,29}(?:-[A-Za-z0-9]{1,15}){0,2}"  # if it began with a digit, it could be a number
_HOST = f"(?:(?:{_LABEL}\\.){{0,4}}{_LAST_LABEL}|{OCTET}(?:\\.{OCTET}){{3}})"
_PORT = "(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?"
_USER = "(?:[A-Za-z0-9._~-]+(?::[A-Za-z0-9._~-]*)?@)?"
_CHARACTER = "(?:[A-Za-z0-9._~!$&()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_AFTER_HOST = f"(?:/{_CHARACTER}*)*(?:\\?(?:{_CHARACTER}|[/?])*)?(?:#(?:{_CHARACTER}|[/?])*)?"
_WITH_HOST = ("ftp", "http", "https", "ws", "wss")
_ANY_SCHEME = f"(?!(?:{'|'.join(_WITH_HOST)}|file):)[a-z][a-z0-9+.-]*"


def url(schemes: list[str] | None, *, hosts: bool = False) -> str:
    """A pattern of URLs that the WHATWG standard takes, with a host where their scheme has one.

    Args:
        schemes: the schemes that are allowed; ``None``: any.
        hosts: whether several hosts may stand in one URL.
    """
    host = f"{_USER}{_HOST}{_PORT}"
    several = f"{host}(?:,{host})*" if hosts else host
    named = [*_WITH_HOST, "file"] if schemes is None else schemes
    ways = [f"file://(?:{_HOST})?(?:/{_CHARACTER}*)+"] if "file" in named else []
    others = [scheme.replace("+", "\\+").replace(".", "\\.") for scheme in named if scheme != "file"]
    if others:
        ways.append(f"(?:{'|'.join(others)})://{several}{_AFTER_HOST}")
    if schemes is None:
        ways += [f"{_ANY_SCHEME}://{several}{_AFTER_HOST}", f"{_ANY_SCHEME}:{_CHARACTER}+"]
    return f"^(?:{'|'.join(ways)})$"
