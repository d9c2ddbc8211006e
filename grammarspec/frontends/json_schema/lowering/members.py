"""Objects that must remember which members they have: for free order, for numbers of members, for witnesses.

The members are rules with a parameter (see :meth:`.GrammarBuilder.call_with`) that holds what has
been written: a bit for each member that may come anywhere (a free one), one for undeclared members, one for the
witness, and counters. With ``N(i)``, "a member, and the rest", and ``T(i)``, "the rest, after a member", where of those
in order the i-th and later ones may come::

    N(i) = member(i) T(i+1)  |  N(i+1) if i is optional  |  free T(i), if it is not written  |  undeclared T(i)
    T(i) = end, if enough is written  |  "," N(i)

Undeclared members may repeat a name, and a parsed object then has one of them only. So towards the minimum they count
once altogether, towards the maximum each, and a witness (an undeclared member of a special kind) comes after all other
undeclared ones: its name could otherwise come again, with a value that takes its place. Where that is not enough, names
are remembered (:data:`grammarspec.grammars.builder.NAMES`), and all of them differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from grammarspec.frontends.json_schema.keywords.presence import Absent, Both, Presence, Present, allows_none, wanted
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.spelling.builder import CHAIN
from grammarspec.grammars.builder import FEW, NAMES, OPENS, UNBOUNDED

__all__ = ["Asked", "Member", "remembered_members"]


class Member(NamedTuple):
    """A declared member: the node of its name, colon and value, whether it must be present, and may come anywhere."""

    node: int
    required: bool
    free: bool
    name: str = ""


class Asked(NamedTuple):
    """What is asked of the members together.

    Attributes:
        undeclared: any undeclared member, or ``None`` if there is none.
        witnesses: undeclared members of special kinds, with the numbers of the kinds that each is of; there must be one
            of every kind.
        least, most: the number of members.
        distinct: the names of undeclared members differ.
        few: there may be few names for them.
        presence: conditions on which declared members there are; only where all are free.
    """

    undeclared: int | None
    witnesses: Sequence[tuple[int, tuple[int, ...]]] = ()
    least: int = 0
    most: int | None = None
    distinct: bool = False
    few: bool = False
    presence: Sequence[Presence] = ()


def remembered_members(lowering: Lowering, members: Sequence[Member], asked: Asked) -> int:
    """The objects with these members."""
    return _Members(lowering, members, asked).object()


_Counter = tuple[int, int]


class _Members:
    """The rules of one object's members."""

    def __init__(self, lowering: Lowering, members: Sequence[Member], asked: Asked) -> None:
        self.lowering, self.builder, self.text = lowering, lowering.builder, lowering.text
        self.members = members
        self.ordered = [member for member in members if not member.free]
        # What is required comes first where that makes no difference: the compiler then finds an ending sooner.
        self.free = sorted((member for member in members if member.free), key=lambda member: not member.required)
        self.undeclared, self.witnesses, self.distinct = asked.undeclared, asked.witnesses, asked.distinct
        if asked.distinct:
            self.text.check_comparable()
        self.kinds = NAMES if asked.distinct else 0
        self.few = asked.few
        required = sum(member.required for member in members) + bool(asked.witnesses)
        self.least = asked.least if asked.least > required else 0
        self.most = asked.most if asked.most is None else min(asked.most, UNBOUNDED - 1)
        self.required = [i for i, member in enumerate(self.free) if member.required]
        free = len(self.free)
        self._some_undeclared = free
        self._witnessed = range(free + 1, free + 2 + max((max(which) for _, which in asked.witnesses), default=-1))
        after = self._witnessed.stop
        self._total: _Counter | None = None
        self._distinct: _Counter | None = None
        """Names that are surely different: all declared ones, and one of the undeclared."""
        repeats = (self.undeclared is not None or bool(self.witnesses)) and not asked.distinct
        if self.most is not None or (self.least and not repeats):
            self._total = (after, max(self.most or 0, self.least).bit_length())
        if self.least and repeats:
            at = after if self._total is None else sum(self._total)
            self._distinct = (at, self.least.bit_length())
        self._bridges: dict[int, int] = {}
        self.presence = asked.presence
        self._at = {member.name: i for i, member in enumerate(self.free)}
        self._like: dict[int, int] = {}
        """For ``T(i)``, a rule that can be completed if and only if it can."""
        self._has_like = bool(free) and not (self.least or asked.witnesses or (self.most is not None and required))

    def object(self) -> int:
        """The whole object."""
        b, text = self.builder, self.text
        may_be_empty = not (self.least or self.witnesses or any(member.required for member in self.members))
        may_be_empty = may_be_empty and all(map(allows_none, self.presence))
        if self.most == 0:
            return text.empty_object if may_be_empty else b.nothing
        first = b.rule("members", self.kinds)
        starts = self._rules(first)
        b.define(first, starts)
        if starts == b.nothing:
            return text.empty_object if may_be_empty else b.nothing
        self.lowering.height += 4 * min(len(self.members), CHAIN)
        begun = b.call_with(first, fresh=True)
        whole = b.seq(text.open_object, b.alt(begun, b.literal(b"}")) if may_be_empty else begun)
        if not self.distinct:
            return whole
        rule = b.rule("object", OPENS | (FEW if self.few else 0))
        b.define(rule, whole)
        return b.call(rule)

    def _rules(self, first: int) -> int:
        """Define all ``T``; the body of ``N(0)``, which is the rule ``first``."""
        b = self.builder
        rest = b.rule("rest", self.kinds)  # T(n)
        if self._has_like:
            self._like[rest] = self._completion()
        begun: int | None = None  # declared members of N(i)
        optional = True
        ways = self._anywhere(rest)
        b.define(rest, self._rest(b.alt(*ways) if ways else b.nothing, optional=True))
        for count, member in enumerate(reversed(self.ordered), 1):
            here = b.seq(*self._room(), member.node, self._then(rest))
            optional = optional and not member.required
            begun = here if member.required or begun is None else b.alt(here, begun)
            if count % CHAIN == 0:
                cut = b.rule("members", self.kinds)
                b.define(cut, begun)
                begun = b.call_with(cut)
            before, rest = rest, b.rule("rest", self.kinds)
            if self._has_like:
                self._like[rest] = self._like[before]
                if member.required:
                    self._like[rest] = b.rule("required")
                    b.define(self._like[rest], b.seq(member.node, b.call_with(self._like[before])))
            ways = [begun, *self._anywhere(rest)]
            b.define(rest, self._rest(b.alt(*ways), optional=optional))
        return b.alt(*ways) if ways else b.nothing

    def _anywhere(self, rest: int) -> list[int]:
        """A member that may come anywhere, and the rest."""
        b = self.builder
        free = [
            b.seq(*self._room(), b.when_clear((i,)), member.node, self._then(rest, (i,)))
            for i, member in enumerate(self.free)
        ]
        return free + self._undeclared(rest)

    def _rest(self, following: int, *, optional: bool) -> int:
        """``T(i)``, given ``N(i)``, and whether all declared members that may still come are optional."""
        b, text = self.builder, self.text
        ways = []
        if optional:
            guards = [b.when_set(self.required)] if self.required else []
            guards += [self._holds(condition) for condition in self.presence]
            if self.witnesses:
                guards.append(b.when_set(self._witnessed))
            counter = self._distinct or self._total
            if self.least and counter is not None:
                guards.append(b.when_count(counter, self.least, None))
            ways.append(b.seq(*guards, text.close_object))
        if following != b.nothing:
            ways.append(b.seq(text.comma, following))
        return b.alt(*ways) if ways else b.nothing

    def _completion(self) -> int:
        """Free members that are required, and then what conditions want: nothing else can be needed for an ending."""
        b = self.builder
        whole = b.rule("required")
        needed = [self.free[i].node for i in self.required]
        if self.presence:
            more = b.rule("wanted")
            names = {name for condition in self.presence for name in wanted(condition)}
            ways = [b.seq(*(self._holds(condition) for condition in self.presence))]
            for i, one in enumerate(self.free):
                if one.name in names and not one.required:
                    then = b.call_with(more, setting=(i,), counting=self._total)
                    ways.append(b.seq(*self._room(), b.when_clear((i,)), one.node, then))
            b.define(more, b.alt(*ways))
            needed.append(b.call_with(more, setting=self.required))
        b.define(whole, b.seq(*needed) if needed else b.empty)
        return whole

    def _holds(self, condition: Presence) -> int:
        """The empty text, if the members that have been written are as the condition says."""
        b = self.builder
        if isinstance(condition, Present):
            if not all(name in self._at for name in condition.names):
                return b.nothing
            return b.when_set([self._at[name] for name in condition.names])
        if isinstance(condition, Absent):
            bits = [self._at[name] for name in condition.names if name in self._at]
            return b.when_clear(bits) if bits else b.empty
        parts = [self._holds(part) for part in condition.parts]
        if isinstance(condition, Both):
            return b.seq(*parts) if parts else b.empty
        return b.alt(*parts) if parts else b.nothing

    def _room(self) -> list[int]:
        """The condition that one more member is allowed."""
        if self._total is None or self.most is None:
            return []
        return [self.builder.when_count(self._total, 0, self.most - 1)]

    def _then(self, rest: int, setting: Sequence[int] = (), *, new: bool = True) -> int:
        """The rest after a member, whose name is ``new`` for sure or not."""
        b = self.builder
        if self._total is None or self._distinct is None or not new:
            counter = self._total or (self._distinct if new else None)
            return b.call_with(rest, setting=setting, counting=counter, like=self._like.get(rest))
        bridge = self._bridges.get(rest)  # a call counts one counter only
        if bridge is None:
            bridge = self._bridges[rest] = b.rule("counted")
            b.define(bridge, b.call_with(rest, counting=self._distinct))
        return b.call_with(bridge, setting=setting, counting=self._total)

    def _undeclared(self, rest: int) -> list[int]:
        """An undeclared member, and the rest."""
        b, bit = self.builder, self._some_undeclared
        kinds = [(node, [self._witnessed[i] for i in which]) for node, which in self.witnesses]
        if self.undeclared is not None:
            kinds.append((self.undeclared, []))
        ways = []
        for node, witnessed in kinds:
            guards = self._room()
            if self.witnesses and not self.distinct:
                guards.append(b.when_clear(self._witnessed))
            if self._distinct is None:
                ways.append(b.seq(*guards, node, self._then(rest, witnessed)))
            else:
                setting = [bit, *witnessed]
                ways.append(b.seq(*guards, b.when_clear((bit,)), node, self._then(rest, setting)))
                ways.append(b.seq(*guards, b.when_set((bit,)), node, self._then(rest, setting, new=False)))
        return ways
