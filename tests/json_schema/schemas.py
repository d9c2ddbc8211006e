"""Random schemas of the supported keywords, and random values, for Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["SCHEMAS", "VALUES"]

NAMES = st.sampled_from(["a", "b", "ab", "c"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([0.5, 1.5, 2.0, -1.0]),
    st.text('ab\u00e9\n"', max_size=3),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
PATTERNS = st.sampled_from(["^a", "b", "a$", "^[ab]*$", "^(?!a)", "^.{2,}$", "\u00e9|^$"])
SMALL = st.integers(0, 3)


def _optional(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Up to three of the keywords."""

    def chosen(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({name: keywords[name] for name in names})

    return st.lists(st.sampled_from(sorted(keywords)), max_size=3, unique=True).flatmap(chosen)


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(NAMES, inner, max_size=3)
    several = st.lists(inner, min_size=1, max_size=2)
    return _optional(
        properties=members,
        additionalProperties=inner,
        patternProperties=st.dictionaries(PATTERNS, inner, max_size=2),
        propertyNames=st.builds(lambda pattern: {"pattern": pattern}, PATTERNS),
        required=st.lists(NAMES, max_size=2, unique=True),
        items=inner,
        prefixItems=several,
        contains=inner,
        anyOf=several,
        allOf=several,
        oneOf=several,
        dependentRequired=st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
        dependentSchemas=st.dictionaries(NAMES, inner, max_size=1),
        unevaluatedProperties=inner,
        unevaluatedItems=inner,
        minContains=SMALL,
        maxContains=SMALL,
        uniqueItems=st.booleans(),
        type=TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        **{"not": inner, "if": inner, "then": inner, "else": inner},
    )


LEAVES = st.one_of(
    st.booleans(),
    _optional(
        type=TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        enum=st.lists(VALUES, min_size=1, max_size=3),
        const=VALUES,
        minimum=st.integers(-2, 5),
        exclusiveMaximum=st.integers(0, 9),
        multipleOf=st.sampled_from([2, 3, 0.5]),
        minLength=SMALL,
        maxLength=SMALL,
        pattern=PATTERNS,
        minItems=SMALL,
        maxItems=SMALL,
        uniqueItems=st.booleans(),
        minProperties=SMALL,
        maxProperties=SMALL,
        required=st.lists(NAMES, max_size=2, unique=True),
    ),
)
SCHEMAS = st.recursive(LEAVES, _deeper, max_leaves=6)
