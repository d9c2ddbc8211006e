"""The graph of a document's subschemas: which subschema holds or applies which other one, and by which keyword.

A document comes in; a :class:`Graph` comes out, with questions that reports and the relaxing of schemas ask. Assertions
are not interpreted here; the package ``meaning`` does that.
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
    """The path of the place that an error names; ``None`` if it is not in the main document."""
    if not where.startswith("#"):
        where = where.partition("\n  at #")[2]  # an error in a pattern names the place in the pattern first
        if not where:
            return None
        where = "#" + where
    if where == "#":
        return ()
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in where[2:].split("/"))


def at(value: Any, token: str) -> Any:
    """The member or item of a value that a token of a JSON pointer names.

    Raises:
        KeyError, IndexError, TypeError: there is no such member or item.
    """
    return value[int(token)] if isinstance(value, list) and token.isdecimal() else value[token]  # pyright: ignore


class Edge(NamedTuple):
    """An edge of the graph: a keyword of one subschema holds another subschema, or refers to it.

    Attributes:
        source: the subschema with the keyword.
        keyword: the keyword.
        target: the subschema that it holds or refers to.
        applies: whether the keyword applies the target to values; ``$defs`` only holds it.
    """

    source: Subschema
    keyword: str
    target: Subschema
    applies: bool


class Graph:
    """The subschemas of a document and of what its references reach.

    Attributes:
        edges: for each subschema that is an object, its edges to those that it holds or refers to. The keys are in the
            order of the document, so a subschema comes after those that contain it.
        reached: the subschemas that may be applied to a value, inside negations or not. References are followed from
            these only.
    """

    def __init__(self, document: Document) -> None:
        """Make the graph of a document.

        Args:
            document: the document, read without dynamic scopes, so that each place is one subschema.
        """
        self.document = document
        self.edges: dict[Subschema, list[Edge]] = {}
        self.reached: set[Subschema] = set()
        if isinstance(document.start.source, dict):
            self._spread(document.start)
            self._reach(document.start)

    # ------------------------------------------------------------------ making
    def _spread(self, start: Subschema) -> None:
        """Add a subschema and all subschemas in it, depth first in the order of the text."""
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
        """Add the edges of references, and find the subschemas that are applied from ``root`` on."""
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
        """The subschemas that a reference may point to: one, or for a dynamic reference all that it may be bound to."""
        reference = schema.keywords[name]
        try:
            target = self.document.resolve(schema, reference) if isinstance(reference, str) else None
        except GrammarError:  # it points to nothing; the front-end raises that error, with its place
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
        """The innermost subschema on a path in the main document, and the rest of the path, from a keyword on."""
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
        """The subschemas that are still reached if some keywords, or parts of keywords, are left out.

        Args:
            left_out: the JSON pointers of these.
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
        """For each reached subschema, its keywords that test subschemas.

        Where a keyword tests a subschema (as ``not`` does), a weaker subschema may make the schema stricter.
        """
        return {schema: set(_testing(schema)) for schema in self.reached}

    def negated(self) -> set[Subschema]:
        """The subschemas that a keyword tests, directly or at any depth; they may have to fail."""
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
        """The keywords that test a subschema, directly or at any depth, each with the schema that has it."""
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
    """The keywords of a schema that test whether a subschema fails, and not only whether it holds."""
    for name in schema.keywords:
        record = keyword(name, schema.resource.dialect)
        if record is not None and record.tests(schema.keywords):
            yield name
