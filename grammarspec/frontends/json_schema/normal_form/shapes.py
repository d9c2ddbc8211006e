"""Shapes: the normal form of a goal, without any trace of the keywords that it came from.

A *goal* is a list of subschemas that must hold of one value at once. The shape of a goal is one of three records:

* :class:`Alternatives`: the value satisfies at least one of some other goals;
* :class:`Constants`: the value is one of some constants;
* :class:`Values`: the value has one of some types, and for each type there is a record of what is asked of it.

Members and items of values are described by goals again, so the shapes of a recursive schema form a graph. Shapes are
made by :class:`.NormalForms`. The room ``lowering`` turns them into grammar nodes, and sees nothing else of a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from grammarspec.errors import GrammarError, GrammarSyntaxError
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Subschema
from grammarspec.frontends.json_schema.json_values import ALL_TYPES, ARRAY, NUMBER, OBJECT, Bound, Number
from grammarspec.frontends.json_schema.keywords.types_and_sizes import OF_TYPES, Types
from grammarspec.frontends.json_schema.normal_form.presence import Presence

__all__ = [
    "ANY", "ANY_ARRAY", "ANY_NUMBER", "ANY_OBJECT", "ANY_STRING", "ANY_VALUE", "NONE", "NO_VALUE", "Alternatives",
    "ArrayShape", "Constants", "CountedItems", "DeclaredMember", "Format", "Goal", "ItemCount", "NameClass",
    "NumberShape", "ObjectShape", "Pattern", "Shape", "StringShape", "UndeclaredMembers", "Values", "Where", "alone",
    "both", "of_types", "place",
]  # fmt: skip

Goal = tuple[Subschema, ...]
"""Subschemas that must hold at once, each of them once; whoever is above this package compares goals and no more."""

ANY: Final[Goal] = ()
"""The goal that every value satisfies."""
NONE: Final[Goal] = (NOTHING,)
"""The goal that no value satisfies."""
_OF_TYPES: Final = {bits: (schema,) for bits, schema in OF_TYPES.items()}
"""The goals of all values of some types, which most schemas ask for in many places."""


def both(schemas: Iterable[Subschema]) -> Goal:
    """The goal that all these subschemas hold. Equal goals that are written differently become the same goal."""
    goal = tuple(schemas)
    if len(goal) > 1:
        if NOTHING in goal:
            return NONE
        goal = tuple(dict.fromkeys(schema for schema in goal if schema is not ANYTHING))
    return alone(goal[0]) if len(goal) == 1 else goal


def alone(schema: Subschema) -> Goal:
    """The goal that one subschema holds; one that asks for nothing, or for types only, has the goal of all such."""
    if schema is NOTHING:
        return NONE
    try:
        asked = schema.assertions
    except GrammarSyntaxError:  # it is malformed, as whoever asks for the shape of the goal is told
        return (schema,)
    if len(asked) == 1 and isinstance(asked[0], Types):
        return _OF_TYPES.get(asked[0].bits) or (schema,)
    return (schema,) if asked else ANY


def of_types(goal: Goal, types: int) -> Goal:
    """The goal of the values of some types, as bits, that satisfy a goal."""
    return both((*goal, OF_TYPES[types]))


def place(goal: Goal) -> str:
    """The JSON pointer of a goal, for errors: that of its first subschema."""
    return goal[0].pointer if goal else "#"


class Where(Protocol):
    """Finds the place of keywords in the schema, for errors."""

    def __call__(self, *keywords: str) -> str:
        """The JSON pointer of the first of these keywords that the schema has; without any, that of the schema."""
        ...


def _nowhere(*keywords: str) -> str:
    """The place of what no schema asks."""
    return "#"


# ---------------------------------------------------------------------- strings and numbers
class Pattern(NamedTuple):
    """The strings in which an ECMA-262 pattern matches somewhere, or those in which it does not.

    Attributes:
        text: the pattern.
        where: returns its JSON pointer, for errors.
        wanted: whether it must match; if not, it must not.
    """

    text: str
    where: Callable[[], str]
    wanted: bool = True

    def refused(self, error: GrammarError) -> GrammarError:
        """An error of the regex front-end as one that names the place of the pattern."""
        where = self.where()
        place = f"{error.where}\n  at {where}" if error.where else where
        return type(error)(f"pattern: {error.message}", where=place, hint=error.hint)


class Format(NamedTuple):
    """The strings of a ``format``, or all others.

    Attributes:
        name: of the format.
        wanted: whether strings must be of the format; if not, they must not.
    """

    name: str
    wanted: bool


class StringShape(NamedTuple):
    """What is asked of strings.

    Attributes:
        least, most: bounds of the length in characters; a ``most`` of ``None`` is no bound.
        texts: patterns and formats.
        excluded: strings that are not allowed.
        words: if given, only these strings are allowed; they satisfy the bounds of the length.
    """

    least: int = 0
    most: int | None = None
    texts: Sequence[Pattern | Format] = ()
    excluded: Sequence[str] = ()
    words: Sequence[str] | None = None


class NumberShape(NamedTuple):
    """What is asked of numbers.

    Attributes:
        types: ``INTEGER``, ``FRACTION`` or both, as bits: which numbers are allowed.
        low, high: bounds, each with whether it is exclusive; ``None`` is no bound.
        multiples: divisors, each with whether it must divide the number; if not, it must not.
        excluded: numbers that are not allowed.
        digits_only: whether integers, if they alone are allowed, are spelled with digits only (draft 4).
    """

    types: int
    low: Bound | None = None
    high: Bound | None = None
    multiples: Sequence[tuple[Number, bool]] = ()
    excluded: Sequence[Number] = ()
    digits_only: bool = False


# ---------------------------------------------------------------------- arrays
class ItemCount(NamedTuple):
    """Bounds of the number of items that satisfy some schema; a ``most`` of ``None`` is no bound."""

    least: int
    most: int | None


class CountedItems(NamedTuple):
    """The items of an array in which some are counted (``contains``).

    Attributes:
        counts: the bounds of each count.
        ways: for each position, the ways in which its item may count: for each count whether the item adds to it, and
            the goal of such an item. All positions after the last one given are like that one.
        at_a_time: the most items in one run of items that add to no count, where positions are not counted; ``None``
            is no bound.
    """

    counts: Sequence[ItemCount]
    ways: Sequence[Sequence[tuple[tuple[bool, ...], Goal]]]
    at_a_time: int | None = None


class ArrayShape(NamedTuple):
    """What is asked of arrays.

    Attributes:
        first: the goals of the first items, one per position.
        rest: the goal of all further items.
        least, most: bounds of the number of items; a ``most`` of ``None`` is no bound.
        counted: counts of items; ``first`` and ``rest`` are not used then.
        unique: whether all items differ. ``most`` is then at most the number of values that items can have.
        endless: if they do, whether an item can become any of infinitely many values until it ends.
        where: finds the place of keywords.
    """

    first: Sequence[Goal] = ()
    rest: Goal = ANY
    least: int = 0
    most: int | None = None
    counted: CountedItems | None = None
    unique: bool = False
    endless: bool = False
    where: Where = _nowhere

    @property
    def goals(self) -> Sequence[Goal]:
        """The goals of its items."""
        if self.counted is None:
            return [*self.first, self.rest]
        return [goal for ways in self.counted.ways for _, goal in ways]


# ---------------------------------------------------------------------- objects
class DeclaredMember(NamedTuple):
    """A member with a name that the schema mentions.

    Attributes:
        name: its name.
        value: the goal of its value.
        required: whether it must be present.
        ordered: whether it keeps its place among the declared members; if not, it may come anywhere.
    """

    name: str
    value: Goal
    required: bool
    ordered: bool


class NameClass(NamedTuple):
    """Undeclared members whose names match the same patterns.

    Attributes:
        patterns: the patterns that the name matches, and those that it does not match.
        value: the goal of the value.
    """

    patterns: Sequence[Pattern]
    value: Goal


class UndeclaredMembers(NamedTuple):
    """Members with names that the schema does not mention.

    Attributes:
        taken: the names that they do not have.
        patterns: patterns that all their names match, or do not match.
        names: what is asked of all their names; each name satisfies one shape of each of these lists.
        classes: the classes that they are divided into.
    """

    taken: Sequence[str]
    patterns: Sequence[Pattern]
    names: Sequence[Sequence[StringShape]]
    classes: Sequence[NameClass]


class ObjectShape(NamedTuple):
    """What is asked of objects.

    Attributes:
        members: the declared members. Those that keep their place come first, in order.
        undeclared: all other members; ``None`` if there can be none.
        witnesses: the number of conditions "there is an undeclared member such that", each of which needs a member.
        witnessed: the undeclared members that satisfy some of these conditions, with the indices of the conditions.
        least, most: bounds of the number of members; a ``most`` of ``None`` is no bound.
        presence: conditions on which members are present; only given if all declared members may come anywhere.
        few: whether there may be only finitely many names for undeclared members.
        enough_names: whether there are provably infinitely many, or as many as there can be members; only known if
            several undeclared members may have to count.
        enough_witnesses: the same for undeclared members that satisfy any of the conditions.
        where: finds the place of keywords.
    """

    members: Sequence[DeclaredMember] = ()
    undeclared: UndeclaredMembers | None = None
    witnesses: int = 0
    witnessed: Sequence[tuple[tuple[int, ...], UndeclaredMembers]] = ()
    least: int = 0
    most: int | None = None
    presence: Sequence[Presence] = ()
    few: bool = False
    enough_names: bool = False
    enough_witnesses: bool = False
    where: Where = _nowhere

    @property
    def goals(self) -> Sequence[Goal]:
        """The goals of its members' values."""
        goals = [member.value for member in self.members]
        if self.undeclared is not None:
            goals += [one.value for one in self.undeclared.classes]
        for _, members in self.witnessed:
            goals += [one.value for one in members.classes]
        return goals


# ---------------------------------------------------------------------- values
ANY_STRING: Final = StringShape()
ANY_NUMBER: Final = NumberShape(NUMBER)
ANY_ARRAY: Final = ArrayShape()
ANY_OBJECT: Final = ObjectShape()


class Values(NamedTuple):
    """All values of some types that satisfy what is asked of each type.

    Attributes:
        types: the types, as bits; 0 if there is no such value.
        string, number, array, object: what is asked of the values of each type; of no meaning if ``types`` lacks it.
    """

    types: int
    string: StringShape = ANY_STRING
    number: NumberShape = ANY_NUMBER
    array: ArrayShape = ANY_ARRAY
    object: ObjectShape = ANY_OBJECT

    @property
    def is_scalar(self) -> bool:
        """Whether no array and no object is among them."""
        return not self.types & (ARRAY | OBJECT)

    @property
    def goals(self) -> Sequence[Goal]:
        """The goals of members and items."""
        if not self.types & OBJECT:
            return self.array.goals if self.types & ARRAY else ()
        return [*self.array.goals, *self.object.goals] if self.types & ARRAY else self.object.goals


ANY_VALUE: Final = Values(ALL_TYPES)
NO_VALUE: Final = Values(0)


class Constants(NamedTuple):
    """Some constants.

    Attributes:
        values: constants that are allowed.
        undecided: strings of which it is not known yet which are allowed, as a shape of these words.
        whole: whether all numbers among them must be integers.
        digits_only: whether integers are spelled with digits only (draft 4).
    """

    values: Sequence[Any]
    undecided: StringShape | None = None
    whole: bool = False
    digits_only: bool = False

    @property
    def goals(self) -> Sequence[Goal]:
        """None: constants have no further parts."""
        return ()


class Alternatives(NamedTuple):
    """The values that satisfy at least one goal of several."""

    goals: Sequence[Goal]


Shape = Values | Constants | Alternatives
