"""The drafts of JSON Schema, and meta-schemas that use parts of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature

if TYPE_CHECKING:
    import referencing

__all__ = ["ASSUMED", "DIALECTS", "LATEST", "Dialect", "dialect_of", "is_standard", "lookup", "standard"]


class Dialect(NamedTuple):
    """What differs between the drafts of JSON Schema.

    Attributes:
        name: as users write it.
        uri: its meta-schema, without an empty fragment.
        id_keyword: the keyword that names a resource.
        ref_stands_alone: the siblings of ``$ref`` are ignored (up to draft 7).
        year: 4, 6, 7, 2019 or 2020, for comparisons.
        vocabularies: the last part of the URIs of the vocabularies that a meta-schema of its own leaves; ``None``: all.
        assumed: neither the schema nor the caller has named it, so that older notations are read, too.
    """

    name: str
    uri: str
    id_keyword: str
    ref_stands_alone: bool
    year: int
    vocabularies: frozenset[str] | None = None
    assumed: bool = False


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("draft2020-12", "https://json-schema.org/draft/2020-12/schema", "$id", False, 2020),
        Dialect("draft2019-09", "https://json-schema.org/draft/2019-09/schema", "$id", False, 2019),
        Dialect("draft7", "http://json-schema.org/draft-07/schema", "$id", True, 7),
        Dialect("draft6", "http://json-schema.org/draft-06/schema", "$id", True, 6),
        Dialect("draft4", "http://json-schema.org/draft-04/schema", "id", True, 4),
    )
}
LATEST = DIALECTS["draft2020-12"]
ASSUMED = LATEST._replace(assumed=True)
_BY_URI = {dialect.uri.partition("://")[2]: dialect for dialect in DIALECTS.values()}
_VOCABULARIES = {
    "https://json-schema.org/draft/2020-12/vocab/": (
        "core", "applicator", "unevaluated", "validation", "format-annotation", "format-assertion", "meta-data",
        "content",
    ),
    "https://json-schema.org/draft/2019-09/vocab/": (
        "core", "applicator", "validation", "format", "meta-data", "content",
    ),
}  # fmt: skip


def standard(uri: str) -> Dialect | None:
    """The dialect of a standard meta-schema."""
    return _BY_URI.get(uri.rstrip("#").partition("://")[2])


def lookup(registry: referencing.Registry[Any] | None, uri: str) -> Any:
    """The document of this URI, or ``None``. The standard meta-schemas need not be in the registry."""
    for known in (registry, _standard_registry() if is_standard(uri) else None):
        if known is not None:
            from referencing.exceptions import Unresolvable

            try:
                return known.resolver().lookup(uri).contents
            except Unresolvable:
                continue
    return None


def is_standard(uri: str) -> bool:
    """Whether a document is one of JSON Schema's own, which the package ``jsonschema-specifications`` has."""
    return uri.partition("://")[2].startswith("json-schema.org/")


def _standard_registry() -> referencing.Registry[Any] | None:
    try:
        from jsonschema_specifications import REGISTRY
    except ImportError:
        return None
    registry: referencing.Registry[Any] = REGISTRY
    return registry


def dialect_of(schema: Any, registry: referencing.Registry[Any] | None, where: str) -> Dialect | None:
    """The dialect that ``$schema`` of a schema says, if it has any; custom meta-schemas are looked up in the registry.

    Raises:
        GrammarSyntaxError: ``$schema`` is no string.
        UnsupportedFeature: the meta-schema is not known, or requires a vocabulary that is not.
    """
    seen: list[str] = []
    vocabularies: frozenset[str] | None = None
    while True:
        declared = schema.get("$schema") if isinstance(schema, dict) else None
        if declared is None:
            return None if not seen else LATEST._replace(vocabularies=vocabularies)
        if not isinstance(declared, str):
            raise GrammarSyntaxError("$schema must be a string", where=where)
        known = standard(declared)
        if known is not None:
            return known if vocabularies is None else known._replace(vocabularies=vocabularies)
        schema = None if declared in seen else lookup(registry, declared)
        if not isinstance(schema, dict):
            hint = f"give it in registry=, or one of dialect={', '.join(DIALECTS)} if the schema keeps to it"
            raise UnsupportedFeature(f"the meta-schema {declared!r}", where=where, hint=hint)
        seen.append(declared)
        if vocabularies is None and isinstance(schema.get("$vocabulary"), Mapping):
            vocabularies = _vocabularies(schema["$vocabulary"], declared, where)


def _vocabularies(declared: Mapping[str, Any], uri: str, where: str) -> frozenset[str]:
    """The vocabularies that a meta-schema declares, without optional ones that are not known."""
    found = set()
    for vocabulary, required in declared.items():
        base, _, name = vocabulary.rpartition("/")
        if name in _VOCABULARIES.get(base + "/", ()):
            found.add(name)
        elif required:
            raise UnsupportedFeature(f"the vocabulary {vocabulary!r}, which {uri!r} requires", where=where)
    return frozenset(found)
