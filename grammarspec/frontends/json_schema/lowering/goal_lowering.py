"""Turns goals into grammar nodes.

A goal comes in; its shape says what becomes of it: a union of other goals, some constants, or one alternative per JSON
type. A goal that is met again while it is being lowered becomes a call of a rule, so recursive schemas give recursive
grammars.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

from grammarspec.errors import GrammarError, GrammarSyntaxError
from grammarspec.frontends.json_schema.json_values import ARRAY, FALSE, NULL, NUMBER, OBJECT, STRING, TRUE
from grammarspec.frontends.json_schema.lowering.arrays import array_node
from grammarspec.frontends.json_schema.lowering.constants import constants_node
from grammarspec.frontends.json_schema.lowering.context import Lowering
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
from grammarspec.positions import lone_surrogate

__all__ = ["GoalLowering"]

_Key = Hashable

_OPERAND = 2  # steps for each operand of a node
_MAX_HEIGHT = 200  # nodes nested without a rule between them; deeper goals become rules, below the compiler's limit
_INLINE_DEPTH = 24  # goals lowered inside each other by recursion; deeper ones are deferred, to bound Python's stack


class GoalLowering(Lowering):
    """Lowers the goals of one document."""

    def __init__(self, forms: NormalForms, builder: SchemaBuilder, text: JsonText) -> None:
        """Nothing is lowered yet.

        Args:
            forms: the shapes of the document's goals.
            builder: what makes the nodes.
            text: the spellings of values.
        """
        super().__init__(builder, text, any_order=forms.any_order)
        self.forms = forms
        self._nodes: dict[_Key, int] = {}
        self._open: dict[_Key, int | None] = {}
        """Goals that are being lowered, each with its rule, or ``None`` until the goal is met within itself."""
        self._calls: dict[int, int] = {}
        self._deferred: list[tuple[int, Goal, JsonText]] = []
        self._depth = 0
        self._size = builder.size

    # ------------------------------------------------------------------ entry
    def start(self) -> int:
        """The node of the whole document, after the goals deferred for their depth have been lowered, too.

        Raises:
            GrammarError: the schema cannot be enforced; the error names the place.
        """
        node = self.lower(self.forms.start)
        self.finish()
        return node

    def finish(self) -> bool:
        """Lower the goals that were deferred for their depth. Returns whether there were any.

        Raises:
            GrammarError: as :meth:`start`.
        """
        deferred = bool(self._deferred)
        while self._deferred:
            rule, goal, self.text = self._deferred.pop()
            self.builder.define(rule, self._lowered(goal, self.forms[goal]))
        return deferred

    def lower(self, goal: Goal) -> int:
        """The node of the values that satisfy a goal; it is made once for each goal and kind of spelling.

        Raises:
            GrammarError: the goal cannot be enforced, or the grammar becomes too large.
        """
        if self.container:
            return self.inside(partial(self.lower, goal))
        goal = self.forms.resolved(goal)
        if not goal:
            return self.text.value
        if goal is NONE:
            return self.builder.nothing
        variant = self.text.variant
        key: _Key = (variant, goal) if variant else goal
        node = self._nodes.get(key)
        if node is not None:
            return self._call(node) if node in self.composite else node
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

    # ------------------------------------------------------------------ one goal
    def _lowered(self, goal: Goal, shape: Shape) -> int:
        added = self.builder.size - self._size
        self._size += added
        try:
            self.forms.goals.budget.spend(_OPERAND * added)
            if isinstance(shape, Values):
                return self._values(shape)
            if isinstance(shape, Constants):
                return constants_node(self, shape)
            return self.any_of([self.lower(alternative) for alternative in shape.goals])
        except UnicodeEncodeError as error:
            raise GrammarSyntaxError(lone_surrogate(error), where=place(goal)) from None
        except GrammarError as error:
            if error.where:
                raise
            raise type(error)(error.message, where=place(goal), hint=error.hint) from None

    def _values(self, shape: Values) -> int:
        """The union over the types of the values."""
        types = shape.types
        if types in (OBJECT, STRING, ARRAY):
            return self._one_type(shape, types)
        if not types & ~NUMBER:
            return number_node(self, shape.number) if types else self.builder.nothing
        if shape == ANY_VALUE:
            return self.text.value
        text = self.text
        parts = [self._one_type(shape, bit) for bit in (STRING, ARRAY, OBJECT) if types & bit]
        if types & NUMBER:
            parts.append(number_node(self, shape.number))
        if types & TRUE:
            parts.append(text.true)
        if types & FALSE:
            parts.append(text.false)
        if types & NULL:
            parts.append(text.null)
        return self.any_of(parts)

    def _one_type(self, shape: Values, bit: int) -> int:
        if bit == STRING:
            return string_node(self, shape.string)
        self.enter(bit)
        node = object_node(self, shape.object) if bit == OBJECT else array_node(self, shape.array)
        self.leave()
        if node != self.builder.nothing:
            self.composite.add(node)
        return node
