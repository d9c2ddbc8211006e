"""``minProperties`` and ``maxProperties``: members counted by position.

Members of undeclared names may repeat a name, and a parsed object then has one of them only. So towards the minimum
they count once altogether, towards the maximum each. Maxima that are too large to count to are shared out among the
gaps between declared members, so that no sum can exceed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grammarspec.builder import UNBOUNDED
from grammarspec.errors import LimitExceeded, UnsupportedFeature
from grammarspec.frontends.json_schema.conjunction import Conjunction
from grammarspec.frontends.json_schema.strings import clamp

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.lowering import Lowering
    from grammarspec.frontends.json_schema.objects import Member

__all__ = ["counted_members", "share_of_gap"]

_MAX_STATES = 20_000


def counted_members(
    lowering: Lowering,
    facts: Conjunction,
    members: Sequence[Member],
    undeclared: int | None,
    least: int,
    most: int | None,
) -> int:
    """Objects of ``least`` to ``most`` members.

    Raises:
        UnsupportedFeature: the minimum can only be reached by different undeclared names.
        LimitExceeded: positions times counts are too many.
    """
    b, text = lowering.builder, lowering.text
    if least > len(members) + (undeclared is not None):
        if undeclared is None:
            return b.nothing
        where = lowering.analysis.document.where(next(iter(facts.members.values())), "minProperties")
        hint = "declare more properties; the names of undeclared members cannot be kept from being equal"
        raise UnsupportedFeature("minProperties that takes several undeclared properties to reach", where, hint)
    if most == 0:
        return text.empty_object if least == 0 and not any(member.required for member in members) else b.nothing
    if undeclared is not None and not members:
        _, bound = clamp(0, most)
        more = b.repeat(b.seq(text.comma, undeclared), 0, None if bound is None else bound - 1)
        full = b.seq(undeclared, more, text.close_object)
        return b.seq(text.open_object, b.alt(full, b.literal(b"}")) if least == 0 else full)
    if _states(len(members), least, most) > _MAX_STATES:
        where = lowering.analysis.document.where(next(iter(facts.members.values())))
        raise LimitExceeded(f"counting {len(members)} properties up to {most or least}", where=where)
    return _Counter(lowering, members, undeclared, least, most).object()


def _states(members: int, least: int, most: int | None) -> int:
    return (members + 1) * ((most or 0) + 1) * (least + 1) * 2


def share_of_gap(members: int, least: int, most: int | None) -> int | None:
    """How many undeclared members each gap gets of a maximum that is too large to count to; else ``None``."""
    if most is None or least > 1 or _states(members, least, most) <= _MAX_STATES:
        return None
    share = (most - members - 1) // (members + 1)
    return min(share, UNBOUNDED - 1) if share > 0 else None


_CUT = 16  # positions after which the nodes become rules: those for different counts nest, too

_State = tuple[int, int, int, bool]


class _Counter:
    """Nodes by what has been counted so far: ``(i, total, distinct, seen)``.

    The next declared member is the i-th or a later one. ``total`` counts towards the maximum (it stays 0 if there is
    none), ``distinct`` towards the minimum (up to it), ``seen`` tells whether an undeclared member has been counted.
    """

    def __init__(
        self, lowering: Lowering, members: Sequence[Member], undeclared: int | None, least: int, most: int | None
    ) -> None:
        self.builder, self.text = lowering.builder, lowering.text
        self.members, self.undeclared, self.least, self.most = members, undeclared, least, most
        self.declared: dict[_State, int] = {}
        """A declared member from the i-th on, and the rest."""
        self.rest: dict[_State, int] = {}
        """The rest, after a member."""

    def object(self) -> int:
        """The whole object."""
        b, text = self.builder, self.text
        totals = (0,) if self.most is None else range(self.most, -1, -1)
        optional = True  # all from i on are
        for i in range(len(self.members), -1, -1):
            optional = optional and (i == len(self.members) or not self.members[i].required)
            for total in totals:
                for distinct in range(self.least, -1, -1):
                    for seen in (True, False):
                        self._make((i, total, distinct, seen), optional)
            if i % _CUT == 0:
                for nodes in (self.rest, self.declared):
                    for state in [state for state in nodes if state[0] == i and nodes[state] != b.nothing]:
                        nodes[state] = b.cut(nodes[state])
        start = (0, 0, 0, False)
        parts = [node for node in (self.declared[start], self._undeclared(start)) if node != b.nothing]
        ends = [b.seq(b.alt(*parts), text.close_object)] if parts else []
        if self.least == 0 and optional:
            ends.append(b.literal(b"}"))
        return b.seq(text.open_object, b.alt(*ends)) if ends else b.nothing

    def _make(self, state: _State, optional: bool) -> None:
        b, comma = self.builder, self.text.comma
        i, total, distinct, seen = state
        room = self.most is None or total < self.most
        written = 0 if self.most is None else total + 1
        parts = []
        if i < len(self.members):
            node, required = self.members[i]
            if room:
                after = self.rest[i + 1, written, min(distinct + 1, self.least), seen]
                if after != b.nothing:
                    parts.append(b.seq(node, after))
            if not required and self.declared[i + 1, total, distinct, seen] != b.nothing:
                parts.append(self.declared[i + 1, total, distinct, seen])
        declared = self.declared[state] = b.alt(*parts) if parts else b.nothing
        ways = [] if declared == b.nothing else [b.seq(comma, declared)]
        loops = self.undeclared is not None and seen and self.most is None
        if not loops:
            undeclared = self._undeclared(state)
            if undeclared != b.nothing:
                ways.append(b.seq(comma, undeclared))
        if optional and distinct >= self.least:
            ways.append(b.empty)
        rest = b.alt(*ways) if ways else b.nothing
        if loops and self.undeclared is not None and rest != b.nothing:  # one more changes nothing
            rest = b.seq(b.repeat(b.seq(comma, self.undeclared), 0, None), rest)
        self.rest[state] = rest

    def _undeclared(self, state: _State) -> int:
        """An undeclared member, and the rest."""
        b = self.builder
        i, total, distinct, seen = state
        if self.undeclared is None or (self.most is not None and total >= self.most):
            return b.nothing
        written = 0 if self.most is None else total + 1
        after = self.rest[i, written, distinct if seen else min(distinct + 1, self.least), True]
        return after if after == b.nothing else b.seq(self.undeclared, after)
