"""The terminals that ``%import common`` offers in llguidance, as regular expressions."""

from __future__ import annotations

from typing import Final

__all__ = ["COMMON"]

_EXPONENT: Final = r"[eE][+-]?[0-9]+"
_FLOAT: Final = rf"([0-9]+\.[0-9]*|\.[0-9]+)({_EXPONENT})?|[0-9]+{_EXPONENT}"
_NUMBER: Final = rf"[0-9]+|{_FLOAT}"

COMMON: Final = {
    "DIGIT": r"[0-9]",
    "HEXDIGIT": r"[a-fA-F0-9]",
    "INT": r"[0-9]+",
    "SIGNED_INT": r"[+-]?[0-9]+",
    "DECIMAL": r"[0-9]+\.[0-9]*|\.[0-9]+",
    "_EXP": _EXPONENT,
    "FLOAT": _FLOAT,
    "SIGNED_FLOAT": rf"[+-]?({_FLOAT})",
    "NUMBER": _NUMBER,
    "SIGNED_NUMBER": rf"[+-]?({_NUMBER})",
    "ESCAPED_STRING": r'"([^"\\]|\\.)*"',
    "LCASE_LETTER": r"[a-z]",
    "UCASE_LETTER": r"[A-Z]",
    "LETTER": r"[A-Za-z]",
    "WORD": r"[A-Za-z]+",
    "CNAME": r"[_A-Za-z][_A-Za-z0-9]*",
    "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+",
    "CR": r"\r",
    "LF": r"\n",
    "NEWLINE": r"(\r?\n)+",
    "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*",
    "C_COMMENT": r"/\*(?s:[^*]|\*+[^*/])*\*+/",
    "SQL_COMMENT": r"--[^\n]*",
}
"""Each by its name."""
