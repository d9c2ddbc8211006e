"""Schemas without what is not enforced: which keywords must be left out so that a grammar can be made of the rest.

The front-end says by its error what it refuses. That is left out and the rest is tried again, until something is left
that can be enforced. Leaving out must never make a schema ask for more:

* Where a subschema is tested and not just asked for (inside ``not``, ``if``, ``oneOf``, or ``contains`` beside
  ``maxContains``; references are followed), asking less of it means asking more of the value. There the testing keyword
  is left out instead; of ``oneOf`` remains ``anyOf``.
* What a keyword says about others stays: the names in ``properties`` still are no additional ones, members and items
  that a keyword has evaluated do not become unevaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.json_schema.document.document import Document, Schema
from grammarspec.frontends.json_schema.document.structure import (
    DEFINITIONS,
    Path,
    Place,
    Structure,
    at,
    parsed,
    pointer,
)
from grammarspec.frontends.json_schema.document.subschemas import children
from grammarspec.frontends.json_schema.meaning.keywords import IN_PLACE, handlers
from grammarspec.grammars.expressions import Grammar

__all__ = ["LeftOut", "Relaxed", "relaxed"]

MAX_LEFT_OUT = 200
"""Refusals that one schema is tried again after."""

_KEPT = frozenset(
    ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", *DEFINITIONS)
)
"""Keywords that say what a schema is called and hold others, and ask nothing."""
_EVALUATING = IN_PLACE - {"not", "dependentRequired"}
"""Keywords whose subschemas evaluate members and items, or declare properties."""
_WORD = re.compile(r"\$?[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A keyword that is not enforced.

    Attributes:
        pointer: the JSON pointer of the keyword, or of the subschema if it cannot be told which keyword it is.
        keyword: its name; empty for a whole subschema.
        how: what was done about it.
        error: why.
        cause: the JSON pointer of what is refused, of which this may be the consequence.
    """

    pointer: str
    keyword: str
    how: str
    error: GrammarError
    cause: str

    @property
    def summary(self) -> str:
        """What was done and why, on one line."""
        place = f" (at {self.cause})" if self.cause != self.pointer else ""
        return f"{self.how}: {' '.join(self.error.message.split())}{place}"


@dataclass(frozen=True, slots=True)
class Relaxed:
    """What came of a schema.

    Attributes:
        grammar: of what could be enforced; ``None`` if nothing helped.
        refused: all refusals, in the order in which they were met: the error with the place that it is about.
        left_out: what was left out for them.
    """

    grammar: Grammar[Any] | None
    refused: tuple[LeftOut, ...]
    left_out: tuple[LeftOut, ...]


def relaxed(
    root: Schema,
    attempt: Callable[[Schema], Grammar[Any]],
    document: Callable[[Schema], Document],
    *,
    closed: bool,
    malformed: bool = False,
) -> Relaxed:
    """Try a schema, leaving out what is refused.

    Args:
        root: the schema; it is not changed.
        attempt: the front-end.
        document: reads a schema.
        closed: objects that have properties are closed unless the schema says more (see ``additional_properties``).
        malformed: leave out malformed keywords, too. The result then is good for finding more errors only.
    """
    work = _Work(root, document, closed)
    refused: list[LeftOut] = []
    left_out: list[LeftOut] = []
    while True:
        try:
            return Relaxed(attempt(work.root), tuple(refused), tuple(left_out))
        except GrammarError as error:
            target, steps = work.leave_out(error, malformed=malformed)
            refused.append(target)
            left_out += steps
            if not steps or len(refused) > MAX_LEFT_OUT:
                return Relaxed(None, tuple(refused), tuple(left_out))


class _Work:
    """A schema that gets smaller."""

    def __init__(self, root: Schema, document: Callable[[Schema], Document], closed: bool) -> None:
        self.root, self._document, self._closed = root, document, closed
        self._renamed: set[Path] = set()
        """Places, in the schema as it was, of ``oneOf`` keywords that are ``anyOf`` now."""

    def leave_out(self, error: GrammarError, *, malformed: bool) -> tuple[LeftOut, list[LeftOut]]:
        """What an error is about, and what was left out for it: nothing if nothing could be."""
        where = error.where if error.where.startswith("#") else "#"
        nothing = LeftOut(where, "", "", error, where)
        syntax = isinstance(error, GrammarSyntaxError)
        if not (malformed if syntax else isinstance(error, UnsupportedFeature | LimitExceeded)):
            return nothing, []
        path = parsed(error.where)
        if path is None or error.message.startswith("schema size"):
            return nothing, []
        try:
            structure = Structure(self._document(self.root))
        except GrammarError:
            return nothing, []
        inside = path[-2:-1] == ("patternProperties",) and not error.where.startswith("#")  # the pattern of a name
        found = structure.split(path[:-2] if inside else path)
        if found is None:
            return nothing, []
        place, tail = found[0], path[-2:] if inside else found[1]
        if not syntax and (not tail or tail[0] not in place.schema):
            place, tail = _guess(structure, place, error)
        cause = self._pointer(place, tail)
        target = LeftOut(cause, self._keyword(place, tail), "", error, cause)
        testers = [] if syntax else _outermost(structure, structure.testers(place))
        if len(testers) > MAX_LEFT_OUT or any(tester.uri for tester, _ in testers):
            return target, []  # too many, or in another document, which is not ours to change
        # what is renamed last, and from the inside out, moves no places of others
        testers.sort(key=lambda step: (step[1] == "oneOf", -len(step[0].path)))
        steps: list[tuple[Place, Path]] = [
            (tester, ("maxContains" if k == "contains" else k,)) for tester, k in testers
        ] or [(place, tail)]
        done = []
        for holder, rest in steps:
            how = self._relax(structure, holder, rest, syntax)
            if how:
                done.append(LeftOut(self._pointer(holder, rest), self._keyword(holder, rest), how, error, cause))
        if not done and not testers and tail:  # it was not that keyword, or not that alone
            how = self._relax(structure, place, (), syntax)
            if how:
                done.append(LeftOut(self._pointer(place, ()), "", how, error, cause))
        gone = tuple(item.pointer + "/" for item in done if item.how == "left out")
        return target, [item for item in done if not item.pointer.startswith(gone)]

    def _pointer(self, place: Place, tail: Path) -> str:
        return place.uri + pointer(self._original((*place.path, *tail)))

    def _keyword(self, place: Place, tail: Path) -> str:
        if not tail:
            return ""
        return self._original((*place.path, tail[0]))[-1]

    def _original(self, path: Path) -> Path:
        """The path in the schema as it was."""
        tokens: list[str] = []
        for token in path:
            was = token == "anyOf" and (*tokens, "oneOf") in self._renamed
            tokens.append("oneOf" if was else token)
        return tuple(tokens)

    def _relax(self, structure: Structure, place: Place, tail: Path, syntax: bool) -> str:
        """Leave out one keyword (or, without any, all of a subschema); says how, or nothing if it cannot be."""
        path, keyword = place.path, tail[0] if tail else ""
        if place.uri or keyword in ("$schema", "$vocabulary", *DEFINITIONS):
            return ""
        try:
            schema = self.root
            for token in path:
                schema = at(schema, token)
        except (KeyError, IndexError, TypeError):
            return ""  # within what was left out just now
        if not isinstance(schema, dict):
            return ""
        if syntax and len(tail) == 2 and _is_malformed(schema, tail):
            self.root = _replaced(self.root, (*path, *tail), True)
            return "left out"
        new = dict(schema)
        alone = structure.dialect(place).ref_stands_alone
        how = "left out"
        if syntax and keyword:
            new.pop(keyword, None)
        elif not keyword or (keyword == "$ref" and alone):
            new = {name: value for name, value in schema.items() if name in _KEPT}
        else:
            how = _neutralise(new, keyword, tail)
        if how == "anyOf remains of it":
            self._renamed.add((*self._original(path), "oneOf"))
        elif keyword in _EVALUATING or not keyword:
            if any(name in other.schema for other in structure.places.values()
                   for name in ("unevaluatedProperties", "unevaluatedItems")):  # fmt: skip
                new["unevaluatedProperties"] = new["unevaluatedItems"] = True
            if self._closed:
                new.setdefault("additionalProperties", True)
        if new.keys() == schema.keys() and all(new[name] is schema[name] for name in new):
            return ""
        self.root = _replaced(self.root, path, new)
        return how


def _is_malformed(schema: dict[Any, Any], path: Path) -> bool:
    """Whether something that is no schema stands there in the place of one."""
    return any(tokens == path and not isinstance(part, dict | bool) for _, tokens, part in children(schema))


def _outermost(structure: Structure, testers: list[tuple[Place, str]]) -> list[tuple[Place, str]]:
    """Without those that stand in what others hold, and are left out with it."""
    leaving = {(id(place.schema), keyword) for place, keyword in testers if keyword in ("not", "if")}
    covered: set[int] = set()
    for key, place in structure.places.items():  # what a subschema stands in comes before it
        parent = place.parent
        if parent is not None and (id(parent.schema) in covered or (id(parent.schema), place.tokens[0]) in leaving):
            covered.add(key)
    return [step for step in testers if id(step[0].schema) not in covered]


def _guess(structure: Structure, place: Place, error: GrammarError) -> tuple[Place, Path]:
    """The keyword that an error is about that names a subschema only: one that its message mentions.

    It stands in the subschema, or in one that applies to the same value.
    """
    mentioned = set(_WORD.findall(error.message)) & handlers(structure.dialect(place)).keys()
    seen = {id(place.schema)}
    pending = [place]
    for other in pending:  # breadth first
        for keyword in other.schema:
            if keyword in mentioned:
                return other, (keyword,)
        for edge in structure.edges[id(other.schema)]:
            target = edge.target
            if edge.keyword in (*IN_PLACE, "then", "else") and id(target.schema) not in seen and not target.uri:
                seen.add(id(target.schema))
                pending.append(target)
    return place, ()


def _neutralise(new: dict[Any, Any], keyword: str, tail: Path) -> str:
    """Let a keyword ask nothing, and still say to others what it says; tells how."""
    value = new[keyword]
    match keyword:
        case "oneOf" if "anyOf" not in new and isinstance(value, list):
            entries = list(new.items())
            new.clear()
            new.update((("anyOf" if name == "oneOf" else name), argument) for name, argument in entries)
            return "anyOf remains of it"
        case "contains" | "minContains":
            new["contains"] = True
            new.pop("maxContains", None)
            if "minContains" in new:
                new["minContains"] = 0
        case "properties" if isinstance(value, dict):
            new["properties"] = dict.fromkeys(value, True)
        case "prefixItems" if isinstance(value, list):
            new["prefixItems"] = [True] * len(value)
        case "items" | "additionalItems" | "additionalProperties" | "unevaluatedItems" | "unevaluatedProperties":
            new[keyword] = True
        case "patternProperties":
            if len(tail) > 1 and isinstance(value, dict):
                new[keyword] = {pattern: schema for pattern, schema in value.items() if pattern != tail[1]}
            else:
                del new[keyword]
            new["additionalProperties"] = True
        case _:
            del new[keyword]
    return "left out"


def _replaced(root: Schema, path: Path, new: Schema) -> Schema:
    """A copy of the schema with another value in one place; all other places are shared with it."""
    holders = [root]
    for token in path[:-1]:
        holders.append(at(holders[-1], token))
    for holder, token in zip(reversed(holders), reversed(path), strict=True) if path else ():
        if isinstance(holder, list):
            copied: Any = [*holder]
            copied[int(token)] = new
        else:
            copied = {**holder, token: new}
        new = copied
    return new
