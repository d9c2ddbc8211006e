"""``enum`` and ``const``: the value is one of some constants, or (negated) none of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grammarspec.errors import GrammarSyntaxError
from grammarspec.frontends.json_schema.document.subschema import NOTHING, Assertion, Subschema
from grammarspec.frontends.json_schema.json_values import (
    ARRAY,
    FALSE,
    NULL,
    OBJECT,
    TRUE,
    canonical,
    check_names,
    type_of,
)
from grammarspec.frontends.json_schema.keywords.arrays import Items
from grammarspec.frontends.json_schema.keywords.combining import AllOf, Not
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Choices, Keyword
from grammarspec.frontends.json_schema.keywords.narrowing import STRINGS
from grammarspec.frontends.json_schema.keywords.objects import Members, Required
from grammarspec.frontends.json_schema.keywords.types_and_sizes import (
    IS_ARRAY,
    IS_OBJECT,
    ITEMS,
    MEMBERS,
    AtLeast,
    AtMost,
)

__all__ = ["KEYWORDS", "Constants", "NoneOf"]


class Constants(Assertion):
    """The value is one of some constants."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Keep only the constants that are among these."""
        facts.asked |= Concern.CONSTANTS
        if facts.enum is None:
            facts.enum = self.values
        else:
            allowed = {canonical(constant) for constant in self.values}
            facts.enum = [constant for constant in facts.enum if canonical(constant) in allowed]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The value is none of the constants; nonempty arrays and objects are negated part by part."""
        composite = [constant for constant in self.values if isinstance(constant, list | dict) and constant]
        if not composite:
            yield (NoneOf(self.values),)
            return
        others = [constant for constant in self.values if not (isinstance(constant, list | dict) and constant)]
        unlike = [schema.derived(Not(_spelled_out(constant, schema))) for constant in composite]
        yield (AllOf([schema.derived(NoneOf(others)), *unlike]),)


class NoneOf(Assertion):
    """The value is none of some constants: scalars, and the empty array and object."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Exclude the constants: ``null``, ``true`` and ``false`` by their types, ``[]`` and ``{}`` by their size."""
        facts.asked |= Concern.EXCLUDED
        excluded = list(facts.excluded)
        for constant in self.values:
            bit = type_of(constant)
            if bit & (NULL | TRUE | FALSE):
                facts.asked |= Concern.TYPES
                facts.types &= ~bit
            elif constant == [] and bit == ARRAY:
                AtLeast(ITEMS, 1).add(facts, goals, schema)
            elif constant == {} and bit == OBJECT:
                AtLeast(MEMBERS, 1).add(facts, goals, schema)
            else:
                excluded.append(constant)
        facts.excluded = excluded

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The value is one of the constants."""
        yield (Constants(self.values),)


def _spelled_out(constant: list[Any] | dict[str, Any], schema: Subschema) -> Subschema:
    """A schema that is equivalent to ``const`` of an array or object, made of a ``const`` for each part.

    Raises:
        GrammarSyntaxError: a name of a member is no text.
    """
    if isinstance(constant, list):
        items = Items([schema.derived(Constants((item,))) for item in constant])
        return schema.derived(IS_ARRAY, items, AtLeast(ITEMS, len(constant)), AtMost(ITEMS, len(constant)))
    check_names(constant)
    members = {name: schema.derived(Constants((member,))) for name, member in constant.items()}
    return schema.derived(IS_OBJECT, Required(tuple(members)), Members(members, {}, NOTHING, True))


def _enum(schema: Subschema, value: Any) -> Constants:
    if not isinstance(value, list):
        raise schema.malformed("enum", "an array")
    for number, constant in enumerate(value):
        _check(constant, schema, "enum", str(number))
    return Constants(value)


def _const(schema: Subschema, value: Any) -> Constants:
    _check(value, schema, "const")
    return Constants((value,))


def _check(constant: Any, schema: Subschema, *keyword: str) -> None:
    """Check that a constant is a JSON value; what is inside of arrays and objects is looked at when it is spelled.

    Raises:
        GrammarSyntaxError: it is none.
    """
    try:
        type_of(constant)
    except GrammarSyntaxError as error:
        raise GrammarSyntaxError(error.message, where=schema.where(*keyword)) from None


def _narrowings(constants: list[Any], choices: Choices) -> Iterator[str]:
    found = set(_kinds(constants))
    if "string" in found:
        yield STRINGS
    if "number" in found:
        yield "numbers are spelled as written, as json.dumps does" + ("" if choices.plain else ", and with .0")
    if "members" in found and not choices.any_order:
        yield "members come in the order given"


def _enum_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    yield from _narrowings(value, choices)


def _const_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    yield from _narrowings([value], choices)


def _kinds(constants: list[Any]) -> Iterator[str]:
    pending = [*constants]
    while pending:
        constant = pending.pop()
        match constant:
            case str():
                yield "string"
            case bool() | None:
                pass
            case dict():
                if len(constant) > 1:
                    yield "members"
                yield "string"
                pending.extend(constant.values())
            case list():
                pending.extend(constant)
            case _:
                yield "number"


KEYWORDS = (
    Keyword("enum", parse=_enum, makes=(Constants,), narrowings=_enum_narrowings),
    Keyword("const", parse=_const, makes=(Constants,), since=6, narrowings=_const_narrowings),
)
