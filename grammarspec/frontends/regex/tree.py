"""The syntax tree that both regex dialects parse to.

It holds what matters to which texts match and nothing else: no groups, names or flags. Flags are resolved into
the sets of characters, and the anchors that depend on characters (``$`` before a final newline, multi-line anchors,
``\\b``) into lookarounds. Every node knows whether it ``asserts``: holds an anchor or a lookaround.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import ClassVar, Final

from grammarspec.frontends.regex.charsets import Ranges

__all__ = ["ANY_PREFIX", "ANY_SUFFIX", "ANY_TEXT", "EMPTY", "END", "NOTHING", "START", "Alternation", "AnyText"]
__all__ += ["Assured", "Chars", "End", "Look", "Node", "Repeat", "Rest", "Sequence", "Start", "Text"]


class Assured(Enum):
    """Which part of a whole text a lookaround passes over without a care."""

    PREFIX = auto()
    SUFFIX = auto()


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Exactly these characters (at least one)."""

    text: str
    asserts: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, eq=False)
class Chars:
    """One character of the set; of an empty set, nothing at all."""

    ranges: Ranges
    asserts: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """One after the other; of no parts, the empty text."""

    parts: tuple[Node, ...]
    asserts: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asserts", any(part.asserts for part in self.parts))


@dataclass(frozen=True, slots=True, eq=False)
class Alternation:
    """Any of these."""

    branches: tuple[Node, ...]
    asserts: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asserts", any(branch.asserts for branch in self.branches))


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """``least`` to ``most`` times (``None``: without end). Being ``lazy`` matters only to which match is preferred."""

    body: Node
    least: int
    most: int | None
    lazy: bool = False
    asserts: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "asserts", self.body.asserts)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A lookahead or lookbehind: zero-width, ``body`` begins (ends) here, or does not."""

    body: Node
    ahead: bool
    negative: bool
    asserts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """Zero-width: *all* the text from here to that border belongs to ``body``, or does not. Lookarounds become this."""

    body: Node
    ahead: bool
    negative: bool
    asserts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The start of the whole text."""

    asserts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """The end of the whole text."""

    asserts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class AnyText:
    """Any text, newlines included. No syntax makes it: searching and lookarounds do.

    ``assured``: something else already sees to it that there is valid text here.
    """

    asserts: ClassVar[bool] = False
    assured: Assured | None = None


Node = Text | Chars | Sequence | Alternation | Repeat | Look | Rest | Start | End | AnyText

EMPTY: Final = Sequence(())
NOTHING: Final = Chars(())
START: Final = Start()
END: Final = End()
ANY_TEXT: Final = AnyText()
ANY_PREFIX: Final = AnyText(Assured.PREFIX)
ANY_SUFFIX: Final = AnyText(Assured.SUFFIX)
