"""Objects whose grammar must remember which members have been written.

That is needed for members in any order, for bounds on the number of members, for conditions on which members are
present, and for witnesses (undeclared members of which one at least must be there). Other objects are made in
``objects.py``, without a parameter.

The members are rules with a parameter (see :meth:`.GrammarBuilder.call_with`). It holds a bit for each *free* member
(one that may come anywhere), one that says whether there is an undeclared member, one for each kind of witness, and
counters. All other members are *in order*. ``N(i)`` is "a member, and the rest"; ``T(i)`` is "the rest, after a
member"; in both, only the i-th and later members of those in order may still come::

    N(i) = member(i) T(i+1)  |  N(i+1) if i is optional  |  free T(i), if it is not written  |  undeclared T(i)
    T(i) = end, if enough is written  |  "," N(i)

Undeclared members may repeat a name, and a JSON parser then keeps only one of them. So towards the minimum all of them
together count as one, and towards the maximum each counts. A witness comes after all other undeclared members, as a
later member with its name would replace its value. Where that is not exact enough, the compiler remembers the names and
refuses repeated ones (:data:`grammarspec.grammars.builder.NAMES`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.normal_form.presence import (
    Absent,
    Both,
    Presence,
    Present,
    allows_none,
    apart,
    holds_of_all,
    wanted,
)
from grammarspec.frontends.json_schema.spelling.builder import CHAIN
from grammarspec.grammars.builder import FEW, NAMES, OPENS, UNBOUNDED

__all__ = ["Asked", "Member", "remembered_members"]


class Member(NamedTuple):
    """A declared member.

    Attributes:
        node: the node of its name, the colon and its value.
        required: whether it must be present.
        free: whether it may come anywhere; otherwise it keeps its place among the members that are in order.
        name: its name.
    """

    node: int
    required: bool
    free: bool
    name: str = ""


class Asked(NamedTuple):
    """The conditions on the members of one object together.

    Attributes:
        undeclared: the node of an undeclared member; ``None`` if there can be none.
        witnesses: nodes of undeclared members that satisfy some of the conditions "there is a member such that ...",
            each with the indices of the conditions that it satisfies. Every condition needs a member.
        least, most: bounds of the number of members; a ``most`` of ``None`` is no bound.
        distinct: whether the names of undeclared members must differ.
        few: whether there may be only finitely many names for undeclared members.
        presence: conditions on which declared members are present; only given if all declared members are free.
    """

    undeclared: int | None
    witnesses: Sequence[tuple[int, tuple[int, ...]]] = ()
    least: int = 0
    most: int | None = None
    distinct: bool = False
    few: bool = False
    presence: Sequence[Presence] = ()


def remembered_members(lowering: Lowering, members: Sequence[Member], asked: Asked) -> int:
    """The node of the objects with these members under these conditions.

    Raises:
        UnsupportedFeature: names must differ, but the notation is not JSON, so that the engine cannot compare them.
    """
    return _Members(lowering, members, asked).object()


_Counter = tuple[int, int]


class _Members:
    """Makes the rules of one object's members, as the head of this module describes them."""

    def __init__(self, lowering: Lowering, members: Sequence[Member], asked: Asked) -> None:
        self.lowering, self.builder, self.text = lowering, lowering.builder, lowering.text
        self.members = members
        self.ordered = [member for member in members if not member.free]
        # Required members come first, so that the compiler finds an ending after fewer alternatives.
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
        """The counter of members whose names surely differ: all declared ones, and one of the undeclared ones."""
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
        """For the rule ``T(i)``, a simpler rule that can be completed if and only if ``T(i)`` can.

        It is the argument ``like`` of :meth:`.GrammarBuilder.call_with`.
        """
        self._has_like = bool(free) and not (self.least or asked.witnesses or (self.most is not None and required))

    def object(self) -> int:
        """The node of the whole object."""
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
        whole = b.seq(text.open_object, b.alt(begun, text.no_members) if may_be_empty else begun)
        if not self.distinct:
            return whole
        rule = b.rule("object", OPENS | (FEW if self.few else 0))
        b.define(rule, whole)
        return b.call(rule)

    def _rules(self, first: int) -> int:
        """Define the rules ``T(i)``, from the last to the first. Returns the body of ``first``, ``N(0)``."""
        b = self.builder
        rest = b.rule("rest", self.kinds)  # T(n)
        if self._has_like:
            self._like[rest] = self._completion()
        begun: int | None = None  # the alternatives of N(i) that begin with a member in order
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
        """The alternatives of ``N(i)`` that begin with a free or undeclared member; ``rest`` is the rule ``T(i)``."""
        b = self.builder
        free = [
            b.seq(*self._room(), b.when_clear((i,)), member.node, self._then(rest, (i,)))
            for i, member in enumerate(self.free)
        ]
        return free + self._undeclared(rest)

    def _rest(self, following: int, *, optional: bool) -> int:
        """The body of ``T(i)``: the end of the object if all conditions hold, or a comma and ``N(i)``.

        Args:
            following: the node of ``N(i)``.
            optional: whether the i-th and all later members in order are optional.
        """
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
        """A rule that can be completed if and only if ``T(n)`` can (the argument ``like`` of ``call_with``).

        It consists of the required free members, and then of members that conditions on presence need. Nothing else can
        be necessary for an ending. Conditions that have no member in common are looked at apart from each other, unless
        the number of members has a maximum.
        """
        b = self.builder
        whole = b.rule("required")
        needed = [self.free[i].node for i in self.required]
        groups = apart(self.presence) if self.most is None else [self.presence] if self.presence else []
        needed += [b.call_with(self._wanted(group), setting=self.required) for group in groups]
        b.define(whole, b.seq(*needed) if needed else b.empty)
        return whole

    def _wanted(self, conditions: Sequence[Presence]) -> int:
        """A rule for the members that these conditions need: one by one until they hold, while they still can.

        Where they hold of any object that has all members that they want, these are tried first, all at once: that is
        proved once, and not for each set of members that has been written.
        """
        b = self.builder
        more = b.rule("wanted")
        names = {name for condition in conditions for name in wanted(condition)}
        ways = [b.seq(*(self._holds(condition) for condition in conditions))]
        nodes = []
        for i, one in enumerate(self.free):
            if one.name in names and not one.required:
                nodes.append(one.node)
                then = b.call_with(more, setting=(i,), counting=self._total)
                ways.append(b.seq(*self._room(), b.when_clear((i,)), one.node, then))
        written = names.intersection(self._at)
        if self.most is None and nodes and all(holds_of_all(condition, written) for condition in conditions):
            every = b.rule("wanted")
            b.define(every, b.seq(*nodes))
            ways.insert(0, b.call(every))
        hopes = (self._holds(condition, later=True) for condition in conditions)
        possible = [hope for hope in hopes if hope != b.empty]
        b.define(more, b.seq(*possible, b.alt(*ways)))
        return more

    def _holds(self, condition: Presence, *, later: bool = False) -> int:
        """The empty text if the condition holds of the members that have been written; otherwise nothing.

        Args:
            later: whether it may also hold when others have been written.
        """
        b = self.builder
        if isinstance(condition, Present):
            if not all(name in self._at for name in condition.names):
                return b.nothing
            return b.empty if later else b.when_set([self._at[name] for name in condition.names])
        if isinstance(condition, Absent):
            bits = [self._at[name] for name in condition.names if name in self._at]
            return b.when_clear(bits) if bits else b.empty
        parts = [self._holds(part, later=later) for part in condition.parts]
        if isinstance(condition, Both):
            parts = [part for part in parts if part != b.empty]
            return b.seq(*parts) if parts else b.empty
        return b.empty if b.empty in parts else b.alt(*parts) if parts else b.nothing

    def _room(self) -> list[int]:
        """The guard that one more member does not exceed the maximum: one node, or none if there is no maximum."""
        if self._total is None or self.most is None:
            return []
        return [self.builder.when_count(self._total, 0, self.most - 1)]

    def _then(self, rest: int, setting: Sequence[int] = (), *, new: bool = True) -> int:
        """A call of the rule ``rest`` after a member, with the parameter brought up to date.

        Args:
            setting: the bits that the member sets.
            new: whether the name of the member surely differs from those before it, so that it counts towards the
                minimum.
        """
        b = self.builder
        if self._total is None or self._distinct is None or not new:
            counter = self._total or (self._distinct if new else None)
            return b.call_with(rest, setting=setting, counting=counter, like=self._like.get(rest))
        bridge = self._bridges.get(rest)  # one call can increase one counter only, so a second rule increases the other
        if bridge is None:
            bridge = self._bridges[rest] = b.rule("counted")
            b.define(bridge, b.call_with(rest, counting=self._distinct))
        return b.call_with(bridge, setting=setting, counting=self._total)

    def _undeclared(self, rest: int) -> list[int]:
        """The alternatives of ``N(i)`` that begin with an undeclared member; ``rest`` is the rule ``T(i)``."""
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
