"""``contains`` and its like: arrays of which so many items satisfy a schema.

Each item either counts or does not. To reach a minimum it is enough to point at items that surely count; only where
there is a maximum must the others surely not count. States are the number of items and of those counted, up to where
more make no difference. A ``maxItems`` that is too large to count to is shared out among the runs of items between
those that count.
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
    """The arrays that a conjunction with item counts allows; ``kinds``: of the rule that it is the body of.

    Raises:
        LimitExceeded: positions times counts are too many.
    """
    counter = _Counter(lowering, facts, kinds)
    where = facts.first.pointer
    if counter.size() > _MAX_STATES:
        raise LimitExceeded("contains counted up to these bounds", where=where)
    return counter.array()


class _Counter:
    """Nodes by the number of items so far and how many counted."""

    def __init__(self, lowering: Lowering, facts: Conjunction, kinds: int) -> None:
        self.kinds = kinds
        self.lowering, self.builder, self.text, self.facts = lowering, lowering.builder, lowering.text, facts
        self.counts = facts.counts
        prefix = max((len(facet.first) for facet in facts.arrays), default=0)
        starts = max(count.start for count in self.counts)
        self.steady = max(prefix, starts, facts.min_items)
        """From this many items on, all positions are alike."""
        self.tops = tuple(count.least if count.most is None else count.most for count in self.counts)
        self.at_a_time: int | None = None
        """How many items in a row may leave the counts as they are, where all positions are alike."""
        self.endless = facts.max_items is None
        if facts.max_items is not None:
            room = facts.max_items - self.steady - sum(self.tops) - 1
            if room > MAX_COUNTED:  # too many positions to count: each run gets an equal share
                self.endless, self.at_a_time = True, min(room // (sum(self.tops) + 1), UNBOUNDED - 1)
            else:
                self.steady = facts.max_items
        self._ways_at: dict[int, list[tuple[tuple[bool, ...], int]]] = {}

    def size(self) -> int:
        """An upper bound of the number of states."""
        states = self.steady + 1
        for top in self.tops:
            states *= top + 1
        return states << len(self.counts)

    def array(self) -> int:
        """The whole array."""
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
        """The rest after ``position`` items: one more, or the end (which at the very start has no closing node)."""
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
        """The rest where all positions are alike: items that change no count, again and again."""
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
        """The counts after one more item at this position, with the item's node."""
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
        """The nodes of an item by which of the counts it adds to."""
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
        if goal is None or (counts and position < count.start):
            return None
        if counts:
            return [*goal, count.schema]
        if count.most is None or position < count.start:
            return list(goal)
        return [*goal, self.lowering.goals.negate(count.schema)]
