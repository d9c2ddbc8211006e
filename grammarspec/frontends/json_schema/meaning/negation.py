"""Negation: a schema for exactly the values that another one refuses, one level at a time.

A schema is the conjunction of its keywords, and each keyword fails only for values of its own type. So the negation is
an ``anyOf`` with one alternative per keyword, "of that type, and failing"; negations of subschemas stay as ``not``
until they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.document.document import Schema
from grammarspec.frontends.json_schema.meaning import unevaluated
from grammarspec.frontends.json_schema.meaning.checks import count, divisor, name_list, number, schema_list, schema_map
from grammarspec.frontends.json_schema.meaning.conjunction import (
    ALL_TYPES,
    ARRAY,
    FRACTION,
    NUMBER,
    OBJECT,
    STRING,
    TYPE_BITS,
    ItemCount,
    SomeMember,
)
from grammarspec.frontends.json_schema.meaning.keywords import (
    BITS,
    HIGH,
    ITEM_COUNT,
    LOW,
    NOT_ENUM,
    NOT_MULTIPLE,
    NOT_TEXT,
    PREFIX,
    SOME,
    contained,
    handlers,
)

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.meaning.analysis import Analysis

__all__ = ["negate"]

_Alternatives = Iterator[Schema]
_MAX_BRANCHES = 8  # of a oneOf in whose negation two may hold, pair by pair


def negate(analysis: Analysis, schema: dict[Any, Any]) -> Schema:
    """A schema for the values that ``schema`` refuses.

    Raises:
        UnsupportedFeature: a keyword whose failure cannot be said.
    """
    dialect = analysis.document.resource(schema).dialect
    if dialect.ref_stands_alone and "$ref" in schema:
        return analysis.document.derived({"not": analysis.target(schema, schema["$ref"])}, schema)
    known = handlers(dialect)
    alternatives: list[Schema] = []
    for keyword, value in schema.items():
        if keyword in known and keyword != "uniqueItems":
            failure = _FAILURES.get(keyword)
            if failure is None:
                hint = "say the values that are allowed instead"
                where = analysis.document.where(schema, str(keyword))
                raise UnsupportedFeature(f"{keyword} inside not", where=where, hint=hint)
            alternatives.extend(failure(analysis, value, schema))
    if not alternatives and schema.get("uniqueItems") is True and "uniqueItems" in known:
        # Beside others it is a narrowing that this alternative is left out.
        raise UnsupportedFeature("uniqueItems inside not", where=analysis.document.where(schema, "uniqueItems"))
    for made in [*alternatives, *(part for alternative in alternatives for part in alternative.get("allOf", ()))]:
        if isinstance(made, dict) and (BITS in made or "not" in made or made.keys() == {"allOf"}):
            analysis.document.derived(made, schema)
    if len(alternatives) == 1:
        return alternatives[0]
    return analysis.document.derived({"anyOf": alternatives}, schema) if alternatives else False


def _is_anything(schema: Schema) -> bool:
    return schema is True or schema == {}


# ---------------------------------------------------------------------- any type
def _type(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    names = [value] if isinstance(value, str) else value
    bits = 0
    for name in names if isinstance(names, list) else ():
        bits |= TYPE_BITS.get(name, 0) if isinstance(name, str) else 0
    if not isinstance(names, list) or not all(isinstance(name, str) and name in TYPE_BITS for name in names):
        analysis.gather([schema])  # says what is wrong with it
    if bits != ALL_TYPES:
        yield {BITS: ALL_TYPES & ~bits}


def _enum(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    if not isinstance(value, list):
        analysis.gather([schema])
    composite = [constant for constant in value if isinstance(constant, list | dict) and constant]
    if not composite:
        yield {NOT_ENUM: value}
        return
    others = [constant for constant in value if not (isinstance(constant, list | dict) and constant)]
    yield {"allOf": [{NOT_ENUM: others}, *({"not": _spelled_out(constant)} for constant in composite)]}


def _spelled_out(constant: list[Any] | dict[str, Any]) -> Schema:
    """A schema for an array or object that says what ``const`` would, keyword by keyword."""
    if isinstance(constant, list):
        length = {"minItems": len(constant), "maxItems": len(constant)}
        return {BITS: ARRAY, PREFIX: [{"enum": [item]} for item in constant], **length}
    members = {name: {"enum": [member]} for name, member in constant.items()}
    return {BITS: OBJECT, "required": list(members), "properties": members, "additionalProperties": False}


def _const(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield from _enum(analysis, [value], schema)


def _bits(analysis: Analysis, value: int, schema: Schema) -> _Alternatives:
    yield {BITS: ALL_TYPES & ~value}


def _not_enum(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {"enum": value}


# ---------------------------------------------------------------------- numbers
def _minimum(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    exclusive = schema.get("exclusiveMinimum") is True  # draft 4
    yield {BITS: NUMBER, HIGH: (number(analysis, value, schema, "minimum"), not exclusive)}


def _maximum(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    exclusive = schema.get("exclusiveMaximum") is True
    yield {BITS: NUMBER, LOW: (number(analysis, value, schema, "maximum"), not exclusive)}


def _exclusive_minimum(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: NUMBER, HIGH: (number(analysis, value, schema, "exclusiveMinimum"), False)}


def _exclusive_maximum(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: NUMBER, LOW: (number(analysis, value, schema, "exclusiveMaximum"), False)}


def _low(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: NUMBER, HIGH: (value[0], not value[1])}


def _high(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: NUMBER, LOW: (value[0], not value[1])}


def _multiple_of(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: NUMBER, NOT_MULTIPLE: divisor(analysis, value, schema)}


def _not_multiple(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: NUMBER, "multipleOf": value}


# ---------------------------------------------------------------------- strings
def _min_length(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    least = count(analysis, value, schema, "minLength")
    if least > 0:
        yield {BITS: STRING, "maxLength": least - 1}


def _max_length(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: STRING, "minLength": count(analysis, value, schema, "maxLength") + 1}


def _pattern(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    if isinstance(value, str):
        yield {BITS: STRING, NOT_TEXT: ("pattern", value, schema)}


def _format(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    integers = analysis.integer_format(value) if isinstance(value, str) else None
    if integers is not None:
        yield {BITS: FRACTION}
        yield {BITS: NUMBER, HIGH: (integers[0], True)}
        yield {BITS: NUMBER, LOW: (integers[1], True)}
    elif isinstance(value, str) and analysis.asserts_format(value):
        yield {BITS: STRING, NOT_TEXT: ("format", value, schema)}


def _not_text(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: STRING, value[0]: value[1]}


# ---------------------------------------------------------------------- arrays
def _min_items(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    least = count(analysis, value, schema, "minItems")
    if least > 0:
        yield {BITS: ARRAY, "maxItems": least - 1}


def _max_items(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: ARRAY, "minItems": count(analysis, value, schema, "maxItems") + 1}


def _first_items(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    for i, item in enumerate(schema_list(analysis, value, schema, "prefixItems")):
        if not _is_anything(item):
            yield {BITS: ARRAY, "minItems": i + 1, PREFIX: [*[True] * i, _negated(item)]}


def _items(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    if isinstance(value, list):
        yield from _first_items(analysis, value, schema)
        yield from _rest(len(value), schema.get("additionalItems", True))
    else:
        first = schema.get("prefixItems", [])
        yield from _rest(len(first) if isinstance(first, list) else 0, value)


def _rest(first: int, item: Schema) -> _Alternatives:
    """Some item from ``first`` on that fails."""
    if item is False:
        yield {BITS: ARRAY, "minItems": first + 1}
    elif not _is_anything(item):
        yield {BITS: ARRAY, ITEM_COUNT: ItemCount(first, {"not": item}, 1, None)}


def _contains(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    asked = contained(analysis, value, schema)
    if asked.least > 0:
        yield {BITS: ARRAY, ITEM_COUNT: asked._replace(least=0, most=asked.least - 1)}
    if asked.most is not None:
        yield {BITS: ARRAY, ITEM_COUNT: asked._replace(least=asked.most + 1, most=None)}


def _item_count(analysis: Analysis, value: ItemCount, schema: Schema) -> _Alternatives:
    if value.least > 0:
        yield {BITS: ARRAY, ITEM_COUNT: value._replace(least=0, most=value.least - 1)}
    if value.most is not None:
        yield {BITS: ARRAY, ITEM_COUNT: value._replace(least=value.most + 1, most=None)}


# ---------------------------------------------------------------------- objects
def _properties(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    for name, subschema in schema_map(analysis, value, schema, "properties").items():
        if not _is_anything(subschema):
            yield {BITS: OBJECT, "required": [name], "properties": {name: _negated(subschema)}}


def _pattern_properties(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    for pattern, subschema in schema_map(analysis, value, schema, "patternProperties").items():
        if not _is_anything(subschema):
            yield {BITS: OBJECT, SOME: SomeMember(within=pattern, value=_negated(subschema))}


def _additional_properties(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    if not _is_anything(value):
        names = frozenset(schema_map(analysis, schema.get("properties", {}), schema, "properties"))
        patterns = tuple(schema_map(analysis, schema.get("patternProperties", {}), schema, "patternProperties"))
        if value is False and not names and not patterns:
            yield {BITS: OBJECT, "minProperties": 1}
        else:
            yield {BITS: OBJECT, SOME: SomeMember(names, patterns, value=_negated(value))}


def _property_names(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    if not _is_anything(value):
        yield {BITS: OBJECT, SOME: SomeMember(name=_negated(value))}


def _negated(schema: Schema) -> Schema:
    return not schema if isinstance(schema, bool) else {"not": schema}


def _required(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    for name in name_list(analysis, value, schema, "required"):
        yield {BITS: OBJECT, "properties": {name: False}}


def _min_properties(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    least = count(analysis, value, schema, "minProperties")
    if least > 0:
        yield {BITS: OBJECT, "maxProperties": least - 1}


def _max_properties(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {BITS: OBJECT, "minProperties": count(analysis, value, schema, "maxProperties") + 1}


# ---------------------------------------------------------------------- in place
def _reference(keyword: str) -> Callable[[Analysis, Any, Schema], _Alternatives]:
    def failure(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
        yield {"not": analysis.target(schema, value, keyword)}

    return failure


def _not(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {"allOf": [value]}  # a schema of its own, to be told from the one in the document


def _any_of(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    yield {"allOf": [{"not": part} for part in schema_list(analysis, value, schema, "anyOf")]}


def _all_of(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    for part in schema_list(analysis, value, schema, "allOf"):
        yield {"not": part}


def _one_of(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    branches = schema_list(analysis, value, schema, "oneOf")
    yield {"allOf": [{"not": part} for part in branches]}
    if len(branches) > _MAX_BRANCHES:
        return  # a narrowing
    for i, one in enumerate(branches):
        for other in branches[i + 1 :]:
            yield {"allOf": [one, other]}


def _if(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    if "then" in schema:
        yield {"allOf": [value, {"not": schema["then"]}]}
    if "else" in schema:
        yield {"allOf": [{"not": value}, {"not": schema["else"]}]}


def _dependent(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    for name, dependent in schema_map(analysis, value, schema, "dependencies").items():
        asked = {"required": dependent} if isinstance(dependent, list) else dependent
        yield {"allOf": [{BITS: OBJECT, "required": [name]}, {"not": asked}]}


def _unevaluated_properties(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    for outcome in unevaluated.outcomes_beside(analysis, schema):
        if not outcome.members and not _is_anything(value):
            some = SomeMember(frozenset(outcome.names), outcome.patterns, value=_negated(value))
            yield {"allOf": [*outcome.parts, {BITS: OBJECT, SOME: some}]}


def _unevaluated_items(analysis: Analysis, value: Any, schema: Schema) -> _Alternatives:
    for outcome in unevaluated.outcomes_beside(analysis, schema):
        if not outcome.items and not _is_anything(value):
            item = {"anyOf": [*outcome.contained, value]} if outcome.contained else value
            for failing in _rest(outcome.first, item):
                yield {"allOf": [*outcome.parts, failing]}


_FAILURES: Final[dict[Any, Callable[[Analysis, Any, Schema], _Alternatives]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _minimum,
    "maximum": _maximum,
    "exclusiveMinimum": _exclusive_minimum,
    "exclusiveMaximum": _exclusive_maximum,
    "multipleOf": _multiple_of,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "minItems": _min_items,
    "maxItems": _max_items,
    "prefixItems": _first_items,
    "items": _items,
    "contains": _contains,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "required": _required,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "$ref": _reference("$ref"),
    "$dynamicRef": _reference("$dynamicRef"),
    "$recursiveRef": _reference("$recursiveRef"),
    "not": _not,
    "anyOf": _any_of,
    "allOf": _all_of,
    "oneOf": _one_of,
    "if": _if,
    "dependentRequired": _dependent,
    "dependentSchemas": _dependent,
    "dependencies": _dependent,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
    BITS: _bits,
    LOW: _low,
    HIGH: _high,
    NOT_ENUM: _not_enum,
    NOT_MULTIPLE: _not_multiple,
    NOT_TEXT: _not_text,
    PREFIX: _first_items,
    ITEM_COUNT: _item_count,
}
