"""The rules of a ``.lark`` grammar as records, which lark's trees are converted to and all later steps work on.

They hold what decides which texts belong to the language. Aliases, priorities and modifiers (``?rule``, ``!rule``)
shape lark's parse trees only and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Alternatives", "Body", "Literal", "Maybe", "Pattern", "Repetition", "Rule", "Sequence", "Symbol"]
__all__ += ["TemplateUse", "Value", "terminals_of"]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A terminal's regular expression.

    Attributes:
        regex: the expression in Python's syntax.
        literal: the text, if the terminal is a plain string.
        raw: the expression as it is written in the grammar; ``""`` if it is put together from several.
        is_string: whether it is written as a string.
    """

    regex: str
    literal: str | None
    raw: str
    is_string: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a rule, of a terminal, or of a parameter of the template around it."""

    name: str
    is_terminal: bool


@dataclass(frozen=True, slots=True)
class Literal:
    """A string or regular expression within a rule."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class TemplateUse:
    """A template, or a parameter that stands for one, with its arguments: ``separated{item, ","}``."""

    name: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Any of these."""

    branches: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; of no parts, the empty text."""

    parts: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Maybe:
    """``[body]``."""

    body: Body


@dataclass(frozen=True, slots=True)
class Repetition:
    """A part and its operator, as written.

    Attributes:
        body: the part.
        operator: ``?``, ``*``, ``+`` or ``~``.
        counts: the numbers behind ``~``, as digits: one, or the least and the most.
    """

    body: Body
    operator: str
    counts: tuple[str, ...]


Value = Symbol | Literal | TemplateUse
Body = Value | Alternatives | Sequence | Maybe | Repetition


def terminals_of(body: Body) -> Iterator[Literal | Symbol]:
    """The terminals that a body mentions, in order."""
    match body:
        case Alternatives(parts) | Sequence(parts) | TemplateUse(_, parts):
            for part in parts:
                yield from terminals_of(part)
        case Maybe(inner) | Repetition(inner, _, _):
            yield from terminals_of(inner)
        case Literal() | Symbol(_, True):
            yield body


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule or template.

    Attributes:
        parameters: the names of a template's parameters; of a rule, none.
        body: ``None`` for a rule that is only declared (``%declare``).
    """

    parameters: tuple[str, ...]
    body: Body | None
