"""Turns goals into grammar nodes.

A goal comes in; its shape says what becomes of it: a union of other goals, some constants, or one alternative per JSON
type. A goal that is met again while it is being lowered becomes a call of a rule, so recursive schemas give recursive
grammars.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property

from grammarspec.errors import GrammarError, LimitExceeded
from grammarspec.frontends.json_schema.formats.table import Formats
from grammarspec.frontends.json_schema.json_values import ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE
from grammarspec.frontends.json_schema.lowering.arrays import array_node
from grammarspec.frontends.json_schema.lowering.constants import constants_node
from grammarspec.frontends.json_schema.lowering.context import Text
from grammarspec.frontends.json_schema.lowering.intervals import Intervals
from grammarspec.frontends.json_schema.lowering.multiples import Multiples
from grammarspec.frontends.json_schema.lowering.numbers import number_node
from grammarspec.frontends.json_schema.lowering.objects import object_node
from grammarspec.frontends.json_schema.lowering.strings import string_node
from grammarspec.frontends.json_schema.normal_form.normal_forms import NormalForms
from grammarspec.frontends.json_schema.normal_form.shapes import (
    ANY_VALUE,
    NONE,
    Constants,
    Goal,
    Shape,
    Values,
    place,
)
from grammarspec.frontends.json_schema.spelling.builder import SchemaBuilder
from grammarspec.frontends.json_schema.spelling.json_text import JsonText
from grammarspec.grammars.builder import PART

__all__ = ["GoalLowering"]

_Key = Hashable

MAX_SIZE = 4_000_000
"""The most operands that the builder's nodes may have."""
_MAX_HEIGHT = 200  # nodes nested without a rule between them; deeper goals become rules, below the compiler's limit
_INLINE_DEPTH = 24  # goals lowered inside each other by recursion; deeper ones are deferred, to bound Python's stack


class GoalLowering:
    """Lowers the goals of one document. It implements the protocol :class:`.Lowering`."""

    def __init__(self, forms: NormalForms, builder: SchemaBuilder, text: JsonText) -> None:
        self.forms, self.builder, self.any_order = forms, builder, forms.any_order
        self.text = text
        """The spellings of values, at the nesting level of the value that is being lowered."""
        self.container = 0
        """If lines are indented: the type bit of the object or array whose parts are being lowered; otherwise 0."""
        self.patterns: dict[tuple[str, bool], Text] = {}
        self._nodes: dict[_Key, int] = {}
        self._open: dict[_Key, int | None] = {}
        """Goals that are being lowered, each with its rule, or ``None`` until the goal is met within itself."""
        self._composite: set[int] = set()
        """Nodes of objects and arrays. They are large, so a second use of one becomes a call of a rule."""
        self._calls: dict[int, int] = {}
        self._parts: dict[int, int] = {}
        self._deferred: list[tuple[int, Goal, JsonText]] = []
        self._depth = 0
        self.height = 0
        """An estimate of the nesting depth of the nodes made for the goal that is being lowered."""

    # Few schemas have formats or bounds of numbers, so what makes their nodes is created at the first use.
    @cached_property
    def formats(self) -> Formats:
        """Makes the nodes of ``format``."""
        return Formats(self.builder, self.text.exact)

    @cached_property
    def intervals(self) -> Intervals:
        """Makes the nodes of numbers between bounds."""
        return Intervals(self.builder, self.text)

    @cached_property
    def multiples(self) -> Multiples:
        """Makes the nodes of numbers with ``multipleOf``."""
        return Multiples(self.builder, self.intervals)

    # ------------------------------------------------------------------ entry
    def start(self) -> int:
        """The node of the whole document, after the goals deferred for their depth have been lowered, too.

        Raises:
            GrammarError: the schema cannot be enforced; the error names the place.
        """
        node = self.lower(self.forms.start)
        while self._deferred:
            rule, goal, self.text = self._deferred.pop()
            self.builder.define(rule, self._lowered(goal, self.forms[goal]))
        return node

    def lower(self, goal: Goal) -> int:
        """The node of the values that satisfy a goal; it is made once for each goal and kind of spelling.

        Raises:
            GrammarError: the goal cannot be enforced, or the grammar becomes too large.
        """
        if self.container:
            return self.inside(lambda: self.lower(goal))
        if not goal:
            return self.text.value
        if goal is NONE:
            return self.builder.nothing
        variant = self.text.variant
        key: _Key = (variant, goal) if variant else goal
        node = self._nodes.get(key)
        if node is not None:
            return self._call(node) if node in self._composite else node
        if key in self._open:
            rule = self._open[key]
            if rule is None:
                rule = self._open[key] = self.builder.rule("recursive")
            return self.builder.call(rule)
        shape = self.forms[goal]
        if isinstance(shape, Values) and shape.is_scalar:  # no goal can be met within it
            node = self._nodes[key] = self._lowered(goal, shape)
            return node
        if self._depth >= _INLINE_DEPTH:
            rule = self.builder.rule("nested")
            node = self._nodes[key] = self.builder.call(rule)
            self._deferred.append((rule, goal, self.text))
            return node
        self._open[key] = None
        self._depth += 1
        outer, self.height = self.height, 0
        node = self._lowered(goal, shape)
        self._depth -= 1
        rule = self._open.pop(key)
        if rule is not None:
            self.builder.define(rule, node)
            node = self.builder.call(rule)
        elif self.height > _MAX_HEIGHT:
            node, self.height = self._call(node), 0
        self._nodes[key] = node
        self.height = max(outer, self.height + 4)
        return node

    def _call(self, node: int) -> int:
        """A call of the rule for a node that is used more than once."""
        call = self._calls.get(node)
        if call is None:
            rule = self.builder.rule("shared")
            self.builder.define(rule, node)
            call = self._calls[node] = self.builder.call(rule)
        return call

    # ------------------------------------------------------------------ levels
    def enter(self, container: int) -> None:
        """Begin the members of an object or the items of an array; :meth:`leave` ends them.

        Args:
            container: the type bit, ``OBJECT`` or ``ARRAY``.
        """
        if self.text.line is not None:
            self.container = container

    def leave(self) -> None:
        """End the members or items that :meth:`enter` began."""
        self.container = 0

    def inside(self, make: Callable[[], int]) -> int:
        """The node that ``make`` returns one nesting level deeper; an item of an array comes with its line break."""
        text, container = self.text, self.container
        if text.inner is None:
            return self.builder.nothing
        self.text, self.container = text.inner, 0
        node = make()
        self.text, self.container = text, container
        return text.item(node) if container == ARRAY and node != self.builder.nothing else node

    # ------------------------------------------------------------------ values that are compared
    def telling_apart(self, make: Callable[[], int]) -> int:
        """The node that ``make`` returns when values are spelled so that they can be compared (``uniqueItems``)."""
        text = self.text
        self.text = text.telling_apart
        node = make()
        self.text = text
        return node

    def part(self, node: int) -> int:
        """An item of an array with ``uniqueItems``: a call of a rule of its own, which the compiler does not inline."""
        part = self._parts.get(node)
        if part is None:
            rule = self.builder.rule("item", PART)
            self.builder.define(rule, node)
            part = self._parts[node] = self.builder.call(rule)
        return part

    # ------------------------------------------------------------------ one goal
    def _lowered(self, goal: Goal, shape: Shape) -> int:
        if self.builder.size > MAX_SIZE:
            raise LimitExceeded(f"schema size: more than {MAX_SIZE} operands of grammar nodes")
        try:
            if isinstance(shape, Values):
                return self._values(shape)
            if isinstance(shape, Constants):
                return constants_node(self, shape)
            return self.any_of([self.lower(alternative) for alternative in shape.goals])
        except GrammarError as error:
            if error.where:
                raise
            raise type(error)(error.message, where=place(goal), hint=error.hint) from None

    def _values(self, shape: Values) -> int:
        """The union over the types of the values."""
        types = shape.types
        if types in (OBJECT, STRING, ARRAY):
            return self._one_type(shape, types)
        if shape == ANY_VALUE:
            return self.text.value
        text = self.text
        parts = [self._one_type(shape, bit) for bit in (STRING, ARRAY, OBJECT) if types & bit]
        if types & NUMBER:
            parts.append(number_node(self, shape.number))
        parts += [node for bit, node in ((TRUE, text.true), (FALSE, text.false), (NULL, text.null)) if types & bit]
        return self.any_of(parts)

    def _one_type(self, shape: Values, bit: int) -> int:
        if bit == STRING:
            return string_node(self, shape.string)
        self.enter(bit)
        node = object_node(self, shape.object) if bit == OBJECT else array_node(self, shape.array)
        self.leave()
        if node != self.builder.nothing:
            self._composite.add(node)
        return node

    def any_of(self, parts: Sequence[int]) -> int:
        """The union of these nodes, without duplicates and without nodes of the empty language."""
        kept = [part for part in dict.fromkeys(parts) if part != self.builder.nothing]
        if not kept:
            return self.builder.nothing
        if len(kept) == 1:
            return kept[0]
        node = self.builder.alt(*kept)
        if not self._composite.isdisjoint(kept):
            self._composite.add(node)
        return node
