"""Dynamic scopes: what ``$dynamicRef`` and ``$recursiveRef`` point to depends on how a schema was come to.

A *scope* binds each dynamic anchor to the outermost resource that has it, of those that were entered on the way. A
schema in a scope is a copy of its own whose subschemas are in that scope too, so that everything else can go on telling
schemas apart by identity (JSON Schema 2020-12 core, sections 7.1 and 8.2.3.2; 2019-09 core, section 8.2.4.2). There are
finitely many scopes: bindings are only ever added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grammarspec.frontends.json_schema.document.subschemas import LISTS, MAPS, SINGLE

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.document.document import Resource, Schema

__all__ = ["RECURSIVE", "Scope", "Scopes", "ScopesNeeded"]

RECURSIVE = "$recursiveAnchor"
"""What ``$recursiveAnchor`` binds; no plain name begins like this."""

Scope = tuple[tuple[str, int], ...]
"""Names with the ``id()`` of what they are bound to, sorted."""


class ScopesNeeded(Exception):
    """A dynamic reference was met: the document must be read again, with scopes."""


class Scopes:
    """The scopes of one document, and the copies of its schemas in them."""

    def __init__(self, resource_of: Callable[[Schema], Resource], derived: Callable[[Schema, Schema], Schema]) -> None:
        self.resource_of, self.derived = resource_of, derived
        self.scope_of: dict[int, Scope] = {}
        """By ``id()`` of a copy."""
        self._bound: dict[int, Schema] = {}
        self._copies: dict[tuple[int, Scope], Schema] = {}

    def enter(self, schema: Schema, scope: Scope) -> Schema:
        """The schema as it is after having come to it from ``scope``."""
        if not isinstance(schema, dict):
            return schema
        scope = self._within(self.resource_of(schema), scope)
        key = (id(schema), scope)
        copy = self._copies.get(key)
        if copy is None:
            copy = self._copies[key] = dict(schema)
            self.derived(copy, schema)
            self.scope_of[id(copy)] = scope
            self._enter_subschemas(copy, scope)
        return copy

    def binding(self, schema: Schema, name: str, otherwise: Schema) -> Schema:
        """What a name is bound to in the scope of ``schema``."""
        for bound, target in self.scope_of.get(id(schema), ()):
            if bound == name:
                return self._bound[target]
        return otherwise

    def _within(self, resource: Resource, scope: Scope) -> Scope:
        bound = dict(scope)
        own = dict(resource.dynamic_anchors)
        if isinstance(resource.root, dict) and resource.root.get(RECURSIVE) is True:
            own[RECURSIVE] = resource.root
        else:
            bound.pop(RECURSIVE, None)  # the chain of resources that may be extended is broken
        for name, target in own.items():
            self._bound[id(target)] = target
            bound.setdefault(name, id(target))
        return tuple(sorted(bound.items()))

    def _enter_subschemas(self, copy: dict[str, Any], scope: Scope) -> None:
        for keyword in SINGLE:
            if isinstance(copy.get(keyword), dict):
                copy[keyword] = self.enter(copy[keyword], scope)
        for keyword in LISTS:
            if isinstance(copy.get(keyword), list):
                copy[keyword] = [self.enter(part, scope) for part in copy[keyword]]
        for keyword in MAPS:
            if isinstance(copy.get(keyword), dict):
                copy[keyword] = {name: self.enter(part, scope) for name, part in copy[keyword].items()}
