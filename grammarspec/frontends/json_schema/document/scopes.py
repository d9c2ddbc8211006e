"""Dynamic scopes: what ``$dynamicRef`` and ``$recursiveRef`` point to depends on the resources entered before.

A *scope* binds each dynamic anchor to the outermost resource that has it, of those that were entered (JSON Schema
2020-12 core, sections 7.1 and 8.2.3.2; 2019-09 core, section 8.2.4.2). A subschema is a record of its own in every
scope that it is reached in, and the subschemas in it are in that scope too, so that everything else can tell schemas
apart by identity alone. There are finitely many scopes, as bindings are only ever added. Documents without dynamic
anchors have the empty scope only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, NOTHING, Resource, Subschema, Target

__all__ = ["RECURSIVE", "DynamicScope", "Scopes"]

RECURSIVE = "$recursiveAnchor"
"""The name that ``$recursiveAnchor`` binds; no plain name begins like this."""

_Bindings = frozenset[tuple[str, Target]]


class Scopes:
    """The scopes of one document."""

    def __init__(self, main: Resource, find_resources: Callable[[], None], *, dynamic: bool) -> None:
        """The scopes of a document that is read.

        Args:
            main: the resource of its root.
            find_resources: fills ``resource_at`` and binds the root, when it is first called.
            dynamic: if not, there is one scope only, without bindings.
        """
        self.dynamic, self._main = dynamic, main
        self.find_resources, self.id_keyword = find_resources, main.dialect.id_keyword
        self.resource_at: dict[int, Resource] = {}
        """The resource that begins at a schema, by ``id()`` of what was read; for all that are embedded in another."""
        self.root = DynamicScope(self, {})
        self._known: dict[_Bindings, DynamicScope] = {}

    def bind_root(self) -> None:
        """Bind the anchors of the main resource, whose schemas may have been looked at already."""
        self.root.bindings = self.root.bound(self._main)
        self._known[frozenset(self.root.bindings.items())] = self.root

    def scope(self, bindings: _Bindings) -> DynamicScope:
        """The one scope with these bindings."""
        if bindings not in self._known:
            self._known[bindings] = DynamicScope(self, dict(bindings))
        return self._known[bindings]


class DynamicScope:
    """What dynamic anchors are bound to, and the records of the schemas that were reached with these bindings."""

    __slots__ = ("_embedded", "_entered", "_id_keyword", "_records", "_scopes", "bindings")

    def __init__(self, scopes: Scopes, bindings: dict[str, Target]) -> None:
        self._scopes, self.bindings = scopes, bindings
        self._id_keyword, self._embedded = scopes.id_keyword, scopes.resource_at
        self._records: dict[int, Subschema] = {}
        """By ``id()`` of what was read, which the record keeps alive: one Python object is one schema."""
        self._entered: dict[Resource, DynamicScope] = {}

    def child(self, holder: Subschema, source: dict[str, Any], tokens: tuple[str, ...]) -> Subschema:
        """The record of a schema that stands in another one at this path."""
        found = self._records.get(id(source))
        if found is not None:
            return found
        embedded = self._embedded
        if self._id_keyword in source:
            self._scopes.find_resources()
        if embedded and id(source) in embedded:
            resource = embedded[id(source)]
            scope = self.entered(resource)
            return scope._records.get(id(source)) or scope._add(Subschema(source, holder, tokens, resource, scope))
        made = self._records[id(source)] = Subschema(source, holder, tokens, holder.resource, self)
        return made

    def find(self, source: Any) -> Subschema | None:
        """The record of what was read, if there is one in this scope."""
        return self._records.get(id(source))

    def at(self, target: Target) -> Subschema:
        """The record of what a reference points to, after it was reached from this scope."""
        return self.entered(target.resource).first(target)

    def first(self, target: Target) -> Subschema:
        """The record of what stands by itself in a document, or was found by a reference, in this scope."""
        source = target.source
        if isinstance(source, bool):
            return ANYTHING if source else NOTHING
        found = self._records.get(id(source))
        return found or self._add(Subschema(source, None, target.tokens, target.resource, self))

    def _add(self, made: Subschema) -> Subschema:
        self._records[id(made.source)] = made
        return made

    def entered(self, resource: Resource) -> DynamicScope:
        """The scope after a resource is entered from this one."""
        found = self._entered.get(resource)
        if found is None:
            bound = self.bound(resource)
            found = self if bound == self.bindings else self._scopes.scope(frozenset(bound.items()))
            self._entered[resource] = found
        return found

    def bound(self, resource: Resource) -> dict[str, Target]:
        """The bindings after a resource is entered from this scope."""
        if not self._scopes.dynamic:
            return {}
        bound = dict(self.bindings)
        own = dict(resource.dynamic_anchors)
        if isinstance(resource.root, dict) and resource.root.get(RECURSIVE) is True:
            own[RECURSIVE] = resource.anchors.get(RECURSIVE) or Target(resource.root, resource, resource.tokens)
            resource.anchors[RECURSIVE] = own[RECURSIVE]
        else:
            bound.pop(RECURSIVE, None)  # the chain of resources that may be extended is broken
        for name, target in own.items():
            bound.setdefault(name, target)
        return bound
