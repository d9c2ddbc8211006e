"""Constraints that depend on a member's presence: ``dependentRequired``, ``dependentSchemas``, ``dependencies``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Assertion, Subschema
from grammarspec.frontends.json_schema.json_values import OBJECT
from grammarspec.frontends.json_schema.keywords.combining import AllOf, InPlace, Not
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.keyword import Holds, Keyword
from grammarspec.frontends.json_schema.keywords.narrowing import keys
from grammarspec.frontends.json_schema.keywords.objects import Members, Required, absent
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT
from grammarspec.frontends.json_schema.keywords.values import mapping, name_list, schema_map

__all__ = ["KEYWORDS", "Dependents"]


@dataclass(slots=True, eq=False)
class Dependents(InPlace):
    """An object that has a member of one of some names satisfies the schema for that name.

    Attributes:
        schemas: the schemas, by name.
        evaluates: whether members that these schemas evaluate count as evaluated (those of ``dependentSchemas`` do).
    """

    schemas: Mapping[str, Subschema]
    evaluates: bool

    def add(self, facts: Conjunction, goals: Goals, schema: Subschema) -> None:
        """Add a choice for each name: the member is absent, or it is present and the schema holds."""
        for name, dependent in self.schemas.items():
            if not dependent.is_empty:
                facts.add_choice(schema.derive((self, name), partial(self._alternatives, schema, name)))

    def _alternatives(self, schema: Subschema, name: str) -> list[Subschema]:
        present = schema.derived(IS_OBJECT, Required((name,)), Members({name: ANYTHING}))
        return [schema.derived(absent(name)), schema.derived(AllOf((present, self.schemas[name])))]

    def failures(self, goals: Goals, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """A member is present, and the schema for its name fails."""
        for name, dependent in self.schemas.items():
            present = schema.derived(IS_OBJECT, Required((name,)))
            yield (AllOf((present, schema.derived(Not(dependent)))),)

    def applied(self, goals: Goals, schema: Subschema) -> Iterator[Subschema]:
        """The schemas."""
        yield from self.schemas.values()


def _dependent_required(schema: Subschema, value: Any) -> Dependents:
    names = {
        name: schema.derived(Required(tuple(name_list(schema, "dependentRequired", listed))))
        for name, listed in mapping(schema, "dependentRequired", value).items()
    }
    return Dependents(names, evaluates=False)


def _dependent_schemas(schema: Subschema, value: Any) -> Dependents:
    return Dependents(schema_map(schema, "dependentSchemas", value), evaluates=True)


def _dependencies(schema: Subschema, value: Any) -> Dependents:
    found = {}
    for name, dependent in mapping(schema, "dependencies", value).items():
        if isinstance(dependent, list):
            found[name] = schema.derived(Required(tuple(name_list(schema, "dependencies", dependent))))
        else:
            found[name] = schema.child(dependent, "dependencies", name)
    return Dependents(found, evaluates=False)


KEYWORDS = (
    Keyword(
        "dependentRequired", parse=_dependent_required, makes=(Dependents,), in_place=True, about=OBJECT, since=2019,
        narrowings=keys,
    ),
    Keyword(
        "dependentSchemas", parse=_dependent_schemas, makes=(Dependents,), holds=Holds.MAP, in_place=True,
        about=OBJECT, since=2019, vocabularies=("applicator",),
    ),
    # From 2019 on two other keywords replace it; schemas that still use it mean it as before.
    Keyword(
        "dependencies", parse=_dependencies, makes=(Dependents,), holds=Holds.MAP_OR_NAMES, in_place=True,
        about=OBJECT,
    ),
)  # fmt: skip
