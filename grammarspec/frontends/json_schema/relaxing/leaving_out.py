"""Leaves keywords out of a schema until a grammar can be made of the rest.

A schema and the front-end come in. The error that the front-end raises names what it cannot enforce. That is left out,
and the rest is tried again, until the front-end accepts it. The result must allow everything that the schema allows:

* A keyword that tests a subschema (``not``, ``if``, ``oneOf``, or ``contains`` beside ``maxContains``; references are
  followed) becomes stricter if the subschema becomes weaker. There the testing keyword itself is left out; ``oneOf`` is
  replaced by ``anyOf``.
* The effect of a keyword on others must stay: the names in ``properties`` are still not additional ones, and members
  and items that a keyword evaluates do not become unevaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.json_schema.document.resources import Document
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.keyword import Role
from grammarspec.frontends.json_schema.keywords.tables import IN_PLACE, KEYWORDS, asserting, children, keyword
from grammarspec.frontends.json_schema.relaxing.graph import Graph, Path, at, parsed, pointer
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.expressions import Grammar

__all__ = ["LeftOut", "Relaxed", "relaxed"]

MAX_LEFT_OUT = 200
"""The most errors after which one schema is tried again."""
_LOOKING = 60
"""Steps of each subschema after an error, beside those for its place, which is long where schemas nest deeply."""

_KEPT = frozenset(record.name for record in KEYWORDS if record.role is Role.IDENTIFIER)
"""Keywords that name a schema or hold other schemas, and constrain nothing."""
_FIXED = frozenset(("$schema", "$vocabulary", "$defs", "definitions"))
"""Those of them that cannot be left out."""
_EVALUATING = IN_PLACE - {"not", "dependentRequired"}
"""Keywords whose subschemas evaluate members and items, or declare properties."""
_WORD = re.compile(r"\$?[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A keyword that is not enforced.

    Attributes:
        pointer: the JSON pointer of the keyword, or of the subschema if it cannot be told which keyword it is.
        keyword: its name; empty for a whole subschema.
        how: what was done: it was left out, or replaced.
        error: the error for which that was done.
        cause: the JSON pointer of the keyword that cannot be enforced; it may be another one than this.
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
    """The result of relaxing a schema.

    Attributes:
        grammar: the grammar of the relaxed schema; ``None`` if no grammar could be made.
        refused: the keywords that cannot be enforced, with their errors, in the order in which these were raised.
        left_out: the keywords that were left out or replaced for that.
    """

    grammar: Grammar[Any] | None
    refused: tuple[LeftOut, ...]
    left_out: tuple[LeftOut, ...]


def relaxed(
    root: Any,
    attempt: Callable[[Any], Grammar[Any]],
    document: Callable[[Any], Document],
    budget: Budget,
    *,
    closed: bool,
    malformed: bool = False,
) -> Relaxed:
    """Make a grammar of a schema without the keywords that cannot be enforced.

    Args:
        root: the schema; it is not changed.
        attempt: makes a grammar of a schema: the front-end.
        document: makes the document of a schema.
        budget: what ``attempt`` takes its steps from; when it is used up, nothing more is left out.
        closed: objects that have properties are closed unless the schema says more (see ``additional_properties``).
        malformed: whether to leave out malformed keywords, too. The grammar is then useless, but more errors are found.
    """
    work = _Work(root, document, budget, closed)
    refused: list[LeftOut] = []
    left_out: list[LeftOut] = []
    while True:
        try:
            return Relaxed(attempt(work.root), tuple(refused), tuple(left_out))
        except GrammarError as error:
            target, steps = work.leave_out(error, malformed=malformed)
            refused.append(target)
            left_out += steps
            if not steps or len(refused) > MAX_LEFT_OUT or budget.is_used_up:
                return Relaxed(None, tuple(refused), tuple(left_out))


class _Work:
    """A schema from which keywords are left out step by step."""

    def __init__(self, root: Any, document: Callable[[Any], Document], budget: Budget, closed: bool) -> None:
        self.root, self._document, self._budget, self._closed = root, document, budget, closed
        self._renamed: set[Path] = set()
        """The paths, in the original schema, of ``oneOf`` keywords that have been replaced by ``anyOf``."""

    def leave_out(self, error: GrammarError, *, malformed: bool) -> tuple[LeftOut, list[LeftOut]]:
        """Change the schema so that an error is not raised again.

        Returns:
            What the error is about, and the keywords that were left out or replaced; empty if nothing could be done.
        """
        where = error.where if error.where.startswith("#") else "#"
        nothing = LeftOut(where, "", "", error, where)
        syntax = isinstance(error, GrammarSyntaxError)
        if not (malformed if syntax else isinstance(error, UnsupportedFeature | LimitExceeded)):
            return nothing, []
        path = parsed(error.where)
        if path is None:
            return nothing, []
        try:
            graph = Graph(self._document(self.root))
            self._budget.spend((_LOOKING + len(error.where)) * len(graph.edges))
        except GrammarError:
            return nothing, []
        inside = path[-2:-1] == ("patternProperties",) and not error.where.startswith("#")  # the pattern of a name
        found = graph.split(path[:-2] if inside else path)
        if found is None:
            return nothing, []
        place, tail = found[0], path[-2:] if inside else found[1]
        if not syntax and (not tail or tail[0] not in place.keywords):
            place, tail = _guess(graph, place, error)
        cause = self._pointer(place, tail)
        target = LeftOut(cause, self._keyword(place, tail), "", error, cause)
        testers = [] if syntax else _outermost(graph, graph.testers(place))
        if len(testers) > MAX_LEFT_OUT or any(tester.resource.document_uri for tester, _ in testers):
            return target, []  # too many, or in another document, which is not changed
        # inner keywords first and renamed ones last, so that the paths of the others stay valid
        testers.sort(key=lambda step: (step[1] == "oneOf", -len(step[0].path)))
        steps: list[tuple[Subschema, Path]] = [
            (tester, ("maxContains" if k == "contains" else k,)) for tester, k in testers
        ] or [(place, tail)]
        done = []
        for holder, rest in steps:
            how = self._relax(graph, holder, rest, syntax)
            if how:
                done.append(LeftOut(self._pointer(holder, rest), self._keyword(holder, rest), how, error, cause))
        if not done and not testers and tail:  # leaving out the keyword changed nothing: leave out the subschema
            how = self._relax(graph, place, (), syntax)
            if how:
                done.append(LeftOut(self._pointer(place, ()), "", how, error, cause))
        gone = tuple(item.pointer + "/" for item in done if item.how == "left out")
        return target, [item for item in done if not item.pointer.startswith(gone)]

    def _pointer(self, place: Subschema, tail: Path) -> str:
        return place.resource.document_uri + pointer(self._original((*place.path, *tail)))

    def _keyword(self, place: Subschema, tail: Path) -> str:
        if not tail:
            return ""
        return self._original((*place.path, tail[0]))[-1]

    def _original(self, path: Path) -> Path:
        """The path in the original schema of a path in the changed one."""
        tokens: list[str] = []
        for token in path:
            was = token == "anyOf" and (*tokens, "oneOf") in self._renamed
            tokens.append("oneOf" if was else token)
        return tuple(tokens)

    def _relax(self, graph: Graph, place: Subschema, tail: Path, syntax: bool) -> str:
        """Leave out one keyword, or all of a subschema if ``tail`` is empty. Returns what was done, or nothing."""
        path, name = place.path, tail[0] if tail else ""
        if place.resource.document_uri or name in _FIXED:
            return ""
        try:
            schema = self.root
            for token in path:
                schema = at(schema, token)
        except (KeyError, IndexError, TypeError):
            return ""  # it was in a keyword that has just been left out
        if not isinstance(schema, dict):
            return ""
        if syntax and len(tail) == 2 and _is_malformed(schema, tail):
            self.root = _replaced(self.root, (*path, *tail), True)
            return "left out"
        new = dict(schema)
        alone = place.resource.dialect.ref_stands_alone
        how = "left out"
        if syntax and name:
            new.pop(name, None)
        elif not name or (name == "$ref" and alone):
            new = {kept: value for kept, value in schema.items() if kept in _KEPT}
        else:
            record = keyword(name, place.resource.dialect)
            if record is None:
                del new[name]
            else:
                record.neutral(new, name, tail[1:])
            if name == "oneOf" and "anyOf" in new.keys() - schema.keys():
                how = "anyOf remains of it"
        if how == "anyOf remains of it":
            self._renamed.add((*self._original(path), "oneOf"))
        elif name in _EVALUATING or not name:
            if any(other in known.keywords for known in graph.edges
                   for other in ("unevaluatedProperties", "unevaluatedItems")):  # fmt: skip
                new["unevaluatedProperties"] = new["unevaluatedItems"] = True
            if self._closed:
                new.setdefault("additionalProperties", True)
        if new.keys() == schema.keys() and all(new[kept] is schema[kept] for kept in new):
            return ""
        self.root = _replaced(self.root, path, new)
        return how


def _is_malformed(schema: dict[Any, Any], path: Path) -> bool:
    """Whether the value on a path, where a subschema should be, is no schema."""
    return any(tokens == path and not isinstance(part, dict | bool) for _, tokens, part in children(schema))


def _outermost(graph: Graph, testers: list[tuple[Subschema, str]]) -> list[tuple[Subschema, str]]:
    """The testing keywords without those inside others of them, which are left out with these."""
    leaving = {(place, keyword) for place, keyword in testers if keyword in ("not", "if")}
    covered: set[Subschema] = set()
    for place in graph.edges:  # a subschema comes after those that contain it
        parent = place.parent
        if parent is not None and (parent in covered or (parent, place.tokens[0]) in leaving):
            covered.add(place)
    return [step for step in testers if step[0] not in covered]


def _guess(graph: Graph, place: Subschema, error: GrammarError) -> tuple[Subschema, Path]:
    """The keyword that an error is about, if the error names only a subschema: one that its message mentions.

    It is searched for in the subschema, and in those that it applies to the same value.
    """
    mentioned = set(_WORD.findall(error.message)) & asserting(place.resource.dialect)
    seen = {place}
    pending = [place]
    for other in pending:  # breadth first
        for name in other.keywords:
            if name in mentioned:
                return other, (name,)
        for edge in graph.edges[other]:
            target = edge.target
            if edge.keyword in IN_PLACE and target not in seen and not target.resource.document_uri:
                seen.add(target)
                pending.append(target)
    return place, ()


def _replaced(root: Any, path: Path, new: Any) -> Any:
    """A copy of the schema with another value at one path; all other parts are shared with the original."""
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
