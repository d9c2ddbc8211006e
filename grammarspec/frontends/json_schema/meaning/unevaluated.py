"""``unevaluatedProperties`` and ``unevaluatedItems``: what no keyword beside them, or inside those, has looked at.

What is evaluated depends on which subschemas of ``anyOf``, ``oneOf``, ``if`` and their like hold (JSON Schema 2020-12
core, sections 10.3.1, 11.2 and 11.3). So a schema is taken apart into *outcomes*, conjunctions without such
disjunctions, each with what it evaluates; in each of them ``unevaluatedProperties`` is ``additionalProperties`` beside
``properties`` and ``patternProperties`` that say nothing but which names are evaluated, and ``unevaluatedItems`` the
rest of ``prefixItems``.

The more subschemas hold, the more is evaluated and the less is asked. So it is enough that some set of subschemas that
do hold evaluates all that it must; that the others fail need not be said. Only negation must tell exactly which hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from grammarspec.errors import LimitExceeded
from grammarspec.frontends.json_schema.meaning.checks import schema_list, schema_map
from grammarspec.frontends.json_schema.meaning.conjunction import ARRAY, OBJECT
from grammarspec.frontends.json_schema.meaning.evaluators import conditions

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.document.document import Schema
    from grammarspec.frontends.json_schema.meaning.analysis import Analysis

__all__ = ["Outcome", "alternatives", "is_asked", "outcomes_beside"]

MAX_OUTCOMES = 1_024
"""Combinations of subschemas that may hold together, beside one ``unevaluatedProperties`` or ``unevaluatedItems``."""

_DECLARING = ("properties", "patternProperties", "additionalProperties", "required")
_KINDS = {"unevaluatedProperties": OBJECT, "unevaluatedItems": ARRAY}


class Outcome(NamedTuple):
    """Subschemas that hold together, and what they evaluate.

    Attributes:
        parts: the subschemas.
        names, patterns: members are evaluated whose name is one of these or matches one of these,
        members: or all are.
        first: so many items are evaluated,
        items: or all are;
        contained: and those that satisfy one of these.
    """

    parts: tuple[Schema, ...] = ()
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    members: bool = False
    first: int = 0
    items: bool = False
    contained: tuple[Schema, ...] = ()

    def beside(self, other: Outcome) -> Outcome:
        """Both hold."""
        return Outcome(
            self.parts + other.parts,
            tuple(dict.fromkeys(self.names + other.names)),
            tuple(dict.fromkeys(self.patterns + other.patterns)),
            self.members or other.members,
            max(self.first, other.first),
            self.items or other.items,
            self.contained + other.contained,
        )

    def evaluates(self, kinds: int) -> bool:
        """Whether anything of values of these types is evaluated."""
        members = self.members or self.names or self.patterns
        items = self.items or self.first or self.contained
        return bool((kinds & OBJECT and members) or (kinds & ARRAY and items))


def is_asked(schema: Mapping[Any, Any], known: Mapping[Any, Any]) -> bool:
    """Whether the schema has one of the keywords, and it does not allow everything."""
    return any(keyword in schema and keyword in known and not _is_anything(schema[keyword]) for keyword in _KINDS)


def alternatives(analysis: Analysis, schema: dict[Any, Any]) -> list[Schema]:
    """Schemas without the keywords: at least one holds for each value that satisfies the schema, none for others.

    Raises:
        LimitExceeded: they are too many.
    """
    try:
        found = [list(outcome.parts) or [True] for outcome in _Expansion(analysis, exact=False).of(schema, 0)]
    except LimitExceeded:
        parts = conditions(analysis, schema)
        if parts is None:
            raise
        found = [parts]
    return [analysis.document.derived({"allOf": parts}, schema) for parts in found]


def outcomes_beside(analysis: Analysis, schema: Mapping[Any, Any]) -> list[Outcome]:
    """The outcomes of all other keywords, exactly one of which holds for a value that satisfies those."""
    kinds = sum(kind for keyword, kind in _KINDS.items() if keyword in schema)
    return _Expansion(analysis, exact=True).beside(schema, kinds)


def _is_anything(schema: Any) -> bool:
    return schema is True or schema == {}


class _Expansion:
    """Takes schemas apart into outcomes."""

    def __init__(self, analysis: Analysis, *, exact: bool) -> None:
        self.analysis, self.document, self.exact = analysis, analysis.document, exact

    def of(self, schema: Schema, kinds: int) -> list[Outcome]:
        """The outcomes of a schema, as far as they differ in what is evaluated of these types."""
        if not isinstance(schema, dict):
            return [Outcome((schema,))]
        dialect = self.document.resource(schema).dialect
        if "$ref" in schema and dialect.ref_stands_alone:
            return self.of(self.analysis.target(schema, schema["$ref"]), kinds)
        own = [keyword for keyword in _KINDS if dialect.year >= 2019 and keyword in schema]
        kinds |= sum(_KINDS[keyword] for keyword in own if not _is_anything(schema[keyword]))
        found = self.beside(schema, kinds)
        if "unevaluatedProperties" in own:
            found = [self._members(schema, outcome) for outcome in found]
        if "unevaluatedItems" in own:
            found = [self._items(schema, outcome) for outcome in found]
        return found

    def beside(self, schema: Mapping[Any, Any], kinds: int) -> list[Outcome]:
        """The outcomes without the keywords for what is unevaluated."""
        found = [Outcome()]
        # the order of members is that of what declares them
        own = next((keyword for keyword in schema if keyword in _DECLARING), None)
        if own is None:
            found = [self._itself(schema)]
        for keyword, value in schema.items():
            more = self._in_place(schema, keyword, value, kinds)
            if more is None:
                if keyword != own:
                    continue
                more = [self._itself(schema)]
            found = self._both(found, more, schema)
        return found

    def _both(self, some: Sequence[Outcome], others: Sequence[Outcome], schema: Mapping[Any, Any]) -> list[Outcome]:
        """What holds if one of each holds."""
        if len(some) * len(others) > MAX_OUTCOMES:
            message = f"more than {MAX_OUTCOMES} combinations of subschemas beside unevaluatedProperties or the like"
            raise LimitExceeded(message, where=self.document.where(schema))
        return [one.beside(other) for one in some for other in others]

    # ------------------------------------------------------------------ the schema's own keywords
    def _itself(self, schema: Mapping[Any, Any]) -> Outcome:
        """The keywords that are about the value itself."""
        part = self.analysis.without_in_place(schema)
        dialect = self.document.resource(schema).dialect
        first, items = 0, False
        contained: tuple[Schema, ...] = ()
        prefix = schema.get("prefixItems" if dialect.year >= 2020 else "items")
        if isinstance(prefix, list):
            first = len(prefix)
            items = ("items" if dialect.year >= 2020 else "additionalItems") in schema
        elif "items" in schema:
            items = True
        if dialect.year >= 2020 and "contains" in schema:
            contained = (schema["contains"],)
        return Outcome(
            () if part is None else (part,),
            tuple(schema_map(self.analysis, schema.get("properties", {}), schema, "properties")),
            tuple(schema_map(self.analysis, schema.get("patternProperties", {}), schema, "patternProperties")),
            "additionalProperties" in schema,
            first,
            items,
            contained,
        )

    def _members(self, schema: Mapping[Any, Any], outcome: Outcome) -> Outcome:
        asked = schema["unevaluatedProperties"]
        if outcome.members or _is_anything(asked):
            return outcome._replace(members=True)
        made = {
            "properties": dict.fromkeys(outcome.names, True),
            "patternProperties": dict.fromkeys(outcome.patterns, True),
            "additionalProperties": asked,
        }
        return outcome._replace(parts=(*outcome.parts, self.document.derived(made, schema)), members=True)

    def _items(self, schema: Mapping[Any, Any], outcome: Outcome) -> Outcome:
        asked = schema["unevaluatedItems"]
        if outcome.items or _is_anything(asked):
            return outcome._replace(items=True)
        rest = self._one("anyOf", [*outcome.contained, asked], schema) if outcome.contained else asked
        if not outcome.first:
            made: dict[str, Any] = {"items": rest}
        elif self.document.resource(schema).dialect.year >= 2020:
            made = {"prefixItems": [True] * outcome.first, "items": rest}
        else:
            made = {"items": [True] * outcome.first, "additionalItems": rest}
        return outcome._replace(parts=(*outcome.parts, self.document.derived(made, schema)), items=True)

    def _one(self, keyword: str, value: Any, schema: Mapping[Any, Any]) -> Schema:
        return self.document.derived({keyword: value}, schema)

    # ------------------------------------------------------------------ subschemas for the same value
    def _in_place(self, schema: Mapping[Any, Any], keyword: Any, value: Any, kinds: int) -> list[Outcome] | None:
        """The outcomes of one keyword; ``None`` if it is about the value itself."""
        analysis = self.analysis
        match keyword:
            case "$ref" | "$dynamicRef" | "$recursiveRef":
                return self.of(analysis.target(schema, value, keyword), kinds)
            case "allOf":
                found = [Outcome()]
                for part in schema_list(analysis, value, schema, keyword):
                    found = self._both(found, self.of(part, kinds), schema)
                return found
            case "anyOf":
                return self._any_of(schema, schema_list(analysis, value, schema, keyword), kinds)
            case "oneOf":
                return self._one_of(schema, schema_list(analysis, value, schema, keyword), kinds)
            case "if":
                return self._if(schema, value, kinds)
            case "dependentSchemas":
                return self._dependent(schema, value, kinds)
            case "not" | "dependentRequired" | "dependencies":
                return [Outcome((self._one(keyword, value, schema),))]
            case "unevaluatedProperties" | "unevaluatedItems":
                return [Outcome()]
        return None

    def _alternatives(
        self, schema: Mapping[Any, Any], keyword: str, value: Any, ways: Sequence[list[Outcome]], kinds: int
    ) -> list[Outcome]:
        """One of these; left whole where none of them evaluates anything."""
        found = [outcome for way in ways for outcome in way]
        if any(outcome.evaluates(kinds) for outcome in found):
            return found
        return [Outcome((self._one(keyword, value, schema),))]

    def _one_of(self, schema: Mapping[Any, Any], branches: list[Schema], kinds: int) -> list[Outcome]:
        ways = []
        for branch, alone in zip(branches, self.analysis.exclusive(schema, branches), strict=True):
            # what tells a branch from the others evaluates nothing
            rest = [] if alone is branch else [alone]
            ways.append([outcome.beside(Outcome(tuple(rest))) for outcome in self.of(branch, kinds)])
        return self._alternatives(schema, "oneOf", branches, ways, kinds)

    def _any_of(self, schema: Mapping[Any, Any], branches: list[Schema], kinds: int) -> list[Outcome]:
        ways = [self.of(branch, kinds) for branch in branches]
        telling = [i for i, way in enumerate(ways) if any(outcome.evaluates(kinds) for outcome in way)]
        if not telling:
            return [Outcome((self._one("anyOf", branches, schema),))]
        others = [branch for i, branch in enumerate(branches) if i not in telling]
        if len(telling) > MAX_OUTCOMES.bit_length():
            where = self.document.where(schema, "anyOf")
            raise LimitExceeded(f"{len(telling)} subschemas beside an unevaluated… keyword", where=where)
        found = []
        if others:
            found.append(Outcome((self._one("anyOf", others, schema), *self._failing(schema, branches, telling))))
        for size in range(1, len(telling) + 1):
            for chosen in combinations(telling, size):
                rest = [i for i in telling if i not in chosen]
                holding = [Outcome(tuple(self._failing(schema, branches, rest)))]
                for i in chosen:
                    holding = self._both(holding, ways[i], schema)
                found += holding
        return found

    def _failing(self, schema: Mapping[Any, Any], branches: list[Schema], which: Sequence[int]) -> Iterator[Schema]:
        """That these branches fail, if that must be said."""
        for i in which if self.exact else ():
            yield self._one("not", branches[i], schema)

    def _if(self, schema: Mapping[Any, Any], condition: Schema, kinds: int) -> list[Outcome]:
        then, otherwise = schema.get("then", True), schema.get("else", True)
        holds = self._both(self.of(condition, kinds), self.of(then, kinds), schema)
        if not self.exact and _is_anything(then) and _is_anything(otherwise):
            fails = [Outcome()]
        else:
            failed = Outcome((self._one("not", condition, schema),))
            fails = [failed.beside(other) for other in self.of(otherwise, kinds)]
        if any(outcome.evaluates(kinds) for outcome in (*holds, *fails)):
            return [*holds, *fails]
        kept = {keyword: schema[keyword] for keyword in ("if", "then", "else") if keyword in schema}
        return [Outcome((self.document.derived(kept, schema),))]

    def _dependent(self, schema: Mapping[Any, Any], value: Any, kinds: int) -> list[Outcome]:
        found = [Outcome()]
        for name, dependent in schema_map(self.analysis, value, schema, "dependentSchemas").items():
            with_it = Outcome((self.document.derived({"type": "object", "required": [name]}, schema),))
            present = [with_it.beside(other) for other in self.of(dependent, kinds)]
            absent = [Outcome((self._one("properties", {name: False}, schema),))]
            ways = self._alternatives(schema, "dependentSchemas", {name: dependent}, [absent, present], kinds)
            found = self._both(found, ways, schema)
        return found
