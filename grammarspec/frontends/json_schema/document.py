"""The schema as a document: reading it, its dialect, the places in it, and what its references point to.

A subschema is the Python object it was read as and is told from others by ``id()``; no paths are carried along. The
JSON pointer of a place is searched for when an error needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote, urldefrag, urljoin

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, UnsupportedFeature

if TYPE_CHECKING:
    import referencing

__all__ = ["DIALECTS", "Dialect", "Document", "Resource", "Schema", "load"]

Schema = Any  # a dict (keyword -> value), True or False; anything else is malformed and refused where it is met


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the drafts of JSON Schema.

    Attributes:
        name: as users write it.
        uri: its meta-schema, without an empty fragment.
        id_keyword: the keyword that names a resource.
        ref_stands_alone: the siblings of ``$ref`` are ignored (up to draft 7).
        year: 4, 6, 7, 2019 or 2020, for comparisons.
    """

    name: str
    uri: str
    id_keyword: str
    ref_stands_alone: bool
    year: int


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
_LATEST = DIALECTS["draft2020-12"]
_BY_URI = {dialect.uri.partition("://")[2]: dialect for dialect in DIALECTS.values()}

# Keywords that hold subschemas: the only places where an identifier is one.
_ONE = (
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_MANY = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
_ANCHORS = ("$anchor", "$dynamicAnchor")


@dataclass(slots=True, eq=False)
class Resource:
    """A schema that references are relative to: a document, or a part of one with an identifier of its own."""

    root: Schema
    base: str
    dialect: Dialect
    anchors: dict[str, Schema] = field(default_factory=dict)


def load(schema: Schema | str | bytes) -> Schema:
    """The schema as Python values; numbers of JSON text that have a fraction or an exponent are ``Decimal``.

    Raises:
        GrammarSyntaxError: the text is not JSON.
        LimitExceeded: it nests too deeply, or a number in it is too long.
    """
    if not isinstance(schema, str | bytes | bytearray):
        return schema
    try:
        return json.loads(schema, parse_float=_decimal, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = f"the schema is not JSON: {error.msg}"
        raise GrammarSyntaxError(message, where=f"line {error.lineno}, column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise GrammarSyntaxError(f"the schema is not JSON: {error}") from None
    except RecursionError:
        raise LimitExceeded("the nesting depth of the schema's text is beyond what can be read") from None
    except GrammarError:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise LimitExceeded(f"the number of digits: {error}") from None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except DecimalException:
        raise LimitExceeded(f"the exponent of the number {text:.40} is beyond what can be computed with") from None


def _refuse_constant(name: str) -> NoReturn:
    raise GrammarSyntaxError(f"the schema is not JSON: {name} is no JSON number")


class Document:
    """A root schema with all that its references reach."""

    def __init__(self, root: Schema, dialect: str | None, registry: referencing.Registry[Any] | None) -> None:
        self.registry = registry
        chosen = self._choose(root, dialect)
        self.dialect_assumed = dialect is None and not (isinstance(root, dict) and "$schema" in root)
        identifier = root.get(chosen.id_keyword, "") if isinstance(root, dict) else ""
        base = _split(identifier)[0] if isinstance(identifier, str) else ""
        self.main = Resource(root, base, chosen)
        self.resources: dict[str, Resource] = {}
        self.resource_of: dict[int, Resource] = {}
        """By ``id()`` of the subschema, for all that are not plainly part of the main resource."""
        self._targets: dict[tuple[int, str], Schema] = {}
        self._origins: dict[int, Schema] = {}
        self._places: dict[int, _Parents] = {}
        self._indexed = False

    # ------------------------------------------------------------------ dialects
    def _choose(self, root: Schema, given: str | None) -> Dialect:
        declared = root.get("$schema") if isinstance(root, dict) else None
        if given is not None:
            if given not in DIALECTS:
                raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, not {given!r}")
            if not isinstance(declared, str) or _standard(declared) or not self._is_registered(declared):
                return DIALECTS[given]
        if declared is None:
            return _LATEST
        if not isinstance(declared, str):
            raise GrammarSyntaxError("$schema must be a string", where="#/$schema")
        known = _standard(declared)
        if known is None:
            hint = f"give one of dialect={', '.join(DIALECTS)} if the schema keeps to it"
            raise UnsupportedFeature(f"the meta-schema {declared!r}", where="#/$schema", hint=hint)
        return known

    def _is_registered(self, uri: str) -> bool:
        return self.registry is not None and uri.rstrip("#") in self.registry

    def resource(self, schema: Schema) -> Resource:
        """The resource that a subschema belongs to."""
        return self.resource_of.get(id(schema), self.main)

    # ------------------------------------------------------------------ references
    def resolve(self, schema: Schema, reference: Any) -> Schema:
        """The subschema that the ``$ref`` of ``schema`` points to.

        Raises:
            GrammarSyntaxError: the reference is no string, or points to nothing within the document.
            UnsupportedFeature: it points to a document that the registry does not have.
        """
        if not isinstance(reference, str):
            raise GrammarSyntaxError("$ref must be a string", where=self.where(schema, "$ref"))
        if not self._indexed:
            self._index()
        resource = self.resource_of.get(id(schema), self.main)
        key = (id(resource), reference)
        if key not in self._targets:
            self._targets[key] = self._resolve(schema, resource, reference)
        return self._targets[key]

    def _resolve(self, schema: Schema, resource: Resource, reference: str) -> Schema:
        if reference.startswith("#"):
            return self._fragment(schema, resource, reference[1:], reference)
        uri, fragment = _split(reference, resource.base)
        target = self.resources.get(uri) or self._retrieve(uri)
        if target is None:
            hint = "give the document in a referencing.Registry: json_schema(..., registry=...)"
            raise UnsupportedFeature(f"$ref to {reference!r}", where=self.where(schema, "$ref"), hint=hint)
        return self._fragment(schema, target, fragment, reference)

    def _retrieve(self, uri: str) -> Resource | None:
        if self.registry is None:
            return None
        from referencing.exceptions import Unresolvable

        try:
            contents = self.registry.resolver().lookup(uri).contents
        except Unresolvable:
            return None
        if not isinstance(contents, dict | bool):
            return None
        found = self.resource_of.get(id(contents))
        if found is None:
            declared = contents.get("$schema") if isinstance(contents, dict) else None
            dialect = _standard(declared) if isinstance(declared, str) else self.main.dialect
            if dialect is None:
                raise UnsupportedFeature(f"the meta-schema {declared!r} of {uri}")
            found = Resource(contents, uri, dialect)
            self._enter(found)
        self.resources[uri] = found
        return found

    def _fragment(self, schema: Schema, resource: Resource, fragment: str, reference: str) -> Schema:
        if fragment == "":
            return resource.root
        if not fragment.startswith("/"):
            if fragment in resource.anchors:
                return resource.anchors[fragment]
            raise GrammarSyntaxError(f"$ref to the unknown anchor {reference!r}", where=self.where(schema, "$ref"))
        target = resource.root
        for token in unquote(fragment[1:]).split("/"):
            resource = self.resource_of.get(id(target), resource)
            name = token.replace("~1", "/").replace("~0", "~") if "~" in token else token
            if isinstance(target, dict) and name in target:
                target = target[name]
            elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                raise GrammarSyntaxError(f"$ref {reference!r} points to nothing", where=self.where(schema, "$ref"))
        if resource is not self.main and isinstance(target, dict) and id(target) not in self.resource_of:
            self._spread(resource, target)  # under a keyword that holds no schemas by itself
        return target

    # ------------------------------------------------------------------ resources
    def _index(self) -> None:
        """Find the identifiers in the main document, if it may have any beside its own."""
        self._indexed = True
        self.resources[self.main.base] = self.main
        dialect, root = self.main.dialect, self.main.root
        keywords = (dialect.id_keyword, *_ANCHORS) if dialect.year >= 2019 else (dialect.id_keyword,)
        for part in _dicts(root):
            for keyword in keywords:
                if isinstance(part.get(keyword), str) and (part is not root or keyword in _ANCHORS):
                    self._enter(self.main)
                    return

    def _enter(self, resource: Resource) -> None:
        self.resources[resource.base] = resource
        self._spread(resource, resource.root)

    def _spread(self, resource: Resource, root: Schema) -> None:
        """Note the resource of every subschema below ``root``, and the anchors and resources that begin there."""
        pending = [(root, resource)]
        while pending:
            schema, within = pending.pop()
            if not isinstance(schema, dict):
                continue
            current = self._identify(schema, within)
            known = self.resource_of.get(id(schema))
            if known is not None:
                if known.base != current.base:
                    message = "one Python object stands in two places with different base URIs"
                    raise UnsupportedFeature(message, where=self.where(schema), hint="give the schema as JSON text")
                continue
            self.resource_of[id(schema)] = current
            pending.extend((child, current) for child in _subschemas(schema))

    def _identify(self, schema: dict[str, Any], within: Resource) -> Resource:
        dialect = within.dialect
        resource = within
        if not (dialect.ref_stands_alone and "$ref" in schema):
            identifier = schema.get(dialect.id_keyword)
            if isinstance(identifier, str) and schema is not within.root:
                uri, fragment = _split(identifier, within.base)
                if identifier.startswith("#"):
                    within.anchors[fragment] = schema
                else:
                    declared = schema.get("$schema")
                    own = _standard(declared) if isinstance(declared, str) else None
                    resource = self.resources[uri] = Resource(schema, uri, own or dialect)
        if dialect.year >= 2019:
            for keyword in _ANCHORS:
                if isinstance(schema.get(keyword), str):
                    resource.anchors[schema[keyword]] = schema
        return resource

    # ------------------------------------------------------------------ places
    def derived(self, schema: Schema, origin: Schema) -> Schema:
        """Note that ``schema`` was made from ``origin``: same place, same resource."""
        self._origins[id(schema)] = self._origins.get(id(origin), origin)
        if self.resource_of:
            resource = self.resource_of.get(id(origin))
            if resource is not None:
                self.resource_of[id(schema)] = resource
        return schema

    def origin(self, schema: Schema) -> Schema:
        """The subschema that one was made from; itself, if it is the document's own."""
        return self._origins.get(id(schema), schema)

    def where(self, schema: Schema, *keywords: str | int) -> str:
        """The JSON pointer of a keyword in a subschema, after the URI of its document if that is another one."""
        schema = self.origin(schema)
        tail = "".join("/" + _token(keyword) for keyword in keywords)
        roots = [("", self.main.root)]
        roots += [(r.base, r.root) for r in self.resources.values() if r is not self.main]
        for base, root in roots:
            parents = self._places.get(id(root))
            if parents is None:
                parents = self._places[id(root)] = _parents(root)
            if id(schema) in parents and not isinstance(schema, bool):
                return f"{base}#{_path(parents, schema)}{tail}"
        return f"#{tail}"


def _standard(uri: str) -> Dialect | None:
    return _BY_URI.get(uri.rstrip("#").partition("://")[2])


def _split(reference: str, base: str = "") -> tuple[str, str]:
    """The absolute URI without its fragment, and the fragment."""
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError:  # such as an unclosed bracket in the host
        raise GrammarSyntaxError(f"{reference!r} is no URI reference") from None
    return uri, fragment


def _token(key: str | int) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def _subschemas(schema: dict[str, Any]) -> Iterator[Schema]:
    for keyword in _ONE:
        if isinstance(schema.get(keyword), dict):
            yield schema[keyword]
    for keyword in _MANY:
        if isinstance(schema.get(keyword), list):
            yield from schema[keyword]
    for keyword in _NAMED:
        if isinstance(schema.get(keyword), dict):
            yield from schema[keyword].values()


def _dicts(root: Schema) -> Iterator[dict[str, Any]]:
    pending, seen = [root], {id(root)}
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
        for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            if isinstance(child, dict | list) and id(child) not in seen:
                seen.add(id(child))
                pending.append(child)


_Parents = dict[int, tuple[Any, str | int]]


def _parents(root: Schema) -> _Parents:
    """For every object and array, by ``id()``: what it stands in and where; the first place, breadth first."""
    parents: _Parents = {id(root): (None, "")}
    level = [root]
    while level:
        following = []
        for value in level:
            children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            for key, child in children:
                if isinstance(child, dict | list) and id(child) not in parents:
                    parents[id(child)] = (value, key)
                    following.append(child)
        level = following
    return parents


def _path(parents: _Parents, value: Any) -> str:
    tokens: list[str] = []
    while True:
        parent, key = parents[id(value)]
        if parent is None:
            return "".join("/" + token for token in reversed(tokens))
        tokens.append(_token(key))
        value = parent
