"""Item counts: arrays in which a bounded number of items satisfies a schema.

They come from ``contains``, and from the negation of ``items`` ("at least one item fails").

Each position of an item is lowered in two ways: as an item that satisfies the schema of the count ("it counts"), and as
one that does not. If the count has no maximum, the second way does not forbid that the item satisfies the schema, since
more such items do no harm; if it has one, the second way is the negation.

The array is an automaton. Its states are pairs: the number of items so far, and for each count the number of items that
counted, both up to the number from which on more make no difference. A ``maxItems`` that is too large for one state per
position is divided equally among the runs of items between those that count (a narrowing).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from grammarspec.errors import LimitExceeded
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction, ItemCount
from grammarspec.frontends.json_schema.keywords.types_and_sizes import MAX_COUNTED
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.meaning.evaluation import item_schemas
from grammarspec.frontends.json_schema.spelling.builder import CHAIN
from grammarspec.grammars.builder import UNBOUNDED

__all__ = ["counted_items"]

_MAX_STATES = 5_000

_Counts = tuple[int, ...]


def counted_items(lowering: Lowering, facts: Conjunction, kinds: int = 0) -> int:
    """The node of the arrays that a conjunction with item counts allows.

    Args:
        kinds: the kinds of the rule that the node becomes the body of; 0 if items may repeat.

    Raises:
        LimitExceeded: the automaton has too many states, which are positions times counts.
    """
    counter = _Counter(lowering, facts, kinds)
    where = facts.first.pointer
    if counter.size() > _MAX_STATES:
        raise LimitExceeded("contains counted up to these bounds", where=where)
    return counter.array()


class _Counter:
    """Makes the node of one array by the automaton that the head of this module describes."""

    def __init__(self, lowering: Lowering, facts: Conjunction, kinds: int) -> None:
        self.kinds = kinds
        self.lowering, self.builder, self.text, self.facts = lowering, lowering.builder, lowering.text, facts
        self.counts = facts.counts
        prefix = max((len(facet.first) for facet in facts.arrays), default=0)
        starts = max(count.start for count in self.counts)
        self.steady = max(prefix, starts, facts.min_items)
        """The number of items from which on all positions have the same transitions."""
        self.tops = tuple(count.least if count.most is None else count.most for count in self.counts)
        self.at_a_time: int | None = None
        """The most items in one run of items that change no count, where positions are not counted; ``None``: any."""
        self.endless = facts.max_items is None
        if facts.max_items is not None:
            room = facts.max_items - self.steady - sum(self.tops) - 1
            if room > MAX_COUNTED:  # too many positions to count: each run gets an equal share
                self.endless, self.at_a_time = True, min(room // (sum(self.tops) + 1), UNBOUNDED - 1)
            else:
                self.steady = facts.max_items
        self._ways_at: dict[int, list[tuple[tuple[bool, ...], int]]] = {}

    def size(self) -> int:
        """An upper bound of the number of transitions: states times the ways in which an item may count."""
        states = self.steady + 1
        for top in self.tops:
            states *= top + 1
        return states << len(self.counts)

    def array(self) -> int:
        """The node of the whole array."""
        b, text = self.builder, self.text
        rest: dict[_Counts, int] = {}
        vectors = sorted(product(*(range(top + 1) for top in self.tops)), key=lambda vector: -sum(vector))
        for index, vector in enumerate(vectors, 1):
            node = self._loop(vector, rest) if self.endless else self._end(self.steady, vector)
            rest[vector] = b.cut(node, self.kinds) if index % CHAIN == 0 and node != b.nothing else node
        for position in range(self.steady - 1, 0, -1):
            rest = {vector: self._rest(position, vector, rest, text.comma) for vector in vectors}
            if position % CHAIN == 0:
                rest = {vector: node if node == b.nothing else b.cut(node, self.kinds) for vector, node in rest.items()}
        start = tuple(0 for _ in self.counts)
        if self.facts.max_items == 0:
            begun = []
        elif self.steady == 0:
            begun = [b.seq(node, rest[after]) for after, node in self._after(0, start) if rest[after] != b.nothing]
        else:
            begun = [self._rest(0, start, rest, None)]
        ways = [node for node in begun if node != b.nothing]
        if self.facts.min_items == 0 and self._enough(start):
            ways.append(b.literal(b"]"))
        return b.seq(text.open_array, b.alt(*ways)) if ways else b.nothing

    def _enough(self, vector: _Counts) -> bool:
        return all(done >= count.least for done, count in zip(vector, self.counts, strict=True))

    def _end(self, position: int, vector: _Counts) -> int:
        return (
            self.text.close_array if position >= self.facts.min_items and self._enough(vector) else self.builder.nothing
        )

    def _rest(self, position: int, vector: _Counts, rest: dict[_Counts, int], separator: int | None) -> int:
        """The rest of the array after ``position`` items: one more item and its rest, or the closing bracket.

        Args:
            vector: how many items have counted so far, for each count.
            rest: the nodes of the rest after one more item, by the counts then.
            separator: the node before the next item; ``None`` before the first one, where :meth:`array` adds the end.
        """
        b = self.builder
        ways = []
        for after, node in self._after(position, vector):
            if rest[after] != b.nothing:
                item = node if separator is None else b.seq(separator, node)
                ways.append(b.seq(item, rest[after]))
        end = self._end(position, vector) if separator is not None else b.nothing
        if end != b.nothing:
            ways.append(end)
        return b.alt(*ways) if ways else b.nothing

    def _loop(self, vector: _Counts, rest: dict[_Counts, int]) -> int:
        """The rest where positions are not counted: items that change no count, then one that does, or the end."""
        b, comma = self.builder, self.text.comma
        same, ways = [], []
        for after, node in self._after(self.steady, vector):
            if after == vector:
                same.append(node)
            elif rest[after] != b.nothing:
                ways.append(b.seq(comma, node, rest[after]))
        end = self._end(self.steady, vector)
        if end != b.nothing:
            ways.append(end)
        if not ways:
            return b.nothing
        run = b.repeat(b.seq(comma, b.alt(*same)), 0, self.at_a_time) if same else b.empty
        return b.seq(run, b.alt(*ways))

    def _after(self, position: int, vector: _Counts) -> list[tuple[_Counts, int]]:
        """The transitions of a state: the counts after one more item at this position, with the node of the item."""
        out = []
        for counted, node in self._ways(position):
            after = []
            for done, counts, count in zip(vector, counted, self.counts, strict=True):
                if counts and count.most is not None and done == count.most:
                    break
                after.append(min(done + counts, count.least if count.most is None else count.most))
            else:
                out.append((tuple(after), node))
        return out

    def _ways(self, position: int) -> list[tuple[tuple[bool, ...], int]]:
        """The ways to lower the item at a position: for each count whether the item adds to it, and the node."""
        ways = self._ways_at.get(position)
        if ways is None:
            ways = []
            base = item_schemas(self.facts, position)
            for counted in product((True, False), repeat=len(self.counts)):
                goal: list[Subschema] | None = list(base)
                for count, counts in zip(self.counts, counted, strict=True):
                    goal = self._with(goal, count, position, counts)
                node = self.builder.nothing if goal is None else self.lowering.lower(goal)
                if node != self.builder.nothing:
                    ways.append((counted, self.lowering.part(node) if self.kinds else node))
            self._ways_at[position] = ways
        return ways

    def _with(
        self, goal: Sequence[Subschema] | None, count: ItemCount, position: int, counts: bool
    ) -> list[Subschema] | None:
        """The goal of an item that counts or does not; ``None`` if no item at the position can count."""
        if goal is None or (counts and position < count.start):
            return None
        if counts:
            return [*goal, count.schema]
        if count.most is None or position < count.start:
            return list(goal)
        return [*goal, self.lowering.goals.negate(count.schema)]
