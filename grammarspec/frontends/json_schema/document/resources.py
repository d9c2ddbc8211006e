"""The schema as a document: its dialect, the resources in it, and what references point to.

A document is read on demand. Its resources are looked for when the first reference or identifier is met, if it has both
references and identifiers other than its own; and then each schema belongs to the innermost one that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.json_schema.document.dialects import (
    ASSUMED,
    DIALECTS,
    LATEST,
    Dialect,
    dialect_of,
    is_standard,
    lookup,
    standard,
)
from grammarspec.frontends.json_schema.document.scopes import RECURSIVE, DynamicScope, Scopes
from grammarspec.frontends.json_schema.document.subschema import Resource, Subschema, Syntax, Target
from grammarspec.positions import pointer_token

if TYPE_CHECKING:
    import referencing

__all__ = ["REFERENCES", "Document"]

REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
_ANCHORS = ("$anchor", "$dynamicAnchor")
_INDEX = re.compile("0|[1-9][0-9]{0,17}")  # of an item in a JSON pointer


class Document:
    """A root schema with all that its references reach.

    Attributes:
        main: the resource of the root.
        start: the root.
    """

    def __init__(
        self,
        root: Any,
        dialect: str | None,
        registry: referencing.Registry[Any] | None,
        syntax: Syntax,
        *,
        dynamic: bool = True,
    ) -> None:
        """Begin to read a document.

        Args:
            root: the schema as Python values.
            dialect: the name of a dialect, or ``None`` for what the schema says.
            registry: where other documents are looked up.
            syntax: what keywords there are.
            dynamic: references to dynamic anchors are bound to the outermost ones; if not, to the nearest.

        Raises:
            GrammarError: its dialect is malformed or not known, or an identifier is malformed.
            ValueError: there is no dialect of this name.
        """
        self.registry, self._syntax = registry, syntax
        chosen = self._choose(root, dialect)
        identifier = root.get(chosen.id_keyword, "") if isinstance(root, dict) else ""
        base = _split(identifier)[0] if identifier and isinstance(identifier, str) else ""
        self.main = Resource(root, base, chosen, syntax.parsers(chosen))
        self._resources: dict[str, Resource] = {base: self.main}
        self._scopes = Scopes(self.main, self._index, dynamic=dynamic)
        self._indexed = False
        self.start: Subschema = self._scopes.root.first(Target(root, self.main, ()))

    # ------------------------------------------------------------------ dialects
    def _choose(self, root: Any, given: str | None) -> Dialect:
        if given is not None and given not in DIALECTS:
            raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, not {given!r}")
        declared = root.get("$schema") if isinstance(root, dict) else None
        if given is not None and not (isinstance(declared, str) and self._is_custom(declared)):
            return DIALECTS[given]
        assumed = given is None and not (isinstance(root, dict) and "$schema" in root)
        return dialect_of(root, self.registry, "#/$schema") or (ASSUMED if assumed else LATEST)

    def _is_custom(self, uri: str) -> bool:
        return standard(uri) is None and lookup(self.registry, uri) is not None

    # ------------------------------------------------------------------ references
    def resolve(self, schema: Subschema, reference: str, keyword: str = "$ref") -> Subschema:
        """The subschema that the ``$ref``, ``$dynamicRef`` or ``$recursiveRef`` of ``schema`` points to.

        Raises:
            GrammarSyntaxError: the reference points to nothing within the document.
            UnsupportedFeature: it points to a document that the registry does not have.
        """
        self._index()
        target = schema.resource.targets.get(reference)
        if target is None:
            target = schema.resource.targets[reference] = self._locate(schema, reference, keyword)
        scope = schema.scope
        assert isinstance(scope, DynamicScope)
        if keyword != "$ref" and isinstance(target.source, dict):
            name = reference.rpartition("#")[2] if keyword == "$dynamicRef" else RECURSIVE
            source = target.source
            if source.get("$dynamicAnchor") == name or (name == RECURSIVE and source.get(RECURSIVE) is True):
                target = scope.bindings.get(name, target)
        return scope.at(target)

    def size(self) -> int:
        """How many values the documents have that were read so far."""
        found = 0
        pending = [resource.root for resource in self._resources.values() if not resource.tokens]
        while pending:
            value = pending.pop()
            found += 1
            if isinstance(value, dict):
                pending += value.values()
            elif isinstance(value, list):
                pending += value
        return found

    def find(self, source: Any) -> Subschema | None:
        """The subschema that was read from this object, if one was, in a document that is read without scopes."""
        return self._scopes.root.find(source)

    def _locate(self, schema: Subschema, reference: str, keyword: str) -> Target:
        if reference.startswith("#"):
            return self._fragment(schema, schema.resource, reference, keyword)
        uri, fragment = _split(reference, schema.resource.base)
        resource = self._resources.get(uri) or self._retrieve(uri)
        if resource is None:
            hint = "give the document in a referencing.Registry: json_schema(..., registry=...); or by --refs"
            if is_standard(uri):
                hint = "pip install jsonschema-specifications, which has the standard meta-schemas"
            raise UnsupportedFeature(f"{keyword} to {reference!r}", where=schema.where(keyword), hint=hint)
        return self._fragment(schema, resource, "#" + fragment, keyword, reference)

    def _retrieve(self, uri: str) -> Resource | None:
        """The document of this URI, from the registry."""
        contents = lookup(self.registry, uri)
        if not isinstance(contents, dict | bool):
            return None
        known = (resource for resource in self._resources.values() if resource.root is contents)
        found = None if isinstance(contents, bool) else next(known, None)
        if found is None:
            dialect = dialect_of(contents, self.registry, f"{uri}#/$schema") or self.main.dialect
            found = Resource(contents, uri, dialect, self._syntax.parsers(dialect), document_uri=uri)
            self._resources[uri] = found
            self._find_resources(found)
        self._resources[uri] = found
        return found

    def _fragment(
        self, schema: Subschema, resource: Resource, fragment: str, keyword: str, reference: str = ""
    ) -> Target:
        """What a fragment (with ``#``) points to in a resource."""
        if fragment == "#":
            return Target(resource.root, resource, resource.tokens)
        reference = reference or fragment
        fragment = unquote(fragment[1:])
        if not fragment.startswith("/"):
            if fragment in resource.anchors:
                return resource.anchors[fragment]
            message = f"{keyword} to the unknown anchor {reference!r}"
            raise GrammarSyntaxError(message, where=schema.where(keyword))
        source, path = resource.root, [*resource.tokens]
        embedded = self._scopes.resource_at
        for token in fragment[1:].split("/"):
            name = token.replace("~1", "/").replace("~0", "~") if "~" in token else token
            path.append(name)
            if isinstance(source, dict) and name in source:
                source = source[name]
            elif isinstance(source, list) and _INDEX.fullmatch(name) and int(name) < len(source):
                source = source[int(name)]
            else:
                message = f"{keyword} {reference!r} points to nothing"
                raise GrammarSyntaxError(message, where=schema.where(keyword))
            resource = embedded.get(id(source), resource)
        if not isinstance(source, dict | bool):
            message = f"{keyword} {reference!r} points to what is no schema"
            raise GrammarSyntaxError(message, where=schema.where(keyword))
        return Target(source, resource, tuple(path))

    # ------------------------------------------------------------------ resources
    def _index(self) -> None:
        """Find the resources of the main document, if that makes a difference: the first time that it does."""
        if not self._indexed:
            self._indexed = True
            if self._has_identified_targets():
                self._find_resources(self.main)
            self._scopes.bind_root()

    def _has_identified_targets(self) -> bool:
        """Whether the main document has references, and identifiers beside its own."""
        dialect, root = self.main.dialect, self.main.root
        keywords = (dialect.id_keyword, *_ANCHORS) if dialect.year >= 2019 else (dialect.id_keyword,)
        identifying = {*keywords, RECURSIVE}
        referring = identified = False
        for part in _objects(root):
            if not (referring or REFERENCES.isdisjoint(part)):
                referring = True
            if not (identified or identifying.isdisjoint(part)):
                named = (key for key in keywords if isinstance(part.get(key), str))
                identified = part.get(RECURSIVE) is True or any(part is not root or key in _ANCHORS for key in named)
            if referring and identified:
                return True
        return False

    def _find_resources(self, start: Resource) -> None:
        """Note the anchors and resources that begin below the root of a document."""
        seen: dict[int, Resource] = {}
        pending: list[tuple[Any, tuple[str, ...], Resource]] = [(start.root, (), start)]
        while pending:
            source, path, within = pending.pop()
            if not isinstance(source, dict):
                continue
            resource = self._identified(source, path, within)
            known = seen.get(id(source))
            if known is not None:
                if known.base != resource.base:
                    message = "one Python object stands in two places with different base URIs"
                    where = f"{start.document_uri}#" + "".join("/" + pointer_token(token) for token in path)
                    raise UnsupportedFeature(message, where=where, hint="give the schema as JSON text")
                continue
            seen[id(source)] = resource
            if resource is not within:
                self._scopes.resource_at[id(source)] = resource
            children = self._syntax.children(source)
            pending.extend((child, (*path, *tokens), resource) for _, tokens, child in children)

    def _identified(self, source: dict[str, Any], path: tuple[str, ...], within: Resource) -> Resource:
        """The resource of a schema: one that begins there, or the one that it stands in."""
        dialect, resource = within.dialect, within
        if not (dialect.ref_stands_alone and "$ref" in source):
            identifier = source.get(dialect.id_keyword)
            if isinstance(identifier, str) and source is not within.root:
                uri, fragment = _split(identifier, within.base)
                if identifier.startswith("#"):
                    within.anchors[fragment] = Target(source, within, path)
                else:
                    where = f"{within.document_uri}#" + "".join("/" + pointer_token(token) for token in path)
                    own = dialect_of(source, self.registry, f"{where}/$schema") if "$schema" in source else None
                    own = own or dialect
                    resource = Resource(source, uri, own, self._syntax.parsers(own), within.document_uri, path)
                    self._resources[uri] = resource
        if dialect.year >= 2019:
            for keyword in _ANCHORS:
                name = source.get(keyword)
                if isinstance(name, str):
                    target = Target(source, resource, path)
                    resource.anchors[name] = target
                    if keyword == "$dynamicAnchor":
                        resource.dynamic_anchors[name] = target
        return resource


def _split(reference: str, base: str = "") -> tuple[str, str]:
    """The absolute URI without its fragment, and the fragment."""
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError:  # such as an unclosed bracket in the host
        raise GrammarSyntaxError(f"{reference!r} is no URI reference") from None
    return uri, fragment


def _objects(root: Any) -> Iterator[dict[str, Any]]:
    """All objects in a JSON value."""
    pending, seen = [root], {id(root)}
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield value
            parts: Iterable[Any] = value.values()
        else:
            parts = value if isinstance(value, list) else ()
        for part in parts:
            if isinstance(part, (dict, list)) and id(part) not in seen:
                seen.add(id(part))
                pending.append(part)
