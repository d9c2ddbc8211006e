"""The text of a grammar as tokens, with what stands in them: JSON, and the texts of literals."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from grammarspec.errors import GrammarSyntaxError
from grammarspec.grammars.budget import Budget
from grammarspec.positions import where

__all__ = ["Token", "tokens", "unquoted"]

_TOKENS = re.compile(
    r"""(?P<space>[ \t]+|(?:\#|//)[^\n]*)
    |(?P<line>(?:\r?\n)+)
    |(?P<keyword>%[a-z_]+|@\{|@\})
    |(?P<rule>[!?]*[_?]?[a-z][_a-z0-9-]*)
    |(?P<terminal>_?[A-Z][_A-Z0-9-]*)
    |(?P<literal>"(?:\\.|[^"\\\n])*"i?)
    |(?P<pattern>/(?:\\.|[^/\\])+/[a-z]*)
    |(?P<special><[^<>\s]+>)
    |(?P<grammar>@[a-zA-Z0-9_-]+)
    |(?P<number>[+-]?[0-9]+(?:\.(?!\.)[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    |(?P<sign>->|::|\.\.|[:,.(){}\[\]~|=+*?&])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(?P<bad>.|\Z))|(?P<control>[\x00-\x1F\x7F])'
)
_UNFINISHED: Final = {
    "'": "a single quote: literals stand in double quotes",
    '"': "a literal that never ends",
    "/": "a pattern that never ends",
    "<": "a token that never ends",
}
_WITH_JSON: Final = frozenset(("%json", "%regex", "%llguidance"))
_STEPS: Final = 35
"""Steps for each token that is read."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: the name of its group in the scanner's expression; of signs and keywords, how they are spelled.
        text: how it is spelled.
        begin, end: its offsets.
        value: the JSON value behind a keyword.
    """

    kind: str
    text: str
    begin: int
    end: int
    value: Any = None


def tokens(text: str, budget: Budget) -> list[Token]:
    """The tokens of a grammar; ends of lines are some of them.

    Raises:
        GrammarSyntaxError: a token is malformed.
        LimitExceeded, Cancelled: by the budget.
    """
    found: list[Token] = []
    at = 0
    while at < len(text):
        budget.spend(_STEPS)
        match = _TOKENS.match(text, at)
        if match is None:
            message = _UNFINISHED.get(text[at], "an unexpected character")
            raise GrammarSyntaxError(f"malformed grammar: {message}", where(text, at))
        kind, at = match.lastgroup or "", match.end()
        if match[0] in _WITH_JSON:
            value, at = _json(text, at)
            found.append(Token(match[0], match[0], match.start(), at, value))
        elif kind != "space":
            found.append(Token(match[0] if kind in ("sign", "keyword") else kind, match[0], match.start(), at))
    return found


def _json(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins behind an offset, as text, and where it ends."""
    begin = at
    while begin < len(text) and text[begin] in " \t\r\n":
        begin += 1
    try:
        _, end = json.JSONDecoder().raw_decode(text, begin)
    except ValueError as error:
        place = min(getattr(error, "pos", begin), max(0, len(text) - 1))
        raise GrammarSyntaxError("malformed grammar: a JSON value is expected", where(text, place)) from None
    return text[begin:end], end


def unquoted(text: str, token: Token) -> str:
    """What a literal stands for, which is a string of JSON that may have ``\\xHH``.

    Raises:
        GrammarSyntaxError: an escape is malformed, or it holds a control character or a lone surrogate.
    """
    inner = text[token.begin + 1 : text.rindex('"', token.begin, token.end)]
    for escape in _ESCAPE.finditer(inner):
        if escape["bad"] is not None or escape["control"]:
            begin = token.begin + 1 + escape.start()
            message = f"malformed grammar: {escape[0]!r} in a literal"
            hint = 'escapes are \\", \\\\, \\/, \\b, \\f, \\n, \\r, \\t, \\uHHHH and \\xHH'
            raise GrammarSyntaxError(message, where(text, begin, begin + len(escape[0])), hint)
    plain = str(json.loads('"' + _ESCAPE.sub(lambda found: f"\\u00{found[2]}" if found[2] else found[0], inner) + '"'))
    if any("\ud800" <= char <= "\udfff" for char in plain):
        message = "malformed grammar: a lone surrogate, which UTF-8 cannot spell"
        raise GrammarSyntaxError(message, where(text, token.begin, token.end))
    return plain
