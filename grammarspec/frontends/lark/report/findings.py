"""What is found in a ``.lark`` grammar, as records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from grammarspec.errors import GrammarError

__all__ = ["Finding", "GrammarReport", "Kind"]

Kind = Literal["refused", "conflict", "collision", "unproductive", "unused"]
_KINDS: tuple[Kind, ...] = ("refused", "conflict", "collision", "unproductive", "unused")
_PLACE = re.compile(r"line (\d+), column (\d+)")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is found in a grammar.

    Attributes:
        kind: ``"refused"``: grammarspec, or lark, does not take the grammar because of it; ``"conflict"``: lark's LALR
            parser shifts where it could also reduce; ``"collision"``: two terminals match the same text, of which
            lark's lexer takes the one that it tries first; ``"unproductive"``: a rule or terminal has no texts;
            ``"unused"``: nothing that is reached from the start names it.
        message: what it is.
        where: its place in the grammar, as ``line L, column C`` and an excerpt with a caret; ``""`` if it has none,
            as what is imported.
        hint: what to do about it, or ``""``.
    """

    kind: Kind
    message: str
    where: str = ""
    hint: str = ""

    @staticmethod
    def of(error: GrammarError) -> Finding:
        """The finding that an error makes the grammar be refused."""
        if not error.where or _PLACE.match(error.where):
            return Finding("refused", error.message, error.where, error.hint)
        return Finding("refused", f"{error.message} ({error.where.splitlines()[0]})", "", error.hint)

    @property
    def line(self) -> int | None:
        """The line, counted from 1."""
        found = _PLACE.match(self.where)
        return int(found[1]) if found else None

    @property
    def column(self) -> int | None:
        """The column, counted from 1."""
        found = _PLACE.match(self.where)
        return int(found[2]) if found else None

    @property
    def excerpt(self) -> str:
        """The line with a caret below the place, and where in a terminal's expression the trouble is."""
        return self.where.partition("\n")[2]

    def as_dict(self) -> dict[str, Any]:
        """The finding in JSON's types."""
        place = {"line": self.line, "column": self.column} if self.line is not None else {}
        return {"kind": self.kind, "message": self.message, "hint": self.hint, **place}


@dataclass(frozen=True, slots=True)
class GrammarReport:
    """What is found in a grammar, what makes it be refused first.

    ``str`` makes a table of the findings, with their lines and columns.

    Attributes:
        findings: what is found.
        notes: what could not be looked for.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(findings: Iterable[Finding], notes: Iterable[str] = ()) -> GrammarReport:
        """A report on findings: sorted by kind and place, and each only once."""
        found = sorted(
            dict.fromkeys(findings),
            key=lambda one: (_KINDS.index(one.kind), one.line or 0, one.column or 0, one.message),
        )
        return GrammarReport(tuple(found), tuple(notes))

    @property
    def ok(self) -> bool:
        """Whether :func:`grammarspec.lark` takes the grammar with the same options, and it has texts."""
        return not self.of_kind("refused")

    def of_kind(self, kind: Kind) -> tuple[Finding, ...]:
        """The findings of a kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def as_dict(self) -> dict[str, Any]:
        """The report in JSON's types: ``ok``, ``findings`` and ``notes``."""
        return {"ok": self.ok, "findings": [one.as_dict() for one in self.findings], "notes": list(self.notes)}

    def __str__(self) -> str:
        places = [f"{one.line}:{one.column}" if one.line is not None else "" for one in self.findings]
        wide = max(map(len, places), default=0)
        lines = [
            f"{one.kind:12}  {place:{wide}}  {' '.join(one.message.split())}"
            + (f" (hint: {one.hint})" * bool(one.hint))
            for one, place in zip(self.findings, places, strict=True)
        ]
        counts = Counter(one.kind for one in self.findings)
        summary = ", ".join(f"{counts[kind]} {kind}" for kind in _KINDS if counts[kind])
        return "\n".join([*lines, *(f"{'note':12}  {note}" for note in self.notes), summary or "nothing found"])
