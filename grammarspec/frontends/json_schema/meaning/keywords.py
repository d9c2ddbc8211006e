"""What each keyword adds to a conjunction.

One table per dialect maps keywords to their functions ``(analysis, conjunction, value, schema)``. What is not in a
table is an annotation there (or no keyword at all) and asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from grammarspec.frontends.json_schema.document.dialects import DIALECTS, Dialect
from grammarspec.frontends.json_schema.document.document import Schema
from grammarspec.frontends.json_schema.meaning.checks import (
    count,
    divisor,
    name_list,
    number,
    schema_list,
    schema_map,
    text,
    wrong,
)
from grammarspec.frontends.json_schema.meaning.conjunction import (
    ARRAY,
    FALSE,
    FRACTION,
    NULL,
    OBJECT,
    TRUE,
    TYPE_BITS,
    Conjunction,
    ItemCount,
    canonical,
    type_of,
)
from grammarspec.frontends.json_schema.meaning.evaluation import constants_of

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.meaning.analysis import Analysis

__all__ = [
    "BITS", "FACET", "HIGH", "IN_PLACE", "ITEM_COUNT", "LOW", "NOT_ENUM", "NOT_MULTIPLE", "NOT_TEXT", "PREFIX", "SOME",
    "WITNESS", "Handler", "contained", "handlers",
]  # fmt: skip

Handler = Callable[["Analysis", Conjunction, Any, dict[Any, Any]], None]


class _Internal:
    """A keyword of our own, for schemas that are made here; no JSON text can hold it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


BITS: Final = _Internal("types")  # a set of type bits
LOW: Final = _Internal("low")  # (bound, exclusive)
HIGH: Final = _Internal("high")
NOT_MULTIPLE: Final = _Internal("not multipleOf")
NOT_ENUM: Final = _Internal("not enum")
NOT_TEXT: Final = _Internal("not pattern or format")  # (keyword, value, schema)
PREFIX: Final = _Internal("first items")
ITEM_COUNT: Final = _Internal("item count")  # an ItemCount
SOME: Final = _Internal("some member")  # a SomeMember
WITNESS: Final = _Internal("some undeclared member")  # a SomeMember


# ---------------------------------------------------------------------- any type
def _type(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    if isinstance(value, str) and value in TYPE_BITS:
        facts.types &= TYPE_BITS[value]
    elif isinstance(value, list):
        bits = 0
        for name in value:
            if not isinstance(name, str) or name not in TYPE_BITS:
                raise wrong(analysis, schema, "type", f"one of {', '.join(TYPE_BITS)} (or an array of them)")
            bits |= TYPE_BITS[name]
        facts.types &= bits
    else:
        raise wrong(analysis, schema, "type", f"one of {', '.join(TYPE_BITS)} (or an array of them)")


def _enum(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    if not isinstance(value, list):
        raise wrong(analysis, schema, "enum", "an array")
    if facts.enum is None:
        facts.enum = value
    else:
        allowed = {canonical(constant) for constant in value}
        facts.enum = [constant for constant in facts.enum if canonical(constant) in allowed]


def _const(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    _enum(analysis, facts, [value], schema)


def _not_enum(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    excluded = list(facts.excluded)
    for constant in value:
        bit = type_of(constant)
        if bit & (NULL | TRUE | FALSE):
            facts.types &= ~bit
        elif constant == [] and bit == ARRAY:
            facts.min_items = max(facts.min_items, 1)
        elif constant == {} and bit == OBJECT:
            facts.min_properties = max(facts.min_properties, 1)
        else:
            excluded.append(constant)
    facts.excluded = excluded


def _bits(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.types &= value


# ---------------------------------------------------------------------- numbers
def _minimum(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.narrow_low(number(analysis, value, schema, "minimum"), False)


def _maximum(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.narrow_high(number(analysis, value, schema, "maximum"), False)


def _exclusive_minimum(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.narrow_low(number(analysis, value, schema, "exclusiveMinimum"), True)


def _exclusive_maximum(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.narrow_high(number(analysis, value, schema, "exclusiveMaximum"), True)


def _minimum_4(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    exclusive = schema.get("exclusiveMinimum", False)
    if not isinstance(exclusive, bool):
        raise wrong(analysis, schema, "exclusiveMinimum", "a boolean in draft 4")
    facts.narrow_low(number(analysis, value, schema, "minimum"), exclusive)


def _maximum_4(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    exclusive = schema.get("exclusiveMaximum", False)
    if not isinstance(exclusive, bool):
        raise wrong(analysis, schema, "exclusiveMaximum", "a boolean in draft 4")
    facts.narrow_high(number(analysis, value, schema, "maximum"), exclusive)


def _low(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.narrow_low(*value)


def _high(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.narrow_high(*value)


def _multiple_of(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.multiples = [*facts.multiples, (divisor(analysis, value, schema), True)]


def _not_multiple(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.multiples = [*facts.multiples, (value, False)]


# ---------------------------------------------------------------------- strings
def _min_length(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.min_length = max(facts.min_length, count(analysis, value, schema, "minLength"))


def _max_length(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    most = count(analysis, value, schema, "maxLength")
    facts.max_length = most if facts.max_length is None else min(facts.max_length, most)


def _pattern(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.texts = [*facts.texts, ("pattern", text(analysis, value, schema, "pattern"), True, schema)]


def _format(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    name = text(analysis, value, schema, "format")
    integers = analysis.integer_format(name)
    if integers is not None:
        facts.types &= ~FRACTION
        facts.narrow_low(integers[0], False)
        facts.narrow_high(integers[1], False)
    elif analysis.asserts_format(name):
        facts.texts = [*facts.texts, ("format", name, True, schema)]


def _not_text(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    keyword, argument, origin = value
    facts.texts = [*facts.texts, (keyword, argument, False, origin)]


# ---------------------------------------------------------------------- arrays
def _min_items(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.min_items = max(facts.min_items, count(analysis, value, schema, "minItems"))


def _max_items(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    most = count(analysis, value, schema, "maxItems")
    facts.max_items = most if facts.max_items is None else min(facts.max_items, most)


def _unique_items(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    if value is True:
        facts.unique = schema
    elif value is not False:
        raise wrong(analysis, schema, "uniqueItems", "a boolean")


def _add_array(facts: Conjunction, first: Sequence[Schema], rest: Schema) -> None:
    facts.arrays = [*facts.arrays, (first, rest)]


def _prefix_items(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    _add_array(facts, schema_list(analysis, value, schema, "prefixItems"), schema.get("items", True))


def _items(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    if isinstance(value, list):
        if not analysis.document.dialect_assumed:
            raise wrong(analysis, schema, "items", "a schema in draft 2020-12; prefixItems takes several")
        _items_before_2020(analysis, facts, value, schema)
    elif "prefixItems" not in schema:
        _add_array(facts, (), value)


def _items_before_2020(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    if isinstance(value, list):
        _add_array(facts, value, schema.get("additionalItems", True))
    else:
        _add_array(facts, (), value)


def _prefix(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    _add_array(facts, value, True)


def contained(analysis: Analysis, value: Any, schema: dict[Any, Any]) -> ItemCount:
    """What ``contains`` asks, with ``minContains`` and ``maxContains`` where the dialect has them."""
    least, most = 1, None
    if analysis.document.resource(schema).dialect.year >= 2019:
        if "minContains" in schema:
            least = count(analysis, schema["minContains"], schema, "minContains")
        if "maxContains" in schema:
            most = count(analysis, schema["maxContains"], schema, "maxContains")
    return ItemCount(0, value, least, most)


def _contains(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    asked = contained(analysis, value, schema)
    if asked.least > 0 or asked.most is not None:
        facts.counts = [*facts.counts, asked]


def _item_count(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.counts = [*facts.counts, value]


# ---------------------------------------------------------------------- objects
def _object_keywords(keyword: str) -> Handler:
    """The keywords of :data:`FACET` make one facet, at the first of them."""

    def handler(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
        for other in schema:
            if other in FACET:
                if other != keyword:
                    return
                break
        properties = schema_map(analysis, schema.get("properties", {}), schema, "properties")
        patterns = schema_map(analysis, schema.get("patternProperties", {}), schema, "patternProperties")
        facts.members[id(schema)] = facts.members.pop(id(schema))  # in the order of what they declare
        facts.objects = [*facts.objects, (properties, patterns, schema.get("additionalProperties", True))]

    return handler


def _required(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.required = {**facts.required, **dict.fromkeys(name_list(analysis, value, schema, "required"))}


def _min_properties(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.min_properties = max(facts.min_properties, count(analysis, value, schema, "minProperties"))


def _max_properties(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    most = count(analysis, value, schema, "maxProperties")
    facts.max_properties = most if facts.max_properties is None else min(facts.max_properties, most)


def _property_names(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.names = [*facts.names, value]


def _some(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.some = [*facts.some, value]


def _witness(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    facts.witnesses = [*facts.witnesses, value]


# ---------------------------------------------------------------------- in place
def _reference(keyword: str) -> Handler:
    def handler(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
        analysis.collect(analysis.target(schema, value, keyword), facts)

    return handler


def _all_of(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    for part in schema_list(analysis, value, schema, "allOf"):
        analysis.collect(part, facts)


def _choice(keyword: str) -> Handler:
    def handler(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
        branches = schema_list(analysis, value, schema, keyword)

        def enum() -> list[Schema]:
            constants = constants_of(analysis, branches, differ=keyword == "oneOf")
            return [] if constants is None else [analysis.document.derived({"enum": constants}, schema)]

        if len(branches) == 1:
            analysis.collect(branches[0], facts)
        elif made := analysis.derive(schema, ("constants", keyword), enum):  # which need not be split
            analysis.collect(made[0], facts)
        else:
            facts.add_choice(branches if keyword == "anyOf" else analysis.exclusive(schema, branches), last=False)

    return handler


def _not(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    analysis.collect(analysis.negate(value, schema), facts)


def _if(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    if "then" in schema or "else" in schema:
        document = analysis.document

        def alternatives() -> list[Schema]:
            failed = document.derived({"not": value}, schema)
            return [
                document.derived({"allOf": [value, schema.get("then", True)]}, schema),
                document.derived({"allOf": [failed, schema.get("else", True)]}, schema),
            ]

        facts.add_choice(analysis.derive(schema, ("if",), alternatives))


def _dependent_required(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    for name, names in schema_map(analysis, value, schema, "dependentRequired").items():
        name_list(analysis, names, schema, "dependentRequired")
        _depend(analysis, facts, schema, "dependentRequired", name, {"required": names})


def _dependent_schemas(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    for name, dependent in schema_map(analysis, value, schema, "dependentSchemas").items():
        _depend(analysis, facts, schema, "dependentSchemas", name, dependent)


def _dependencies(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    for name, dependent in schema_map(analysis, value, schema, "dependencies").items():
        listed = isinstance(dependent, list)
        asked = {"required": name_list(analysis, dependent, schema, "dependencies")} if listed else dependent
        _depend(analysis, facts, schema, "dependencies", name, asked)


def _depend(
    analysis: Analysis, facts: Conjunction, schema: dict[Any, Any], keyword: str, name: str, dependent: Schema
) -> None:
    """Without the name, or with what the name asks for. Names that are required leave no choice."""
    if _is_anything(dependent):
        return
    document = analysis.document

    def alternatives() -> list[Schema]:
        present = document.derived({BITS: OBJECT, "required": [name], "properties": {name: True}}, schema)
        return [
            document.derived({"properties": {name: False}}, schema),
            document.derived({"allOf": [present, dependent]}, schema),
        ]

    facts.add_choice(analysis.derive(schema, (keyword, name), alternatives))


def _unevaluated(analysis: Analysis, facts: Conjunction, value: Any, schema: dict[Any, Any]) -> None:
    """Asked together with all keywords beside it (see ``unevaluated.py``); what allows everything asks nothing."""


def _is_anything(value: Any) -> bool:
    return value is True or value == {}


_COMMON: Final[dict[Any, Handler]] = {
    "type": _type,
    "enum": _enum,
    "minimum": _minimum,
    "maximum": _maximum,
    "multipleOf": _multiple_of,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "items": _items_before_2020,
    "minItems": _min_items,
    "maxItems": _max_items,
    "uniqueItems": _unique_items,
    "properties": _object_keywords("properties"),
    "patternProperties": _object_keywords("patternProperties"),
    "additionalProperties": _object_keywords("additionalProperties"),
    "required": _required,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    "$ref": _reference("$ref"),
    "allOf": _all_of,
    "anyOf": _choice("anyOf"),
    "oneOf": _choice("oneOf"),
    "not": _not,
    "dependencies": _dependencies,  # from 2019 on by another name, but who writes it means it
    BITS: _bits,
    LOW: _low,
    HIGH: _high,
    NOT_MULTIPLE: _not_multiple,
    NOT_ENUM: _not_enum,
    NOT_TEXT: _not_text,
    PREFIX: _prefix,
    ITEM_COUNT: _item_count,
    SOME: _some,
    WITNESS: _witness,
}
_DRAFT_4: Final = {**_COMMON, "minimum": _minimum_4, "maximum": _maximum_4}
_DRAFT_6: Final = {
    **_COMMON,
    "const": _const,
    "contains": _contains,
    "exclusiveMinimum": _exclusive_minimum,
    "exclusiveMaximum": _exclusive_maximum,
    "propertyNames": _property_names,
}
_DRAFT_7: Final = {**_DRAFT_6, "if": _if}
_DRAFT_2019: Final = {
    **_DRAFT_7,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "unevaluatedItems": _unevaluated,
    "unevaluatedProperties": _unevaluated,
    "$recursiveRef": _reference("$recursiveRef"),
}
_DRAFT_2020: Final = {
    **_DRAFT_2019,
    "items": _items,
    "prefixItems": _prefix_items,
    "$dynamicRef": _reference("$dynamicRef"),
}
del _DRAFT_2020["$recursiveRef"]

_HANDLERS: Final[dict[str, dict[Any, Handler]]] = dict(
    zip(DIALECTS, (_DRAFT_2020, _DRAFT_2019, _DRAFT_7, _DRAFT_6, _DRAFT_4), strict=True)
)

# The vocabularies of 2019-09 and 2020-12 by keyword; what is in none is in the one for assertions.
_APPLICATOR = (
    "additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "dependentSchemas", "if", "items", "not",
    "oneOf", "patternProperties", "prefixItems", "properties", "propertyNames",
)  # fmt: skip
_VOCABULARY_OF: Final = {
    **dict.fromkeys(_APPLICATOR, ("applicator",)),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), ("core",)),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), ("unevaluated",)),
    "format": ("format", "format-annotation", "format-assertion"),
}


@cache
def handlers(dialect: Dialect) -> dict[Any, Handler]:
    """The keywords of a dialect."""
    every = _HANDLERS[dialect.name]
    if dialect.vocabularies is None:
        return every
    active = dialect.vocabularies
    if dialect.year == 2019 and "applicator" in active:
        active |= {"unevaluated"}  # which is a vocabulary of its own from 2020 on
    return {
        keyword: handler
        for keyword, handler in every.items()
        if not isinstance(keyword, str) or not active.isdisjoint(_VOCABULARY_OF.get(keyword, ("validation",)))
    }


FACET: Final = frozenset(("properties", "patternProperties", "additionalProperties"))
"""Keywords on members that look at each other within one subschema."""

IN_PLACE: Final = frozenset(
    ("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "dependentRequired",
     "dependentSchemas", "dependencies", "unevaluatedItems", "unevaluatedProperties")
)  # fmt: skip
"""Keywords that apply other schemas to the same value, or that are about what those do."""
