"""The table of all keywords, and which of them each dialect has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from grammarspec.frontends.json_schema.document.dialects import Dialect
from grammarspec.frontends.json_schema.document.resources import Document
from grammarspec.frontends.json_schema.document.subschema import Parser, Syntax
from grammarspec.frontends.json_schema.keywords import (
    arrays,
    combining,
    constants,
    dependencies,
    descriptions,
    numbers,
    objects,
    strings,
    types_and_sizes,
    unevaluated,
)
from grammarspec.frontends.json_schema.keywords.keyword import Holds, Keyword

if TYPE_CHECKING:
    import referencing

__all__ = ["IN_PLACE", "KEYWORDS", "asserting", "children", "keyword", "keywords", "read"]

KEYWORDS: Final = (
    *types_and_sizes.KEYWORDS, *constants.KEYWORDS, *numbers.KEYWORDS, *strings.KEYWORDS, *arrays.KEYWORDS,
    *objects.KEYWORDS, *combining.KEYWORDS, *dependencies.KEYWORDS, *unevaluated.KEYWORDS, *descriptions.KEYWORDS,
)  # fmt: skip
"""The records of all keywords of all dialects. A keyword whose meaning has changed has one for each range of years."""

_BY_NAME: Final[dict[str, list[Keyword]]] = defaultdict(list)
for _record in KEYWORDS:
    _BY_NAME[_record.name].append(_record)
_HOLDING: Final = {record.name: record.holds for record in KEYWORDS if record.holds is not Holds.NOTHING}

IN_PLACE: Final = frozenset(record.name for record in KEYWORDS if record.in_place)
"""Keywords that apply other schemas to the same value, and those about what such schemas evaluate."""


@cache
def keywords(dialect: Dialect) -> Mapping[str, Keyword]:
    """The keywords of a dialect, by name."""
    return {record.name: record for record in KEYWORDS if record.is_of(dialect)}


def keyword(name: str, dialect: Dialect) -> Keyword | None:
    """The record of a keyword in a dialect, or in another one if this does not have it; ``None`` if none does."""
    found = keywords(dialect).get(name)
    return found or (_BY_NAME[name][-1] if name in _BY_NAME else None)


@cache
def _parsers(dialect: Dialect) -> Mapping[str, Parser]:
    return {name: record.parse for name, record in keywords(dialect).items() if record.parse is not None}


def asserting(dialect: Dialect) -> frozenset[str]:
    """The names of the keywords that assert something by themselves."""
    return frozenset(_parsers(dialect))


def children(schema: dict[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """The subschemas of a schema in the order of the text, for keywords of any dialect; malformed ones are included.

    Returns:
        For each, the keyword that holds it, the path to it, and its value.
    """
    for name, value in schema.items():
        holds = _HOLDING.get(name)
        if holds is not None:
            for path, part in holds.children(name, value):
                yield name, path, part


_SYNTAX: Final = Syntax(_parsers, children)


def read(
    root: Any, dialect: str | None, registry: referencing.Registry[Any] | None, *, dynamic: bool = True
) -> Document:
    """The document of a schema, whose subschemas are read when they are needed; see :class:`.Document`."""
    return Document(root, dialect, registry, _SYNTAX, dynamic=dynamic)
