"""A schema within a document, as a record with an identity.

A :class:`Subschema` is made for each place of a document that is looked at, once. It knows where it stands, so that
errors can name their place, and its keywords are parsed when they are first asked for: from then on it is a tuple of
*assertions*, typed records of what is asked of a value (see the room ``keywords``). Schemas that are computed from
others (negations, parts, alternatives) are records of the same class that are made of assertions directly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from grammarspec.errors import GrammarError, GrammarSyntaxError
from grammarspec.frontends.json_schema.document.dialects import Dialect
from grammarspec.positions import pointer_token

__all__ = [
    "ANYTHING", "NOTHING", "Assertion", "Everywhere", "Malformed", "Parser", "Resource", "Scope", "Subschema", "Syntax",
    "Target",
]  # fmt: skip


class Assertion:
    """What a keyword, or several that are read together, asks of a value.

    ``facts`` and ``goals`` in the signatures are the :class:`.Conjunction` that is gathered and the :class:`.Goals`
    that gather it, which stand above this room.
    """

    __slots__ = ()

    in_place: ClassVar[bool] = False
    """Whether it applies other schemas to the same value, or depends on what those evaluate."""

    def add(self, facts: Any, goals: Any, schema: Subschema) -> None:
        """Add what is asked to a conjunction. ``schema``: where the assertion stands.

        Raises:
            GrammarError: it cannot be enforced.
        """
        raise NotImplementedError

    def failures(self, goals: Any, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """The ways to fail, each a conjunction of assertions; together, exactly what the assertion refuses.

        Raises:
            GrammarError: that cannot be said.
        """
        raise NotImplementedError


class Malformed(Assertion):
    """A keyword whose value is not what it must be: an error for whoever looks at it."""

    __slots__ = ("error",)

    def __init__(self, error: GrammarError) -> None:
        self.error = error

    def add(self, facts: Any, goals: Any, schema: Subschema) -> None:
        """Raise the error."""
        raise self.error

    def failures(self, goals: Any, schema: Subschema) -> Iterator[tuple[Assertion, ...]]:
        """Raise the error."""
        raise self.error


Parser = Callable[["Subschema", Any], Assertion | None]
"""From a subschema and the value of one of its keywords to what is asserted, if anything is.

Raises ``GrammarSyntaxError`` for a malformed value.
"""


@dataclass(frozen=True, slots=True)
class Syntax:
    """What must be known of keywords to read a document.

    Attributes:
        parsers: what parses each keyword of a dialect that asserts something.
        children: what stands in a schema as a subschema, malformed or not, whatever the dialect: the keyword, the path
            and the value, in the order of the text.
    """

    parsers: Callable[[Dialect], Mapping[str, Parser]]
    children: Callable[[dict[str, Any]], Iterator[tuple[str, tuple[str, ...], Any]]]


@dataclass(slots=True, eq=False)
class Target:
    """What a reference points to.

    Attributes:
        source: the schema there, as it was read.
        resource: the resource that it belongs to.
        tokens: the path to it from the root of its document.
    """

    source: Any
    resource: Resource
    tokens: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Resource:
    """A schema that references are relative to: a document, or a part of one with an identifier of its own.

    Attributes:
        root: as it was read.
        base: its URI, without a fragment.
        parsers: what parses each keyword of its dialect.
        document_uri: of the document it is a part of; empty for the main document.
        tokens: the path to it from the root of that document.
        anchors, dynamic_anchors: what the names of ``$anchor`` and ``$dynamicAnchor`` stand for.
        targets: what references have been found to point to.
    """

    root: Any
    base: str
    dialect: Dialect
    parsers: Mapping[str, Parser]
    document_uri: str = ""
    tokens: tuple[str, ...] = ()
    anchors: dict[str, Target] = field(default_factory=dict)
    dynamic_anchors: dict[str, Target] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)


class Scope(Protocol):
    """Where subschemas are made, each once (see ``scopes.py``)."""

    @property
    def bindings(self) -> Mapping[str, Target]:
        """What dynamic references are bound to, by the names of their anchors."""
        ...

    def child(self, holder: Subschema, source: dict[str, Any], tokens: tuple[str, ...]) -> Subschema:
        """The record of a schema that stands in another one at this path."""
        ...


class Subschema:
    """A schema: one that stands in a document, or one that was derived from those.

    Attributes:
        source: as it was read: an object, or, where it is malformed, anything; an empty object for a derived one.
        parent: the subschema that it stands in; ``None`` for roots, for what is derived, and for what was found by a
            reference only.
        tokens: the path to it from there, or from the root of its document.
        resource: the resource that it belongs to.
        scope: what dynamic references in it are bound to.
        origin: the schema of the document that a derived one was made from; itself, if it is no derived one.
        unevaluated: whether it asks something of what its other keywords leave unevaluated; known once its assertions
            are.
    """

    __slots__ = (
        "_assertions", "_derived", "origin", "parent", "resource", "scope", "source", "tokens", "unevaluated",
    )  # fmt: skip

    def __init__(
        self, source: Any, parent: Subschema | None, tokens: tuple[str, ...], resource: Resource, scope: Scope
    ) -> None:
        self.source = source
        self.parent = parent
        self.tokens = tokens
        self.resource = resource
        self.scope = scope
        self.origin = self
        self.unevaluated = False
        self._assertions: tuple[Assertion, ...] | None = None
        self._derived: dict[Hashable, Any] | None = None

    def __repr__(self) -> str:
        return f"<Subschema {self.pointer}{'' if self.origin is self else ' derived'}>"

    # ------------------------------------------------------------------ parsing
    @property
    def assertions(self) -> tuple[Assertion, ...]:
        """What its keywords assert, in the order in which they stand; parsed when they are first asked for.

        Raises:
            GrammarSyntaxError: it is no schema.
        """
        found = self._assertions
        if found is None:
            found = self._assertions = self._parse()
        return found

    def _parse(self) -> tuple[Assertion, ...]:
        """The assertions of all keywords. Malformed values stay, as an error for whoever comes to them."""
        source = self.source
        if not isinstance(source, dict):
            message = f"a schema must be an object or a boolean, not {source!r:.40}"
            raise GrammarSyntaxError(message, where=self.pointer)
        resource = self.resource
        if "$ref" in source and resource.dialect.ref_stands_alone:
            source = {"$ref": source["$ref"]}
        parser_of = resource.parsers.get
        found: list[Assertion] = []
        for keyword, value in source.items():
            parser = parser_of(keyword)
            if parser is not None:
                try:
                    assertion = parser(self, value)
                except GrammarSyntaxError as error:
                    assertion = Malformed(error)
                if assertion is not None:
                    found.append(assertion)
        return tuple(found)

    def child(self, source: Any, *tokens: str) -> Subschema:
        """The record of what stands in it at this path in the place of a schema."""
        if isinstance(source, dict):
            return self.scope.child(self, source, tokens)
        if source is True:
            return ANYTHING
        if source is False:
            return NOTHING
        return Subschema(source, self, tokens, self.resource, self.scope)

    def children(self, keyword: str, parts: Mapping[str, Any]) -> dict[str, Subschema]:
        """The records of what stands in it under a keyword that holds schemas by name."""
        child = self.scope.child
        return {
            name: child(self, part, (keyword, name)) if isinstance(part, dict) else self.child(part, keyword, name)
            for name, part in parts.items()
        }

    def malformed(self, keyword: str, expected: str) -> GrammarSyntaxError:
        """The error that says what the value of a keyword must be."""
        return GrammarSyntaxError(f"{keyword} must be {expected}", where=self.where(keyword))

    @property
    def keywords(self) -> Mapping[str, Any]:
        """The keywords as they were read; of a derived schema, none."""
        return self.source if isinstance(self.source, dict) else {}

    @property
    def is_malformed(self) -> bool:
        """Whether something that is no schema stands in the place of one."""
        return not isinstance(self.source, dict)

    @property
    def is_empty(self) -> bool:
        """Whether it plainly allows everything: ``true`` or ``{}``."""
        return self.source == {} and self.origin is self

    @property
    def asks_nothing(self) -> bool:
        """Whether no keyword of it asserts anything, so that every value satisfies it."""
        return not (self.is_malformed or self.assertions)

    # ------------------------------------------------------------------ derived schemas
    def derived(self, *assertions: Assertion) -> Subschema:
        """A new schema of these assertions, in the place of this one."""
        made = Subschema({}, None, (), self.resource, self.scope)
        made.origin = self.origin
        made._assertions = assertions
        return made

    def derive(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` derives from it under this name: made once, so that goals can be told apart."""
        if self._derived is None:
            self._derived = {}
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    @property
    def kept(self) -> Subschema | None:
        """It without the assertions that apply others to the same value; ``None`` if that leaves nothing."""
        made: Subschema | None = self.derive("kept", self._without_in_place)
        return made

    def _without_in_place(self) -> Subschema | None:
        own = tuple(assertion for assertion in self.assertions if not assertion.in_place)
        if len(own) == len(self.assertions):
            return self if own else None
        return self.derived(*own) if own else None

    # ------------------------------------------------------------------ places
    @property
    def path(self) -> tuple[str, ...]:
        """The path from the root of its document."""
        parts: list[tuple[str, ...]] = []
        place: Subschema | None = self.origin
        while place is not None:
            parts.append(place.tokens)
            place = place.parent
        return tuple(token for part in reversed(parts) for token in part)

    @property
    def pointer(self) -> str:
        """The JSON pointer of the document's own schema, after the URI of the document if that is not the main one."""
        return f"{self.resource.document_uri}#" + "".join("/" + pointer_token(token) for token in self.path)

    def where(self, *keywords: str | int) -> str:
        """The JSON pointer of a keyword, or of something within it."""
        return self.pointer + "".join("/" + pointer_token(keyword) for keyword in keywords)


class Everywhere(Subschema):
    """A schema that stands in no particular place."""

    __slots__ = ()

    def __init__(self, source: Any, *assertions: Assertion) -> None:
        self.source = source
        self.parent = None
        self.tokens = ()
        self.origin = self
        self.unevaluated = False
        self._assertions = assertions
        self._derived = None

    @property
    def is_malformed(self) -> bool:
        return False

    @property
    def is_empty(self) -> bool:
        return self is ANYTHING

    @property
    def asks_nothing(self) -> bool:
        return self is ANYTHING

    @property
    def pointer(self) -> str:
        return "#"


ANYTHING = Everywhere(True)
"""The schema ``true``."""
NOTHING = Everywhere(False)
"""The schema ``false``."""
