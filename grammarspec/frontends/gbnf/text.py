"""The text of a grammar as tokens, and the rules that they make up.

A rule goes on to the next ``name ::=``, as in XGrammar. In llama.cpp it ends with its line, unless a parenthesis is
open or an alternative must follow; so every grammar that llama.cpp takes is read in the same way here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NoReturn

from grammarspec.errors import GrammarSyntaxError, LimitExceeded
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import UNBOUNDED
from grammarspec.positions import where

__all__ = ["MACROS", "Rule", "Source", "Token", "read"]

MACROS: Final = frozenset(("ExcludeToken", "Regex", "TagDispatch", "Token", "TokenTagDispatch"))
"""XGrammar's macros: names that a parenthesis follows, if no rule has them."""

_TOKENS = re.compile(
    r"""(?P<space>[ \t\r\n]+|\#[^\r\n]*)
    |(?P<assign>::=)
    |(?P<name>[A-Za-z0-9_-]+)
    |(?P<literal>"(?:[^"\\]|\\.)*")
    |(?P<set>\[(?:[^\]\\]|\\.)*\])
    |(?P<special>!?<[^>\r\n]*>)
    |(?P<lookahead>\(\??[=!])
    |(?P<count>\{\s*(?P<least>[0-9]+)\s*(?P<comma>,\s*(?P<most>[0-9]+|-1)?\s*)?\})
    |(?P<sign>[()|*+?.,=])""",
    re.VERBOSE | re.DOTALL,
)
_DOTTED = re.compile(r"[A-Za-z0-9_.-]+")
_DEFINITION = re.compile(r"^[ \t]*([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+)[ \t]*(?:\[[^\]\n]*\][ \t]*)?::=", re.MULTILINE)
_UNFINISHED: Final = {
    '"': "a literal that never ends",
    "[": "a class that never ends",
    "<": "a token that never ends",
    "{": "a count that is no {m}, {m,} or {m,n}",
}
_STEPS: Final = 25
"""Steps for each token that is read."""


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: the name of its group in the scanner's expression; of a sign, the sign itself.
        text: how it is spelled.
        begin, end: its offsets.
        counts: of a count, how often at least and at most.
    """

    kind: str
    text: str
    begin: int
    end: int
    counts: tuple[int, int | None] = (0, None)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        name: what it is called.
        place: the token that names it.
        body: the tokens of its body.
        uses: the rules that its body names, each with the offset where it is named first.
    """

    name: str
    place: Token
    body: list[Token]
    uses: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """A grammar: its text, and its rules by their names."""

    text: str
    rules: dict[str, Rule]

    def at(self, token: Token) -> str:
        """Where a token stands."""
        return where(self.text, token.begin, token.end)

    def fail(self, message: str, token: Token, hint: str = "") -> NoReturn:
        """Say that the grammar is malformed at a token.

        Raises:
            GrammarSyntaxError: always.
        """
        raise GrammarSyntaxError(f"malformed grammar: {message}", self.at(token), hint)


def read(text: str, budget: Budget) -> Source:
    """The rules of a grammar.

    Raises:
        GrammarSyntaxError: it is malformed, or a rule is defined twice or not at all.
        LimitExceeded: a count is too large, or the budget is used up.
        Cancelled: the work was cancelled.
    """
    tokens = _tokens(text, budget)
    source = Source(text, {})
    starts = [at for at in range(len(tokens)) if _begins_rule(tokens, at)]
    if tokens and (not starts or starts[0]):
        source.fail("a rule is expected", tokens[0], "write name ::= ...")
    for start, stop in pairwise([*starts, len(tokens)]):
        name = tokens[start]
        if name.text in source.rules:
            source.fail(f"the rule {name.text} is defined a second time", name)
        source.rules[name.text] = Rule(name.text, name, tokens[start + 1 : stop])
    for rule in source.rules.values():
        _find_uses(source, rule)
    return source


def _tokens(text: str, budget: Budget) -> list[Token]:
    dotted = set(_DEFINITION.findall(text))
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        budget.spend(_STEPS)
        found = _TOKENS.match(text, at)
        if found is None:
            message = _UNFINISHED.get(text[at], "an unexpected character")
            raise GrammarSyntaxError(f"malformed grammar: {message}", where(text, at))
        kind, at = found.lastgroup or "", found.end()
        kind = "count" if found["count"] else kind
        if kind == "name" and dotted and (longer := _DOTTED.match(text, found.start())) and longer[0] in dotted:
            at = longer.end()
            tokens.append(Token(kind, longer[0], found.start(), at))
        elif kind == "count":
            tokens.append(Token(kind, found[0], found.start(), at, _counts(text, found)))
        elif kind != "space":
            tokens.append(Token(found[0] if kind == "sign" else kind, found[0], found.start(), at))
    return tokens


def _counts(text: str, found: re.Match[str]) -> tuple[int, int | None]:
    """The numbers of a count; XGrammar writes ``{m,-1}`` for ``{m,}``."""
    least, most = found["least"].lstrip("0") or "0", found["most"]
    most = None if most in (None, "-1") else most.lstrip("0") or "0"
    if max(len(least), len(most or "")) > 10 or max(int(least), int(most or 0)) >= UNBOUNDED:
        place = where(text, found.start(), found.end())
        raise LimitExceeded(f"a repetition count must be below the limit {UNBOUNDED}", place)
    if not found["comma"]:
        return int(least), int(least)
    if most is not None and int(most) < int(least):
        message = "malformed grammar: the least count is above the most"
        raise GrammarSyntaxError(message, where(text, found.start(), found.end()))
    return int(least), None if most is None else int(most)


def _begins_rule(tokens: list[Token], at: int) -> bool:
    """Whether a rule begins at a token: a name, perhaps with attributes in brackets, and ``::=``."""
    if tokens[at].kind != "name":
        return False
    following = [token.kind for token in tokens[at + 1 : at + 3]]
    return following[:1] == ["assign"] or following == ["set", "assign"]


def _find_uses(source: Source, rule: Rule) -> None:
    """Note which rules a rule's body names.

    Raises:
        GrammarSyntaxError: one of them is not defined.
    """
    for at, token in enumerate(rule.body):
        if token.kind != "name" or token.text in rule.uses:
            continue
        if token.text in source.rules:
            rule.uses[token.text] = token.begin
        elif not (_is_macro(rule.body, at) or _is_option(rule.body, at)):
            source.fail(f"the rule {token.text} is not defined", token)


def _is_macro(body: list[Token], at: int) -> bool:
    return body[at].text in MACROS and body[at + 1 : at + 2] != [] and body[at + 1].kind == "("


def _is_option(body: list[Token], at: int) -> bool:
    """Whether a name is that of an option of a macro, or one of its constants or numbers."""
    named = body[at + 1 : at + 2] != [] and body[at + 1].kind == "="
    constant = body[at].text in ("true", "false") or body[at].text.isdigit()
    return named or (constant and any(token.text in MACROS for token in body))
