"""All subschemas of a document, reached or not, and which of them applies which.

Nothing is interpreted here beyond that: what a schema means is the matter of the room ``meaning``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from grammarspec.errors import GrammarError
from grammarspec.frontends.json_schema.document.resources import REFERENCES, Document
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.keyword import Role
from grammarspec.frontends.json_schema.keywords.tables import children, keyword
from grammarspec.positions import pointer_token

__all__ = ["Edge", "Graph", "Path", "at", "parsed", "pointer"]

Path = tuple[str, ...]
"""The unescaped tokens of a JSON pointer."""

_ANCHORS = ("$anchor", "$dynamicAnchor", "$recursiveAnchor")


def pointer(path: Path) -> str:
    """The path as a JSON pointer in a fragment: ``#/properties/a~1b``."""
    return "#" + "".join("/" + pointer_token(token) for token in path)


def parsed(where: str) -> Path | None:
    """The path of an error's place; ``None`` if that is no place in the main document."""
    if not where.startswith("#"):
        where = where.partition("\n  at #")[2]  # the place in a pattern comes first
        if not where:
            return None
        where = "#" + where
    if where == "#":
        return ()
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in where[2:].split("/"))


def at(value: Any, token: str) -> Any:
    """The member or item of this name.

    Raises:
        KeyError, IndexError, TypeError: there is none.
    """
    return value[int(token)] if isinstance(value, list) and token.isdecimal() else value[token]  # pyright: ignore


class Edge(NamedTuple):
    """One subschema applies another one by a keyword, or just holds it."""

    source: Subschema
    keyword: str
    target: Subschema
    applies: bool


class Graph:
    """The subschemas of a document and of what its references reach.

    Attributes:
        edges: from each subschema that is an object to those that it holds or refers to; in the order of the document,
            so that what a subschema stands in comes before it.
        reached: the subschemas that a value may have to satisfy or to fail. References are followed from these only.
    """

    def __init__(self, document: Document) -> None:
        """``document``: read without dynamic scopes, so that each place is one subschema."""
        self.document = document
        self.edges: dict[Subschema, list[Edge]] = {}
        self.reached: set[Subschema] = set()
        if isinstance(document.start.source, dict):
            self._spread(document.start)
            self._reach(document.start)

    # ------------------------------------------------------------------ making
    def _spread(self, start: Subschema) -> None:
        """Note all that stands in a subschema, depth first in the order of the text."""
        pending = [start]
        while pending:
            schema = pending.pop()
            if schema in self.edges:
                continue
            edges = self.edges[schema] = []
            for name, tokens, source in children(schema.source):
                if isinstance(source, dict):
                    record = keyword(name, schema.resource.dialect)
                    applies = record is None or record.role is not Role.IDENTIFIER
                    edges.append(Edge(schema, name, schema.child(source, *tokens), applies))
            pending.extend(edge.target for edge in reversed(edges))

    def _reach(self, root: Subschema) -> None:
        """Follow what is applied, references included, which may point outside of the keywords for subschemas."""
        self.reached.add(root)
        pending = [root]
        while pending:
            schema = pending.pop()
            edges = self.edges[schema]
            if "$ref" in schema.keywords and schema.resource.dialect.ref_stands_alone:
                edges[:] = [edge._replace(applies=False) for edge in edges]
            for name in REFERENCES:
                if name in schema.keywords:
                    edges += [Edge(schema, name, target, True) for target in list(self._targets(schema, name))]
            for edge in edges:
                if edge.applies and edge.target not in self.reached:
                    self.reached.add(edge.target)
                    pending.append(edge.target)

    def _targets(self, schema: Subschema, name: str) -> Iterator[Subschema]:
        """What a reference points to; of a dynamic one, all that it may be bound to."""
        reference = schema.keywords[name]
        try:
            target = self.document.resolve(schema, reference) if isinstance(reference, str) else None
        except GrammarError:  # to nothing; that is found again, with its place, by the front-end
            target = None
        if target is not None and isinstance(target.source, dict):
            self._spread(target)
            yield target
        if name != "$ref":
            id_keyword = schema.resource.dialect.id_keyword
            for other in list(self.edges):
                if other.parent is None or any(name in other.keywords for name in (*_ANCHORS, id_keyword)):
                    yield other

    # ------------------------------------------------------------------ asking
    def split(self, path: Path) -> tuple[Subschema, Path] | None:
        """The innermost subschema on a path of the main document, and the rest: a keyword and what is within it."""
        value: Any = self.document.main.root
        found: tuple[Subschema, int] | None = None
        for depth in range(len(path) + 1):
            known = self.document.find(value) if isinstance(value, dict) else None
            if known in self.edges:
                found = known, depth
            if depth < len(path):
                try:
                    value = at(value, path[depth])
                except (KeyError, IndexError, TypeError):
                    break
        return None if found is None else (found[0], path[found[1] :])

    def reached_without(self, left_out: Collection[str]) -> set[Subschema]:
        """The subschemas that are reached still if keywords, or parts of them, are left out.

        Args:
            left_out: their JSON pointers.
        """
        start = self.document.start
        found = {start} & self.edges.keys()
        pending = list(found)
        while pending:
            schema = pending.pop()
            base = schema.pointer
            if base in left_out:
                continue
            for edge in self.edges[schema]:
                holder, target = f"{base}/{edge.keyword}", edge.target
                if edge.applies and target not in found and holder not in left_out:
                    if edge.keyword not in REFERENCES and target.pointer in left_out:
                        continue
                    found.add(target)
                    pending.append(target)
        return found

    def tested(self) -> dict[Subschema, set[str]]:
        """Keywords by which something else than more texts may come of a subschema that holds of more values."""
        return {schema: set(_testing(schema)) for schema in self.reached}

    def negated(self) -> set[Subschema]:
        """The subschemas that stand, at whatever depth, where something is to fail."""
        tested = self.tested()
        found: set[Subschema] = set()
        pending = [edge.target for key in self.reached for edge in self.edges[key] if edge.keyword in tested[key]]
        while pending:
            schema = pending.pop()
            if schema not in found:
                found.add(schema)
                pending.extend(edge.target for edge in self.edges[schema] if edge.applies)
        return found

    def testers(self, start: Subschema) -> list[tuple[Subschema, str]]:
        """The keywords that test a subschema, at whatever depth it stands in what they hold or refer to."""
        sources: dict[Subschema, list[Edge]] = {}
        for source in self.reached:
            for edge in self.edges[source]:
                if edge.applies:
                    sources.setdefault(edge.target, []).append(edge)
        tested = self.tested()
        seen = {start}
        pending = [start]
        found: dict[tuple[Subschema, str], None] = {}
        while pending:
            for edge in sources.get(pending.pop(), ()):
                if edge.keyword in tested[edge.source]:
                    found[edge.source, edge.keyword] = None
                if edge.source not in seen:
                    seen.add(edge.source)
                    pending.append(edge.source)
        return list(found)


def _testing(schema: Subschema) -> Iterator[str]:
    """The keywords in which a subschema's failing matters, and not only that it holds."""
    for name in schema.keywords:
        record = keyword(name, schema.resource.dialect)
        if record is not None and record.tests(schema.keywords):
            yield name
