"""The rules and terminals of a grammar as records, which the parser makes and all later steps work on.

Records are compared by what they say; where they stand in the text (``place``) makes no difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["And", "Choice", "Json", "Literal", "Name", "Node", "Not", "Pattern", "Range", "Repeat", "Rule", "Sequence"]
__all__ += ["Special", "Substring"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A text; ``ignore_case``: in any case."""

    text: str
    ignore_case: bool
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Range:
    """One character of a range."""

    first: str
    last: str
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, and the letters of its flags."""

    regex: str
    flags: str
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Substring:
    """``%regex {"substring_...": ...}``: some of these pieces that follow each other, joined; or none."""

    pieces: tuple[str, ...]
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A rule or terminal by its name."""

    name: str
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Special:
    """A special token."""

    name: str
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Json:
    """The values of a schema, which is JSON text."""

    schema: str
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; of no parts, the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any of these."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class And:
    """The texts that all of these have. Only terminals may hold one."""

    parts: tuple[Node, ...]
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """All other texts. Only terminals may hold one."""

    inner: Node
    place: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Repeat:
    """So many times; ``None``: without end."""

    inner: Node
    least: int
    most: int | None


Node = Literal | Range | Pattern | Substring | Name | Special | Json | Sequence | Choice | And | Not | Repeat


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule or terminal.

    Attributes:
        lazy: whether the rule is a lexeme that ends as soon as it can.
        suffix: what such a lexeme ends with, if that is said apart.
        capture: the name under which texts of the rule are captured.
    """

    name: str
    body: Node
    place: int
    lazy: bool = False
    suffix: Node | None = None
    capture: str | None = None
