"""Item counts: arrays in which the number of items that satisfy some schema is bounded (``contains``).

The array is an automaton. Its states are pairs: the number of items so far, and for each count the number of items that
counted, both up to the number from which on more make no difference.
"""

from __future__ import annotations

from itertools import product

from grammarspec.errors import LimitExceeded
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.normal_form.shapes import ArrayShape, CountedItems
from grammarspec.frontends.json_schema.spelling.builder import CHAIN
from grammarspec.grammars.builder import UNBOUNDED

__all__ = ["counted_items"]

_MAX_STATES = 5_000

_Counts = tuple[int, ...]


def counted_items(lowering: Lowering, shape: ArrayShape, kinds: int = 0) -> int:
    """The node of the arrays of a shape with counts of items.

    Args:
        kinds: the kinds of the rule that the node becomes the body of; 0 if items may repeat.

    Raises:
        LimitExceeded: the automaton has too many states, which are positions times counts.
    """
    assert shape.counted is not None
    counter = _Counter(lowering, shape, shape.counted, kinds)
    if counter.size() > _MAX_STATES:
        raise LimitExceeded("contains counted up to these bounds", where=shape.where())
    return counter.array()


class _Counter:
    """Makes the node of one array by the automaton that the head of this module describes."""

    def __init__(self, lowering: Lowering, shape: ArrayShape, counted: CountedItems, kinds: int) -> None:
        self.kinds = kinds
        self.lowering, self.builder, self.text = lowering, lowering.builder, lowering.text
        self.least, self.most, self.counts, self.ways = shape.least, shape.most, counted.counts, counted.ways
        self.tops = tuple(count.least if count.most is None else count.most for count in self.counts)
        self.endless = shape.most is None or counted.at_a_time is not None
        """Whether the number of items is not counted beyond ``steady``."""
        self.at_a_time = None if counted.at_a_time is None else min(counted.at_a_time, UNBOUNDED - 1)
        self.steady = max(len(self.ways) - 1, shape.least)
        """The number of items from which on all positions have the same transitions."""
        if shape.most is not None and not self.endless:
            self.steady = shape.most
        self._nodes_at: dict[int, list[tuple[tuple[bool, ...], int]]] = {}

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
        if self.most == 0:
            begun = []
        elif self.steady == 0:
            begun = [b.seq(node, rest[after]) for after, node in self._after(0, start) if rest[after] != b.nothing]
        else:
            begun = [self._rest(0, start, rest, None)]
        ways = [node for node in begun if node != b.nothing]
        if self.least == 0 and self._enough(start):
            ways.append(self.text.no_items)
        return b.seq(text.open_array, b.alt(*ways)) if ways else b.nothing

    def _enough(self, vector: _Counts) -> bool:
        return all(done >= count.least for done, count in zip(vector, self.counts, strict=True))

    def _end(self, position: int, vector: _Counts) -> int:
        return self.text.close_array if position >= self.least and self._enough(vector) else self.builder.nothing

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
        for counted, node in self._items(position):
            after = []
            for done, counts, count in zip(vector, counted, self.counts, strict=True):
                if counts and count.most is not None and done == count.most:
                    break
                after.append(min(done + counts, count.least if count.most is None else count.most))
            else:
                out.append((tuple(after), node))
        return out

    def _items(self, position: int) -> list[tuple[tuple[bool, ...], int]]:
        """The items at a position that there can be: for each count whether they add to it, and the node."""
        position = min(position, len(self.ways) - 1)
        items = self._nodes_at.get(position)
        if items is None:
            items = self._nodes_at[position] = []
            for counted, goal in self.ways[position]:
                node = self.lowering.item(goal)
                if node != self.builder.nothing:
                    items.append((counted, self.lowering.part(node) if self.kinds else node))
        return items
