"""``unevaluatedProperties`` where the outcomes are many: a condition for each property that is not always evaluated.

Thirty ``if`` beside it have 2^30 outcomes (see ``unevaluated.py``). But of each property it is known which of them
evaluate it: if it is there, one of them must hold, or its value is what ``unevaluatedProperties`` asks. So the size is
that of the schema; whether the conditions exclude each other is found where they are distributed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from grammarspec.frontends.json_schema.meaning.checks import schema_list, schema_map
from grammarspec.frontends.json_schema.meaning.conjunction import OBJECT
from grammarspec.frontends.json_schema.meaning.keywords import BITS
from grammarspec.frontends.json_schema.meaning.matching import pattern_found

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.document.document import Schema
    from grammarspec.frontends.json_schema.meaning.analysis import Analysis

__all__ = ["conditions"]

_When = tuple["Schema", ...]


class _Evaluator(NamedTuple):
    """What a subschema evaluates, when it is asked and holds."""

    when: _When
    names: Sequence[str]
    patterns: Sequence[str]
    members: bool


def conditions(analysis: Analysis, schema: dict[Any, Any]) -> list[Schema] | None:
    """Schemas that together are one with ``unevaluatedProperties``; ``None`` if they cannot be given like this."""
    if "unevaluatedItems" in schema:
        return None
    asked = schema["unevaluatedProperties"]
    rest = {keyword: value for keyword, value in schema.items() if keyword != "unevaluatedProperties"}
    evaluators = list(_evaluators(analysis, rest, schema, ()))
    always = [evaluator for evaluator in evaluators if not evaluator.when]
    sometimes = [evaluator for evaluator in evaluators if evaluator.when]
    names = dict.fromkeys(name for evaluator in always for name in evaluator.names)
    patterns = dict.fromkeys(pattern for evaluator in always for pattern in evaluator.patterns)
    derived = analysis.document.derived
    parts: list[Schema] = [derived(rest, schema)]
    if any(evaluator.members for evaluator in always):
        return parts
    if any(evaluator.patterns for evaluator in sometimes):
        return None
    everything = [evaluator.when for evaluator in sometimes if evaluator.members]
    alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in dict.fromkeys(name for evaluator in sometimes for name in evaluator.names):
        matched = [pattern_found(pattern, name) for pattern in patterns]
        if None in matched:
            return None
        if name not in names and True not in matched:
            those = (i for i, one in enumerate(sometimes) if one.members or name in one.names)
            alike[tuple(those)].append(name)

    def unless(whens: Sequence[_When], otherwise: Schema) -> Schema:
        ways = [when[0] if len(when) == 1 else derived({"allOf": list(when)}, schema) for when in whens]
        otherwise = derived(otherwise, schema)
        return derived({"anyOf": [otherwise, *ways]}, schema) if ways else otherwise

    for which, group in alike.items():
        parts.append(unless([sometimes[i].when for i in which], {"properties": dict.fromkeys(group, asked)}))
    known = dict.fromkeys([*names, *(name for group in alike.values() for name in group)], True)
    others = {"properties": known, "patternProperties": dict.fromkeys(patterns, True), "additionalProperties": asked}
    return [*parts, unless(everything, others)]


def _evaluators(analysis: Analysis, schema: Mapping[Any, Any], origin: Schema, when: _When) -> Iterator[_Evaluator]:
    """What a subschema, and those in it for the same value, evaluate."""
    if not isinstance(schema, dict):
        return
    document = analysis.document
    dialect = document.resource(origin).dialect
    if "$ref" in schema and dialect.ref_stands_alone:
        schema = {"$ref": schema["$ref"]}
    names = schema_map(analysis, schema.get("properties", {}), origin, "properties")
    patterns = schema_map(analysis, schema.get("patternProperties", {}), origin, "patternProperties")
    members = "additionalProperties" in schema or (dialect.year >= 2019 and "unevaluatedProperties" in schema)
    if names or patterns or members:
        yield _Evaluator(when, tuple(names), tuple(patterns), members)
    for keyword, value in schema.items():
        below: list[tuple[Schema, _When]] = []
        match keyword:
            case "$ref" | "$dynamicRef" | "$recursiveRef":
                below = [(analysis.target(origin, value, keyword), when)]
            case "allOf":
                below = [(part, when) for part in schema_list(analysis, value, origin, keyword)]
            case "anyOf" | "oneOf":
                below = [(branch, (*when, branch)) for branch in schema_list(analysis, value, origin, keyword)]
            case "if":
                failed = document.derived({"not": value}, origin)
                below = [(value, (*when, value)), (schema.get("then", True), (*when, value))]
                below.append((schema.get("else", True), (*when, failed)))
            case "dependentSchemas":
                for name, dependent in schema_map(analysis, value, origin, keyword).items():
                    present = document.derived({BITS: OBJECT, "required": [name]}, origin)
                    below.append((dependent, (*when, present)))
        for part, condition in below:
            yield from _evaluators(analysis, part, part, condition)
