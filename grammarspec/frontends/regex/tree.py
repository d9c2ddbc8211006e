"""The syntax tree of a pattern, which both dialects parse to and all later steps work on.

It holds what decides which texts match, and nothing else: no groups, names or flags. Flags are resolved into the sets
of characters, and the anchors that depend on characters (``$`` before a final newline, multi-line anchors, ``\\b``)
into lookarounds. Every node knows whether it ``asserts``: whether it is or contains an anchor or a lookaround.

Nodes are immutable and compared by identity, so that a tree may share subtrees and tables may be kept by ``id``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import ClassVar, Final

from grammarspec.frontends.regex.charsets import Ranges

__all__ = ["ANY_PREFIX", "ANY_SUFFIX", "ANY_TEXT", "EMPTY", "END", "NOTHING", "START", "Alternation", "AnyText"]
__all__ += ["Chars", "End", "Look", "Node", "Repeat", "Rest", "Sequence", "Start", "Text", "Unchecked"]


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
    """Any of these. Their order matters only to which match is preferred (:mod:`.preference`)."""

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
    """A lookaround as written. Zero-width: a text of ``body`` begins here (``ahead``) or ends here.

    ``negative``: there is no such text.
    """

    body: Node
    ahead: bool
    negative: bool
    asserts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """Zero-width: *all* the text from here to its end (``ahead``) or from its start to here is a text of ``body``.

    ``negative``: it is none. Each :class:`Look` that is not decided becomes one of these: ``(?=x)`` is that the rest is
    ``x`` and then any text.
    """

    body: Node
    ahead: bool
    negative: bool
    asserts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Zero-width: the start of the whole text."""

    asserts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """Zero-width: the end of the whole text."""

    asserts: ClassVar[bool] = True


class Unchecked(Enum):
    """Which end of a text an :class:`AnyText` reaches that need not check the characters that it stands for."""

    PREFIX = auto()
    SUFFIX = auto()


@dataclass(frozen=True, slots=True, eq=False)
class AnyText:
    """Any text, newlines included. No syntax makes it: searching and lookarounds do.

    Attributes:
        unchecked: the language is intersected with one that has valid text only, so that this node may match invalid
            bytes, too. That is cheaper to run. ``None``: the node matches valid text only.
    """

    asserts: ClassVar[bool] = False
    unchecked: Unchecked | None = None


Node = Text | Chars | Sequence | Alternation | Repeat | Look | Rest | Start | End | AnyText

EMPTY: Final = Sequence(())
"""The empty text."""
NOTHING: Final = Chars(())
"""No text at all: the empty language."""
START: Final = Start()
END: Final = End()
ANY_TEXT: Final = AnyText()
ANY_PREFIX: Final = AnyText(Unchecked.PREFIX)
ANY_SUFFIX: Final = AnyText(Unchecked.SUFFIX)
