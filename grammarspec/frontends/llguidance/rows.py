"""Which lexemes of a grammar may stand at the same place: for those that end as soon as they can.

Where llguidance's lexer looks for several lexemes at once, a lazy one that is complete ends all of them, so that the
others can only be texts that do not begin with one of it. Two bounds on the sets of lexemes that are looked for
together are computed here: those that may be looked for beside a lexeme, and those that are in any case. What is in the
first and not in the second cannot be told from the place alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from grammarspec.frontends.llguidance.tree import Choice, Node, Repeat, Sequence
from grammarspec.grammars.budget import Budget

__all__ = ["Leaf", "Rows", "bits", "is_nullable", "nullable_rules"]

_STEPS: Final = 5
"""Steps for each pair of lexemes that is looked at."""


@dataclass(slots=True)
class Leaf:
    """A place in a rule where a lexeme or a rule stands.

    Attributes:
        node: what stands there.
        key: of a lexeme, what makes it the same as another; ``None``: a rule stands there.
        rule: the name of that rule; of a lexeme, ``""``.
        owner: the rule that the place is in.
        follow: the places that may follow it there.
        ends: whether the rule may end behind it.
    """

    node: Node
    key: object
    rule: str
    owner: str
    follow: int = 0
    ends: bool = False

    @property
    def lazy(self) -> bool:
        """Whether it is a lexeme that ends as soon as it can; its key is a tuple."""
        return isinstance(self.key, tuple)


LeafOf = Callable[[Node, str], Leaf | None]
"""Makes the leaf of a node of a rule, whose name is the second argument; ``None``: the node is the empty text."""


@dataclass(slots=True)
class _Part:
    """A part of a rule: whether it may be empty, and the places that may stand first and last, as bits."""

    nullable: bool
    first: int = 0
    last: int = 0


@dataclass
class Rows:
    """The analysis of the rules that are reached from one.

    Attributes:
        start: the rule to start with.
        bodies: the bodies of the rules.
        leaf: makes the leaf of a node of a rule.
        budget: the work that may be done.
        leaves: all places; sets of them are the bits of numbers.
    """

    start: str
    bodies: dict[str, Node]
    leaf: LeafOf
    budget: Budget
    leaves: list[Leaf] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts: dict[str, _Part] = {}
        nullable = nullable_rules(self.bodies, self.leaf, self.budget)
        for name, body in self.bodies.items():
            self.parts[name] = part = self._part(body, name, nullable)
            for number in bits(part.last):
                self.leaves[number].ends = True
        self.callers: dict[str, list[int]] = {name: [] for name in self.bodies}
        for number, leaf in enumerate(self.leaves):
            if leaf.rule:
                self.callers[leaf.rule].append(number)
        self.first = self._first()

    @cached_property
    def may_next(self) -> list[int]:
        """Of each place, the lexemes that may be looked for behind it."""
        return self._next(least=True)

    @cached_property
    def must_next(self) -> list[int]:
        """Of each place, the lexemes that are looked for behind it in any case."""
        return self._next(least=False)

    @cached_property
    def ends(self) -> int:
        """The places that the whole text may end with."""
        found, new = -1, 0
        while new != found:
            self.budget.spend(_STEPS * len(self.leaves))
            found = new
            for number, leaf in enumerate(self.leaves):
                outer = leaf.owner == self.start or any(found >> caller & 1 for caller in self.callers[leaf.owner])
                new |= (leaf.ends and outer) << number
        return found

    def _part(self, node: Node, owner: str, nullable: set[str]) -> _Part:
        """A part of a rule (Glushkov 1961); the places in it are numbered, and which follow which is noted."""
        match node:
            case Sequence(parts):
                whole = _Part(True)
                for inner in parts:
                    whole = self._joined(whole, self._part(inner, owner, nullable))
                return whole
            case Choice(branches):
                made = [self._part(branch, owner, nullable) for branch in branches]
                whole = _Part(any(part.nullable for part in made))
                for part in made:
                    whole.first, whole.last = whole.first | part.first, whole.last | part.last
                return whole
            case Repeat(_, _, 0):
                return _Part(True)
            case Repeat(inner, least, most):
                part = self._part(inner, owner, nullable)
                if most != 1:
                    self._joined(part, part)
                return _Part(least == 0 or part.nullable, part.first, part.last)
        leaf = self.leaf(node, owner)
        if leaf is None:
            return _Part(True)
        self.leaves.append(leaf)
        bit = 1 << len(self.leaves) - 1
        return _Part(leaf.rule in nullable, bit, bit)

    def _joined(self, left: _Part, right: _Part) -> _Part:
        for number in bits(left.last):
            self.budget.spend(_STEPS)
            self.leaves[number].follow |= right.first
        first = left.first | right.first if left.nullable else left.first
        last = left.last | right.last if right.nullable else right.last
        return _Part(left.nullable and right.nullable, first, last)

    def _expanded(self, places: int, first: dict[str, int]) -> int:
        """The lexemes that the places begin with."""
        found = 0
        for number in bits(places):
            leaf = self.leaves[number]
            found |= first[leaf.rule] if leaf.rule else 1 << number
        return found

    def _first(self) -> dict[str, int]:
        """The lexemes that each rule begins with."""
        found = dict.fromkeys(self.bodies, 0)
        changed = True
        while changed:
            self.budget.spend(_STEPS * len(self.leaves))
            new = {name: self._expanded(part.first, found) for name, part in self.parts.items()}
            changed, found = new != found, new
        return found

    def _next(self, *, least: bool) -> list[int]:
        """The lexemes that are looked for behind each place: all that may be, or those that are in any case."""
        after = [self._expanded(leaf.follow, self.first) for leaf in self.leaves]
        found = after if least else [(1 << len(self.leaves)) - 1] * len(self.leaves)
        changed = True
        while changed:
            self.budget.spend(_STEPS * len(self.leaves))
            new = []
            for number, leaf in enumerate(self.leaves):
                beyond = [found[caller] for caller in self.callers[leaf.owner]] if leaf.ends else []
                if leaf.owner == self.start or not beyond:
                    beyond.append(0)
                joined = beyond[0]
                for other in beyond[1:]:
                    joined = joined | other if least else joined & other
                new.append(after[number] | joined)
            changed, found = new != found, new
        return found

    @cached_property
    def may(self) -> list[int]:
        """Of each lexeme, those that may be looked for beside it."""
        initial = self.first[self.start]
        found = [initial if initial >> number & 1 else 0 for number in range(len(self.leaves))]
        changed = True
        while changed:
            new = list(found)
            for number, leaf in enumerate(self.leaves):
                if leaf.rule:
                    continue
                self.budget.spend(_STEPS * len(self.leaves))
                row = 0
                for other in bits(found[number] | 1 << number):
                    if self.leaves[other].lazy == leaf.lazy:  # a lazy lexeme that is complete ends all others
                        row |= self.may_next[other]
                for following in bits(self.may_next[number]):
                    new[following] |= row
            changed, found = new != found, new
        return found

    @cached_property
    def must(self) -> list[int]:
        """Of each place, the lexemes that are looked for beside it in any case."""
        everything = (1 << len(self.leaves)) - 1
        found = [everything] * len(self.leaves)
        before: list[list[int]] = [[] for _ in self.leaves]
        for number, leaf in enumerate(self.leaves):
            for following in bits(leaf.follow):
                before[following].append(number)
        changed = True
        while changed:
            new = []
            for number, leaf in enumerate(self.leaves):
                self.budget.spend(_STEPS * (1 + len(before[number])))
                row = everything
                for other in before[number]:
                    row &= self.must_next[other]
                if self.parts[leaf.owner].first >> number & 1:
                    for caller in self.callers[leaf.owner]:
                        row &= found[caller]
                    if leaf.owner == self.start:
                        row &= self.first[self.start]
                new.append(row)
            changed, found = new != found, new
        return found


def nullable_rules(bodies: dict[str, Node], leaf: LeafOf, budget: Budget) -> set[str]:
    """The rules that may be empty."""
    found: set[str] = set()
    while more := {name for name, body in bodies.items() if name not in found and is_nullable(body, found, leaf)}:
        budget.spend(_STEPS * len(bodies))
        found |= more
    return found


def is_nullable(node: Node, rules: set[str], leaf: LeafOf) -> bool:
    """Whether a part of a rule may be empty, if just these rules may be."""
    match node:
        case Sequence(parts):
            return all(is_nullable(part, rules, leaf) for part in parts)
        case Choice(branches):
            return any(is_nullable(branch, rules, leaf) for branch in branches)
        case Repeat(inner, least, _):
            return least == 0 or is_nullable(inner, rules, leaf)
    found = leaf(node, "")
    return found is None or found.rule in rules


def bits(number: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
