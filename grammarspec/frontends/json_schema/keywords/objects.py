"""Members of objects: ``properties`` with its companions, ``required`` and ``propertyNames``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Assertion, Parser, Subschema
from grammarspec.frontends.json_schema.json_values import OBJECT
from grammarspec.frontends.json_schema.keywords.combining import negated
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction, ObjectFacet, SomeMember
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Choices, Holds, Keyword, replace_by_true
from grammarspec.frontends.json_schema.keywords.narrowing import DISTINCT, KEYS, keys
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT, MEMBERS, AtLeast
from grammarspec.frontends.json_schema.keywords.values import name_list, schema_map

__all__ = ["KEYWORDS", "Members", "Names", "Required", "Some", "SomeUndeclared", "absent"]


class Members(ObjectFacet, Assertion):
    """Members satisfy the schemas of their name and of the patterns it matches; all others satisfy ``rest``."""

    __slots__ = ()

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the facet."""
        facts.asked |= Concern.MEMBERS
        if facts.members.pop(schema, True) is None:  # moved to the end: schemas with members are in the order of these
            facts.members[schema] = None
        facts.objects = [*facts.objects, self]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """A member is present and fails its schema: one way per name and pattern, and one for all other members."""
        for name, member in self.properties.items():
            if not member.is_empty:
                yield IS_OBJECT, Required((name,)), Members({name: negated(member, schema)})
        for pattern, member in self.patterns.items():
            if not member.is_empty:
                yield IS_OBJECT, Some(within=pattern, value=negated(member, schema))
        if not self.rest.is_empty:
            if self.rest is NOTHING and not self.properties and not self.patterns:
                yield IS_OBJECT, AtLeast(MEMBERS, 1)
            else:
                others = Some(frozenset(self.properties), tuple(self.patterns), value=negated(self.rest, schema))
                yield IS_OBJECT, others


def absent(*names: str) -> Members:
    """The assertion that objects have no members of these names."""
    return Members(dict.fromkeys(names, NOTHING))


class Required(Assertion):
    """Objects have members of these names."""

    __slots__ = ("names",)

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the names."""
        facts.asked |= Concern.REQUIRED
        names = dict.fromkeys(self.names)
        facts.required = {**facts.required, **names} if facts.required else names

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """One of the members is missing."""
        for name in self.names:
            yield IS_OBJECT, absent(name)


class Names(Assertion):
    """The names of all members satisfy a schema."""

    __slots__ = ("schema",)

    def __init__(self, schema: Subschema) -> None:
        self.schema = schema

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the schema."""
        facts.asked |= Concern.SIZE
        facts.names = [*facts.names, self.schema]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """There is a member whose name does not satisfy the schema."""
        if not self.schema.is_empty:
            yield IS_OBJECT, Some(name=negated(self.schema, schema))


class Some(SomeMember, Assertion):
    """There is a member, declared or not, with such a name and value (see :class:`.SomeMember`)."""

    __slots__ = ()

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the condition."""
        facts.asked |= Concern.SIZE
        facts.some = [*facts.some, self]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """That there is no such member cannot be expressed.

        Raises:
            UnsupportedFeature: always.
        """
        raise UnsupportedFeature("some member inside not", where=schema.pointer)


class SomeUndeclared(SomeMember, Assertion):
    """There is an undeclared member with such a name and value (see :class:`.SomeMember`)."""

    __slots__ = ()

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add the condition."""
        facts.asked |= Concern.SIZE
        facts.witnesses = [*facts.witnesses, self]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """That there is no such member cannot be expressed.

        Raises:
            UnsupportedFeature: always.
        """
        raise UnsupportedFeature("some member inside not", where=schema.pointer)


# ---------------------------------------------------------------------- parsing
_FACET: Final = frozenset(("properties", "patternProperties", "additionalProperties"))


def _members(keyword: str) -> Parser:
    """A parser of one of three keywords: the first of them in a schema is parsed to a facet for all three."""

    def parse(schema: Subschema, value: Any) -> Members | None:
        keywords = schema.keywords
        for other in keywords:
            if other in _FACET:
                if other != keyword:
                    return None
                break
        properties = schema_map(schema, "properties", keywords["properties"]) if "properties" in keywords else {}
        patterns: Mapping[str, Subschema] = {}
        has_patterns = "patternProperties" in keywords
        if has_patterns:
            patterns = schema_map(schema, "patternProperties", keywords["patternProperties"])
        if "additionalProperties" not in keywords:
            return Members(properties, patterns, ANYTHING, False, has_patterns, True)
        rest = schema.child(keywords["additionalProperties"], "additionalProperties")
        return Members(properties, patterns, rest, True, has_patterns, True)

    return parse


def _required(schema: Subschema, value: Any) -> Required:
    return Required(tuple(name_list(schema, "required", value)))


def _property_names(schema: Subschema, value: Any) -> Names:
    return Names(schema.child(value, "propertyNames"))


# ---------------------------------------------------------------------- reports
def _properties_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    yield KEYS
    if len(value) > 1 and not choices.any_order:
        yield "members come in the order of properties"
    if choices.closed and not {"additionalProperties", "patternProperties"} & schema.keys():
        yield "no other members, unless a subschema says more (additional_properties=False)"


def _additional_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    if negated:
        yield DISTINCT


def _names_narrowings(value: Any, schema: Mapping[str, Any], choices: Choices, negated: bool) -> Iterator[str]:
    yield KEYS
    if negated:
        yield DISTINCT


def _properties_neutral(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """Replace each schema by ``true``, so that the names stay declared."""
    if isinstance(schema[keyword], dict):
        schema[keyword] = dict.fromkeys(schema[keyword], True)
    else:
        del schema[keyword]


def _pattern_properties_neutral(schema: dict[str, Any], keyword: str, path: tuple[str, ...]) -> None:
    """Remove one pattern, or all. ``additionalProperties`` would apply to their members, so it becomes ``true``."""
    value = schema[keyword]
    if path and isinstance(value, dict):
        schema[keyword] = {pattern: part for pattern, part in value.items() if pattern != path[0]}
    else:
        del schema[keyword]
    schema["additionalProperties"] = True


_APPLICATOR = ("applicator",)

KEYWORDS = (
    Keyword(
        "properties", parse=_members("properties"), makes=(Members,), holds=Holds.MAP, about=OBJECT,
        vocabularies=_APPLICATOR, narrowings=_properties_narrowings, neutral=_properties_neutral,
    ),
    Keyword(
        "patternProperties", parse=_members("patternProperties"), makes=(Members,), holds=Holds.MAP, about=OBJECT,
        vocabularies=_APPLICATOR, narrowings=_names_narrowings, neutral=_pattern_properties_neutral,
    ),
    Keyword(
        "additionalProperties", parse=_members("additionalProperties"), makes=(Members,), holds=Holds.ONE,
        about=OBJECT, vocabularies=_APPLICATOR, narrowings=_additional_narrowings, neutral=replace_by_true,
    ),
    Keyword("required", parse=_required, makes=(Required,), about=OBJECT, narrowings=keys),
    Keyword(
        "propertyNames", parse=_property_names, makes=(Names,), holds=Holds.ONE, about=OBJECT, since=6,
        vocabularies=_APPLICATOR, narrowings=_names_narrowings,
    ),
)  # fmt: skip
