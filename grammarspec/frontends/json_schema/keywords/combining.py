"""Keywords that apply other schemas to the same value: references, ``allOf``, ``anyOf``, ``oneOf``, ``not``, ``if``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Final

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Assertion, Parser, Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Holds, Keyword, always
from grammarspec.frontends.json_schema.keywords.values import schema_list

__all__ = ["KEYWORDS", "AllOf", "AnyOf", "Conditional", "InPlace", "Not", "OneOf", "Reference", "negated"]

_MAX_BRANCHES: Final = 8  # the most branches of a oneOf whose negation has all pairs of them


class InPlace(Assertion):
    """An assertion that applies other schemas to the same value."""

    __slots__ = ()
    in_place: ClassVar[bool] = True

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """The schemas that it applies to the same value.

        Raises:
            GrammarError: a reference points to nothing.
        """
        raise NotImplementedError


def negated(schema: Subschema, origin: Subschema) -> Subschema:
    """The schema ``not`` of another one, whose keywords are not read yet. Errors name the place of ``origin``."""
    if schema is ANYTHING:
        return NOTHING
    return ANYTHING if schema is NOTHING else origin.derived(Not(schema))


@dataclass(slots=True, eq=False)
class Reference(InPlace):
    """The target of a reference holds.

    Attributes:
        keyword: ``$ref``, ``$dynamicRef`` or ``$recursiveRef``.
        reference: its value.
    """

    keyword: str
    reference: str

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Collect the target."""
        goals.collect(goals.target(schema, self.reference, self.keyword), facts)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The target fails."""
        yield (Not(goals.target(schema, self.reference, self.keyword)),)

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """The target."""
        yield goals.resolve(schema, self.reference, self.keyword)


@dataclass(slots=True, eq=False)
class AllOf(InPlace):
    """All parts hold."""

    parts: Sequence[Subschema]

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Collect the parts."""
        for part in self.parts:
            goals.collect(part, facts)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """A part fails."""
        for part in self.parts:
            yield (Not(part),)

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """The parts."""
        yield from self.parts


@dataclass(slots=True, eq=False)
class AnyOf(InPlace):
    """A branch holds."""

    branches: Sequence[Subschema]

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Collect a single branch, or one ``enum`` if all branches are constants; otherwise add a choice."""
        branches = goals.enumerated(schema, self.branches, differ=False)
        if len(branches) == 1:
            goals.collect(branches[0], facts)
        else:
            facts.add_choice(branches, last=False)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """All branches fail."""
        yield (AllOf([schema.derived(Not(branch)) for branch in self.branches]),)

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """The branches."""
        yield from self.branches


@dataclass(slots=True, eq=False)
class OneOf(InPlace):
    """Exactly one branch holds."""

    branches: Sequence[Subschema]

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """The same as for ``anyOf``, with alternatives that exclude each other."""
        branches = goals.enumerated(schema, self.branches, differ=True)
        if len(branches) == 1:
            goals.collect(branches[0], facts)
        else:
            facts.add_choice(goals.exclusive(schema, branches), last=False)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """All branches fail, or two hold. With more than 8 branches, the latter is left out: a narrowing."""
        yield (AllOf([schema.derived(Not(branch)) for branch in self.branches]),)
        if len(self.branches) <= _MAX_BRANCHES:
            for pair in combinations(self.branches, 2):
                yield (AllOf(pair),)

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """The branches."""
        yield from self.branches


@dataclass(slots=True, eq=False)
class Not(InPlace):
    """A schema fails."""

    schema: Subschema

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Collect the negation."""
        facts.refused = [*facts.refused, self.schema]
        goals.collect(goals.negate(self.schema), facts)

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The schema holds."""
        yield (AllOf((self.schema,)),)

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """The schema that must fail."""
        yield self.schema


@dataclass(slots=True, eq=False)
class Conditional(InPlace):
    """``if`` with ``then`` and ``else``, which are ``None`` where they are not given."""

    condition: Subschema
    then: Subschema | None
    otherwise: Subschema | None

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add a choice: the condition and ``then`` hold, or the condition fails and ``else`` holds."""
        asks = any(part is not None and not part.asks_nothing for part in (self.then, self.otherwise))
        if asks or self.condition.is_malformed:
            facts.add_choice(schema.derive(("if", self), lambda: self._alternatives(schema)))

    def _alternatives(self, schema: Subschema) -> list[Subschema]:
        failed = schema.derived(Not(self.condition))
        then = ANYTHING if self.then is None else self.then
        otherwise = ANYTHING if self.otherwise is None else self.otherwise
        return [schema.derived(AllOf((self.condition, then))), schema.derived(AllOf((failed, otherwise)))]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The condition holds and ``then`` fails, or the condition and ``else`` fail."""
        if self.then is not None:
            yield (AllOf((self.condition, schema.derived(Not(self.then)))),)
        if self.otherwise is not None:
            yield (AllOf((schema.derived(Not(self.condition)), schema.derived(Not(self.otherwise)))),)

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """The condition, ``then`` and ``else``."""
        yield self.condition
        yield from (part for part in (self.then, self.otherwise) if part is not None)


# ---------------------------------------------------------------------- parsing
def _reference(keyword: str) -> Parser:
    def parse(schema: Subschema, value: Any) -> Reference:
        if not isinstance(value, str):
            raise schema.malformed(keyword, "a string")
        return Reference(keyword, value)

    return parse


def _if(schema: Subschema, value: Any) -> Conditional:
    then, otherwise = (
        schema.child(schema.keywords[keyword], keyword) if keyword in schema.keywords else None
        for keyword in ("then", "else")
    )
    return Conditional(schema.child(value, "if"), then, otherwise)


def _one_of_neutral(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """Replace ``oneOf`` by ``anyOf`` in the same place; if there is an ``anyOf`` already, remove ``oneOf``."""
    if "anyOf" in schema or not isinstance(schema[keyword], list):
        del schema[keyword]
        return
    entries = list(schema.items())
    schema.clear()
    schema.update((("anyOf" if name == keyword else name), value) for name, value in entries)


def _in_place(name: str, parse: Parser | None, holds: Holds, *makes: type, **more: Any) -> Keyword:
    return Keyword(
        name, parse=parse, makes=makes, holds=holds, in_place=True, **{"vocabularies": ("applicator",), **more}
    )


KEYWORDS = (
    _in_place("$ref", _reference("$ref"), Holds.NOTHING, Reference, vocabularies=("core",)),
    _in_place("$dynamicRef", _reference("$dynamicRef"), Holds.NOTHING, Reference, since=2020, vocabularies=("core",)),
    _in_place(
        "$recursiveRef", _reference("$recursiveRef"), Holds.NOTHING, Reference, since=2019, until=2019,
        vocabularies=("core",),
    ),
    _in_place("allOf", lambda schema, value: AllOf(schema_list(schema, "allOf", value)), Holds.LIST, AllOf),
    _in_place("anyOf", lambda schema, value: AnyOf(schema_list(schema, "anyOf", value)), Holds.LIST, AnyOf),
    _in_place(
        "oneOf", lambda schema, value: OneOf(schema_list(schema, "oneOf", value)), Holds.LIST, OneOf,
        tests=always, neutral=_one_of_neutral,
    ),
    _in_place("not", lambda schema, value: Not(schema.child(value, "not")), Holds.ONE, Not, tests=always),
    _in_place("if", _if, Holds.ONE, Conditional, since=7, tests=always),
    _in_place("then", None, Holds.ONE, since=7, read_with=("if",)),
    _in_place("else", None, Holds.ONE, since=7, read_with=("if",)),
)  # fmt: skip
