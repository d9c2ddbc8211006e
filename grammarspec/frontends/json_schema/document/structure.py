"""The subschemas of a document with their places, and which of them applies which.

Nothing is interpreted here beyond that: what a schema means is the matter of ``analysis.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from grammarspec.errors import GrammarError
from grammarspec.frontends.json_schema.document.dialects import Dialect
from grammarspec.frontends.json_schema.document.document import Document
from grammarspec.frontends.json_schema.document.subschemas import DEFINITIONS, children
from grammarspec.positions import pointer_token

__all__ = ["DEFINITIONS", "REFERENCES", "Edge", "Path", "Place", "Structure", "at", "parsed", "pointer"]

Path = tuple[str, ...]
"""The unescaped tokens of a JSON pointer."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
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
    """The member or item of this name; ``KeyError`` or ``IndexError`` if there is none."""
    return value[int(token)] if isinstance(value, list) and token.isdecimal() else value[token]  # pyright: ignore


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A subschema and where it stands.

    Attributes:
        schema: an object with keywords.
        parent: the subschema that it stands in; ``None`` for roots.
        tokens: the path from there.
        uri: of a document other than the main one.
    """

    schema: dict[Any, Any]
    parent: Place | None = None
    tokens: Path = ()
    uri: str = ""

    @property
    def path(self) -> Path:
        """From the root of the document."""
        parts: list[Path] = []
        place: Place | None = self
        while place is not None:
            parts.append(place.tokens)
            place = place.parent
        return tuple(token for part in reversed(parts) for token in part)

    @property
    def pointer(self) -> str:
        """The JSON pointer, after the URI of another document."""
        return self.uri + pointer(self.path)


class Edge(NamedTuple):
    """One subschema applies another one by a keyword, or just holds it."""

    source: Place
    keyword: str
    target: Place
    applies: bool


class Structure:
    """The subschemas of a document and of what its references reach.

    Attributes:
        places: by ``id()`` of the subschema, in the order of the document; the first place of an object that stands in
            several.
        edges: from each subschema to those that it holds or refers to, by ``id()``.
        reached: the subschemas (by ``id()``) that a value may have to satisfy or to fail. References are followed from
            these only.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.places: dict[int, Place] = {}
        self.edges: dict[int, list[Edge]] = {}
        self.reached: set[int] = set()
        root = document.main.root
        if isinstance(root, dict):
            self._spread(Place(root))
            self._reach(self.places[id(root)])

    def dialect(self, place: Place) -> Dialect:
        """The dialect of a subschema."""
        return self.document.resource(place.schema).dialect

    # ------------------------------------------------------------------ making
    def _spread(self, start: Place) -> None:
        """Note all that stands in a subschema, depth first in the order of the text."""
        made: list[list[Edge]] = []
        pending = [start]
        while pending:
            place = pending.pop()
            if id(place.schema) in self.places:
                continue
            self.places[id(place.schema)] = place
            edges = self.edges[id(place.schema)] = []
            made.append(edges)
            for keyword, tokens, schema in children(place.schema):
                if isinstance(schema, dict):
                    child = Place(schema, place, tokens, place.uri)
                    edges.append(Edge(place, keyword, child, keyword not in DEFINITIONS))
            pending.extend(edge.target for edge in reversed(edges))
        for edges in made:  # a Python object that stands in several places has one
            edges[:] = [edge._replace(target=self.places[id(edge.target.schema)]) for edge in edges]

    def _reach(self, root: Place) -> None:
        """Follow what is applied, references included, which may point outside of the keywords for subschemas."""
        self.reached.add(id(root.schema))
        pending = [root]
        while pending:
            place = pending.pop()
            edges = self.edges[id(place.schema)]
            if "$ref" in place.schema and self.dialect(place).ref_stands_alone:
                edges[:] = [edge._replace(applies=False) for edge in edges]
            for keyword in REFERENCES:
                if keyword in place.schema:
                    edges += [Edge(place, keyword, target, True) for target in list(self._targets(place, keyword))]
            for edge in edges:
                if edge.applies and id(edge.target.schema) not in self.reached:
                    self.reached.add(id(edge.target.schema))
                    pending.append(edge.target)

    def _targets(self, place: Place, keyword: str) -> Iterator[Place]:
        """What a reference points to; of a dynamic one, all that it may be bound to."""
        try:
            target = self.document.resolve(place.schema, place.schema[keyword])
        except (GrammarError, KeyError):  # to nothing; that is found again, with its place, by the front-end
            target = None
        if isinstance(target, dict):
            yield self._place(target)
        if keyword != "$ref":
            id_keyword = self.dialect(place).id_keyword
            for other in list(self.places.values()):
                if other.parent is None or any(name in other.schema for name in (*_ANCHORS, id_keyword)):
                    yield other

    def _place(self, schema: dict[Any, Any]) -> Place:
        known = self.places.get(id(schema))
        if known is None:
            uri, _, fragment = self.document.where(schema).partition("#")
            self._spread(Place(schema, None, parsed("#" + fragment) or (), uri))
            known = self.places[id(schema)]
        return known

    # ------------------------------------------------------------------ asking
    def split(self, path: Path) -> tuple[Place, Path] | None:
        """The innermost subschema on a path of the main document, and the rest: a keyword and what is within it."""
        value: Any = self.document.main.root
        found: tuple[Any, int] | None = None
        for depth in range(len(path) + 1):
            if isinstance(value, dict) and id(value) in self.places:
                found = value, depth
            if depth < len(path):
                try:
                    value = at(value, path[depth])
                except (KeyError, IndexError, TypeError):
                    break
        return None if found is None else (Place(found[0], None, path[: found[1]]), path[found[1] :])

    def reached_without(self, left_out: Collection[str]) -> set[int]:
        """The subschemas (by ``id()``) that are reached still if keywords, or parts of them, are left out.

        Args:
            left_out: their JSON pointers.
        """
        root = self.document.main.root
        found = {id(root)} & self.places.keys()
        pending = list(found)
        while pending:
            key = pending.pop()
            base = self.places[key].pointer
            if base in left_out:
                continue
            for edge in self.edges[key]:
                holder, target = f"{base}/{edge.keyword}", id(edge.target.schema)
                if edge.applies and target not in found and holder not in left_out:
                    if edge.keyword not in REFERENCES and edge.target.pointer in left_out:
                        continue
                    found.add(target)
                    pending.append(target)
        return found

    def tested(self) -> dict[int, set[str]]:
        """Keywords by which something else than more texts may come of a subschema that holds of more values."""
        return {key: _testing(self.places[key].schema) for key in self.reached}

    def negated(self) -> set[int]:
        """The subschemas (by ``id()``) that stand, at whatever depth, where something is to fail."""
        tested = self.tested()
        found: set[int] = set()
        pending = [id(e.target.schema) for key in self.reached for e in self.edges[key] if e.keyword in tested[key]]
        while pending:
            key = pending.pop()
            if key not in found:
                found.add(key)
                pending.extend(id(edge.target.schema) for edge in self.edges[key] if edge.applies)
        return found

    def testers(self, start: Place) -> list[tuple[Place, str]]:
        """The keywords that test a subschema, at whatever depth it stands in what they hold or refer to."""
        sources: dict[int, list[Edge]] = {}
        for source in self.reached:
            for edge in self.edges[source]:
                if edge.applies:
                    sources.setdefault(id(edge.target.schema), []).append(edge)
        tested = self.tested()
        seen = {id(start.schema)}
        pending = [id(start.schema)]
        found: dict[tuple[int, str], Edge] = {}
        while pending:
            for edge in sources.get(pending.pop(), ()):
                key = id(edge.source.schema)
                if edge.keyword in tested[key]:
                    found[key, edge.keyword] = edge
                if key not in seen:
                    seen.add(key)
                    pending.append(key)
        return [(edge.source, edge.keyword) for edge in found.values()]


def _testing(schema: dict[Any, Any]) -> set[str]:
    """The keywords in which a subschema's failing matters, and not only that it holds."""
    found = {keyword for keyword in ("not", "if", "oneOf") if keyword in schema}
    return found | {"contains"} if "maxContains" in schema else found
