"""The schema as a document: reading it, its dialect, the places in it, and what its references point to.

A subschema is the Python object it was read as and is told from others by ``id()``; no paths are carried along. The
JSON pointer of a place is searched for when an error needs it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote, urldefrag, urljoin

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.json_schema.document.dialects import (
    DIALECTS,
    LATEST,
    Dialect,
    dialect_of,
    is_standard,
    lookup,
    standard,
)
from grammarspec.frontends.json_schema.document.scopes import RECURSIVE, Scopes, ScopesNeeded
from grammarspec.frontends.json_schema.document.subschemas import children, subschemas
from grammarspec.positions import pointer_token

if TYPE_CHECKING:
    import referencing

__all__ = ["Document", "Resource", "Schema", "load"]

Schema = Any  # a dict (keyword -> value), True or False; anything else is malformed and refused where it is met


_ANCHORS = ("$anchor", "$dynamicAnchor")
_INDEX = re.compile("0|[1-9][0-9]{0,17}")  # of an item in a JSON pointer


@dataclass(slots=True, eq=False)
class Resource:
    """A schema that references are relative to: a document, or a part of one with an identifier of its own."""

    root: Schema
    base: str
    dialect: Dialect
    anchors: dict[str, Schema] = field(default_factory=dict)
    dynamic_anchors: dict[str, Schema] = field(default_factory=dict)


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

    def __init__(
        self, root: Schema, dialect: str | None, registry: referencing.Registry[Any] | None, *, dynamic: bool = False
    ) -> None:
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
        self._origins: dict[int, tuple[Schema, Schema]] = {}
        """For each derived schema, itself (so that its ``id()`` is never another's) and the document's own."""
        self._places: dict[int, _Parents] = {}
        self._indexed = False
        self._scopes = Scopes(self.resource, self.derived) if dynamic else None

    @property
    def start(self) -> Schema:
        """The schema of a whole text."""
        if self._scopes is None:
            return self.main.root
        self._index()
        return self._scopes.enter(self.main.root, ())

    # ------------------------------------------------------------------ dialects
    def _choose(self, root: Schema, given: str | None) -> Dialect:
        if given is not None and given not in DIALECTS:
            raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, not {given!r}")
        declared = root.get("$schema") if isinstance(root, dict) else None
        if given is not None and not (isinstance(declared, str) and self._is_custom(declared)):
            return DIALECTS[given]
        return dialect_of(root, self.registry, "#/$schema") or LATEST

    def _is_custom(self, uri: str) -> bool:
        return standard(uri) is None and lookup(self.registry, uri) is not None

    def resource(self, schema: Schema) -> Resource:
        """The resource that a subschema belongs to."""
        return self.resource_of.get(id(schema), self.main)

    # ------------------------------------------------------------------ references
    def resolve(self, schema: Schema, reference: Any, keyword: str = "$ref") -> Schema:
        """The subschema that the ``$ref``, ``$dynamicRef`` or ``$recursiveRef`` of ``schema`` points to.

        Raises:
            GrammarSyntaxError: the reference is no string, or points to nothing within the document.
            UnsupportedFeature: it points to a document that the registry does not have.
            ScopesNeeded: it is a dynamic reference, and scopes are not kept.
        """
        if not isinstance(reference, str):
            raise GrammarSyntaxError(f"{keyword} must be a string", where=self.where(schema, keyword))
        if not self._indexed:
            self._index()
        if keyword != "$ref" and self._scopes is None:
            raise ScopesNeeded
        resource = self.resource_of.get(id(schema), self.main)
        key = (id(resource), reference)
        if key not in self._targets:
            self._targets[key] = self._resolve(schema, resource, reference, keyword)
        target = self._targets[key]
        if self._scopes is None:
            return target
        if keyword != "$ref" and isinstance(target, dict):
            dynamic = reference.rpartition("#")[2] if keyword == "$dynamicRef" else RECURSIVE
            if target.get("$dynamicAnchor") == dynamic or (dynamic == RECURSIVE and target.get(RECURSIVE) is True):
                target = self._scopes.binding(schema, dynamic, target)
        return self._scopes.enter(target, self._scopes.scope_of.get(id(schema), ()))

    def _resolve(self, schema: Schema, resource: Resource, reference: str, keyword: str) -> Schema:
        if reference.startswith("#"):
            return self._fragment(schema, resource, reference[1:], keyword)
        uri, fragment = _split(reference, resource.base)
        target = self.resources.get(uri) or self._retrieve(uri)
        if target is None:
            hint = "give the document in a referencing.Registry: json_schema(..., registry=...); or by --refs"
            if is_standard(uri):
                hint = "pip install jsonschema-specifications, which has the standard meta-schemas"
            raise UnsupportedFeature(f"{keyword} to {reference!r}", where=self.where(schema, keyword), hint=hint)
        return self._fragment(schema, target, fragment, keyword)

    def _retrieve(self, uri: str) -> Resource | None:
        contents = lookup(self.registry, uri)
        if not isinstance(contents, dict | bool):
            return None
        found = self.resource_of.get(id(contents))
        if found is None:
            dialect = dialect_of(contents, self.registry, f"{uri}#/$schema") or self.main.dialect
            found = Resource(contents, uri, dialect)
            self._enter(found)
        self.resources[uri] = found
        return found

    def _fragment(self, schema: Schema, resource: Resource, fragment: str, keyword: str) -> Schema:
        if fragment == "":
            return resource.root
        fragment = unquote(fragment)
        if not fragment.startswith("/"):
            if fragment in resource.anchors:
                return resource.anchors[fragment]
            message = f"{keyword} to the unknown anchor {schema[keyword]!r}"
            raise GrammarSyntaxError(message, where=self.where(schema, keyword))
        target = resource.root
        for token in fragment[1:].split("/"):
            resource = self.resource_of.get(id(target), resource)
            name = token.replace("~1", "/").replace("~0", "~") if "~" in token else token
            if isinstance(target, dict) and name in target:
                target = target[name]
            elif isinstance(target, list) and _INDEX.fullmatch(name) and int(name) < len(target):
                target = target[int(name)]
            else:
                message = f"{keyword} {schema[keyword]!r} points to nothing"
                raise GrammarSyntaxError(message, where=self.where(schema, keyword))
        if not isinstance(target, dict | bool):
            message = f"{keyword} {schema[keyword]!r} points to what is no schema"
            raise GrammarSyntaxError(message, where=self.where(schema, keyword))
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
            pending.extend((child, current) for child in subschemas(schema))

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
                    own = None
                    if "$schema" in schema:
                        own = dialect_of(schema, self.registry, self.where(schema, "$schema"))
                    resource = self.resources[uri] = Resource(schema, uri, own or dialect)
        if dialect.year >= 2019:
            for keyword in _ANCHORS:
                if isinstance(schema.get(keyword), str):
                    resource.anchors[schema[keyword]] = schema
            if isinstance(schema.get("$dynamicAnchor"), str):
                resource.dynamic_anchors[schema["$dynamicAnchor"]] = schema
        return resource

    # ------------------------------------------------------------------ places
    def derived(self, schema: Schema, origin: Schema) -> Schema:
        """Note that ``schema`` was made from ``origin``: same place, same resource."""
        self._origins[id(schema)] = schema, self.origin(origin)
        if self.resource_of:
            resource = self.resource_of.get(id(origin))
            if resource is not None:
                self.resource_of[id(schema)] = resource
        if self._scopes is not None and id(origin) in self._scopes.scope_of:
            self._scopes.scope_of[id(schema)] = self._scopes.scope_of[id(origin)]
        return schema

    def origin(self, schema: Schema) -> Schema:
        """The subschema that one was made from; itself, if it is the document's own."""
        made = self._origins.get(id(schema))
        return schema if made is None else made[1]

    def where(self, schema: Schema, *keywords: str | int) -> str:
        """The JSON pointer of a keyword in a subschema, after the URI of its document if that is another one."""
        schema = self.origin(schema)
        tail = "".join("/" + pointer_token(keyword) for keyword in keywords)
        for base, root in self._roots():
            parents = self._places.get(id(root))
            if parents is None:
                parents = self._places[id(root)] = _parents(root)
            if id(schema) in parents and not isinstance(schema, bool):
                return f"{base}#{_path(parents, schema)}{tail}"
        return f"#{tail}"

    def where_malformed(self, value: Any) -> str:
        """The JSON pointer of what stands in the place of a subschema and is none; empty if it stands in no such."""
        for base, root in self._roots():
            pending: list[tuple[Any, tuple[str, ...]]] = [(root, ())]
            seen: set[int] = set()
            while pending:
                schema, path = pending.pop()
                if schema is value:
                    return f"{base}#" + "".join("/" + pointer_token(token) for token in path)
                if isinstance(schema, dict) and id(schema) not in seen:
                    seen.add(id(schema))
                    pending += reversed([(part, (*path, *tokens)) for _, tokens, part in children(schema)])
        return ""

    def _roots(self) -> list[tuple[str, Schema]]:
        others = [resource for resource in self.resources.values() if resource is not self.main]
        return [("", self.main.root), *((resource.base, resource.root) for resource in others)]


def _split(reference: str, base: str = "") -> tuple[str, str]:
    """The absolute URI without its fragment, and the fragment."""
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError:  # such as an unclosed bracket in the host
        raise GrammarSyntaxError(f"{reference!r} is no URI reference") from None
    return uri, fragment


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
        tokens.append(pointer_token(key))
        value = parent
