"""What schemas mean, before anything is spelled: conjunctions, negations and exclusive alternatives of subschemas.

The method is a tableau (an alternating automaton made explicit): a *goal* is a list of subschemas that must hold at
once. :meth:`Analysis.gather` turns a goal into a :class:`Conjunction`; what is left as a disjunction is distributed by
making one goal per alternative. Goals consist of the document's own subschemas and of schemas derived from them once
(negations, stripped copies), so there are finitely many and recursion closes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.json_schema.document.document import Document, Schema
from grammarspec.frontends.json_schema.formats.table import FORMATS, INTEGER_FORMATS
from grammarspec.frontends.json_schema.meaning import evaluation, negation, unevaluated
from grammarspec.frontends.json_schema.meaning.conjunction import OBJECT, Conjunction
from grammarspec.frontends.json_schema.meaning.keywords import BITS, IN_PLACE, SOME, WITNESS, Handler, handlers
from grammarspec.frontends.json_schema.meaning.matching import few_texts

__all__ = ["MAX_PAIRS", "Analysis", "TooManyCombinations"]

MAX_CONJUNCTIONS = 30_000
"""Conjunctions of subschemas that one document may ask for: one per subschema, and those of combinations."""
_MAX_IN_PLACE = 100  # allOf, $ref and the like, one inside the other, at one value
MAX_PAIRS = 20_000
"""Pairs of ``oneOf`` branches that are compared with each other."""


class TooManyCombinations(LimitExceeded):
    """An exact answer takes too many combinations of subschemas; a narrower one may not."""


class Analysis:
    """The meaning of one document's schemas."""

    def __init__(self, document: Document, *, assert_formats: bool, narrow: bool = False) -> None:
        self.document, self.narrow = document, narrow
        self.assert_formats = assert_formats
        self.strict_integers = document.main.dialect.year == 4
        self._handlers = handlers(document.main.dialect)
        self._derived: dict[tuple[Any, ...], Any] = {}
        self._stripped: dict[int, Schema | None] = {}
        self._acyclic: set[int] = set()
        self._depth = 0
        self._gathered = 0
        self._comparing: set[int] = set()
        self.comparisons = 0
        """How often it was asked whether anything satisfies a goal."""

    # ------------------------------------------------------------------ goals
    def gather(self, goal: Sequence[Schema]) -> Conjunction:
        """All that the subschemas ask at once.

        Raises:
            LimitExceeded: too many conjunctions were asked for.
        """
        self._gathered += 1
        if self._gathered > MAX_CONJUNCTIONS:
            raise TooManyCombinations(f"schema size: more than {MAX_CONJUNCTIONS} conjunctions of subschemas")
        facts = Conjunction()
        for schema in goal:
            self.collect(schema, facts)
        return facts

    def known(self, schema: Schema) -> Mapping[Any, Handler]:
        """The keywords that the dialect of a subschema knows, but for annotations."""
        if not self.document.resource_of:
            return self._handlers
        return handlers(self.document.resource(schema).dialect)

    def collect(self, schema: Schema, facts: Conjunction) -> None:
        """Add what one subschema asks, in the order in which its keywords stand."""
        if schema is True:
            return
        if schema is False:
            facts.types = 0
            return
        if not isinstance(schema, dict):
            message = f"a schema must be an object or a boolean, not {schema!r:.40}"
            raise GrammarSyntaxError(message, where=self.document.where_malformed(schema))
        if id(schema) in facts.members:
            return
        facts.members[id(schema)] = schema
        if self._depth == _MAX_IN_PLACE:
            message = f"the nesting depth of allOf, $ref and the like at one value is above {_MAX_IN_PLACE}"
            raise LimitExceeded(message, where=self.document.where(schema))
        self._depth += 1
        try:
            known = self.known(schema)
            if "$ref" in schema and self.document.resource(schema).dialect.ref_stands_alone:
                known["$ref"](self, facts, schema["$ref"], schema)
                return
            if unevaluated.is_asked(schema, known):
                self._collect_outcomes(schema, facts)
                return
            for keyword, value in schema.items():
                handler = known.get(keyword)
                if handler is not None:
                    handler(self, facts, value, schema)
        finally:
            self._depth -= 1

    def _collect_outcomes(self, schema: dict[Any, Any], facts: Conjunction) -> None:
        """What a schema with ``unevaluatedProperties`` or ``unevaluatedItems`` asks."""

        made = self.derive(schema, ("outcomes",), lambda: unevaluated.alternatives(self, schema))
        if len(made) == 1:
            self.collect(made[0], facts)
        else:
            facts.add_choice(made, last=False)

    def place(self, facts: Conjunction, *keywords: str) -> str:
        """The JSON pointer of the first of these keywords in a conjunction; without any, that of a subschema in it."""
        document = self.document
        for schema in facts.members.values():
            for keyword in keywords:
                if keyword in document.origin(schema):
                    return document.where(schema, keyword)
        return document.where(next(iter(facts.members.values())))

    def base(self, facts: Conjunction) -> list[Schema]:
        """The subschemas of a conjunction without the keywords that were resolved into it or into its choices."""
        stripped = [self._strip(schema) for schema in facts.members.values()]
        return [schema for schema in stripped if schema is not None]

    def _strip(self, schema: dict[Any, Any]) -> Schema | None:
        known = self.known(schema)
        return None if unevaluated.is_asked(schema, known) else self.without_in_place(schema)

    def without_in_place(self, schema: Mapping[Any, Any]) -> Schema | None:
        """The subschema without the keywords that apply others to the same value; ``None`` if that leaves nothing."""
        key = id(schema)
        if key not in self._stripped:
            dialect = self.document.resource(schema).dialect
            known = handlers(dialect)
            kept: Schema | None = schema
            if dialect.ref_stands_alone and "$ref" in schema:
                kept = None
            elif not IN_PLACE.isdisjoint(schema):
                rest = {keyword: value for keyword, value in schema.items() if keyword not in IN_PLACE}
                kept = self.document.derived(rest, schema)
            if kept is not None and not any(keyword in known for keyword in kept):
                kept = None
            self._stripped[key] = kept
        return self._stripped[key]

    # ------------------------------------------------------------------ derived schemas
    def derive(self, origin: Schema, key: tuple[Any, ...], make: Callable[[], list[Schema]]) -> list[Schema]:
        """Schemas made from one keyword of ``origin``: always the same objects, so that goals can be told apart."""
        full = (id(origin), *key)
        made: list[Schema] | None = self._derived.get(full)
        if made is None:
            made = self._derived[full] = make()
        return made

    def choice(self, alternatives: Sequence[Schema]) -> Schema:
        """A schema for a disjunction of its own."""
        key = ("choice", *map(id, alternatives))
        return self.derive(None, key, lambda: [{"anyOf": list(alternatives)}])[0]

    def negate(self, schema: Schema, origin: Schema) -> Schema:
        """A schema for the values that ``schema`` refuses."""
        if isinstance(schema, bool):
            return not schema
        if not isinstance(schema, dict):
            where = self.document.where_malformed(schema) or self.document.where(origin, "not")
            raise GrammarSyntaxError("not must be a schema", where=where)
        return self.derive(schema, ("not",), lambda: [negation.negate(self, schema)])[0]

    def target(self, schema: Schema, reference: Any, keyword: str = "$ref") -> Schema:
        """What a reference points to, once it is sure that it does not come back without entering the value."""
        target = self.document.resolve(schema, reference, keyword)
        if id(target) not in self._acyclic:
            self._check_cycle(target, schema, keyword)
        return target

    def _check_cycle(self, start: Schema, origin: Schema, keyword: str) -> None:
        """Depth first over the schemas that apply to the same value; ``None`` in the stack ends one."""
        path: dict[int, None] = {}
        stack: list[Schema | None] = [start]
        while stack:
            schema = stack.pop()
            if schema is None:
                done = path.popitem()[0]
                self._acyclic.add(done)
                continue
            key = id(schema)
            if not isinstance(schema, dict) or key in self._acyclic:
                continue
            if key in path:
                where = self.document.where(origin, keyword)
                raise GrammarSyntaxError(f"{keyword} comes back to itself without entering the value", where=where)
            path[key] = None
            stack.append(None)
            stack.extend(self._in_place(schema))

    def _in_place(self, schema: dict[str, Any]) -> Iterator[Schema]:
        dialect = self.document.resource(schema).dialect
        known = handlers(dialect)
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in schema and keyword in known:
                yield self.document.resolve(schema, schema[keyword], keyword)
        if "$ref" in schema and dialect.ref_stands_alone:
            return
        for keyword in ("allOf", "anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                yield from schema[keyword]
        for keyword in ("not", "if", "then", "else"):
            if isinstance(schema.get(keyword), dict):
                yield schema[keyword]
        for keyword in ("dependentSchemas", "dependencies"):
            if isinstance(schema.get(keyword), dict):
                yield from schema[keyword].values()

    # ------------------------------------------------------------------ some member
    def some_alternatives(self, facts: Conjunction) -> tuple[list[Schema], list[Schema]]:
        """The first "some member" of a conjunction as alternatives: a declared member is it, or an undeclared one is.

        Returns the rest of the goal and the alternatives.
        """
        some = facts.some[0]
        base = self.base(facts)
        asked = next(schema for schema in base if schema.get(SOME) is some)
        goal = [schema for schema in base if schema is not asked]
        names = dict.fromkeys(name for properties, _, _ in facts.objects for name in properties)
        names.update(facts.required)
        few = None if some.within is None else few_texts(some.within)
        names.update(dict.fromkeys(few or ()))

        def alternatives() -> list[Schema]:
            made: list[Schema] = []
            for name in names:
                answer = evaluation.may_be(self, some, name)
                if answer is None:
                    raise UnsupportedFeature(
                        f"whether {name!r} is among the names meant", where=self.document.where(asked)
                    )
                if answer:
                    made.append({BITS: OBJECT, "required": [name], "properties": {name: some.value}})
            if few is None and not any(rest is False and not patterns for _, patterns, rest in facts.objects):
                made.append({BITS: OBJECT, WITNESS: some})
            return [self.document.derived(schema, asked) for schema in made]

        return goal, self.derive(asked, ("some", *names), alternatives)

    # ------------------------------------------------------------------ formats
    def asserts_format(self, name: str) -> bool:
        """Whether a format of strings is enforced."""
        return self.assert_formats and name in FORMATS

    def integer_format(self, name: str) -> tuple[int, int] | None:
        """The least and the greatest number of a format of integers that is enforced."""
        return INTEGER_FORMATS.get(name) if self.assert_formats else None

    # ------------------------------------------------------------------ oneOf
    def exclusive(self, origin: Schema, branches: list[Schema]) -> list[Schema]:
        """Alternatives of which at most one holds for any value, and that together are ``oneOf`` of the branches.

        Branches that are provably apart stay as they are. To one that overlaps others, "and none of these" is added;
        or, where many overlap that a property of theirs would tell apart if it were required, "and has this property"
        (a narrowing: without it, an object is seldom of one branch only).
        """
        if id(origin) in self._comparing:
            # Recursion: whether the branches are apart is asked to find out just that. Without an answer nothing is
            # proved from them, and no grammar is made of what is found meanwhile.
            return branches
        return self.derive(origin, ("oneOf",), lambda: self._exclusive(origin, branches))

    def _exclusive(self, origin: Schema, branches: list[Schema]) -> list[Schema]:
        self._comparing.add(id(origin))
        try:
            overlaps = evaluation.overlapping(self, branches, MAX_PAIRS)
        finally:
            self._comparing.discard(id(origin))
        if overlaps is None:
            message = f"oneOf with {len(branches)} branches that are not told apart by one required property"
            raise LimitExceeded(message, where=self.document.where(origin, "oneOf"))
        tag = evaluation.optional_tag(self, [branches[i] for i in overlaps]) if len(overlaps) > 2 else None
        tagged = self.document.derived({BITS: OBJECT, "required": [tag]}, origin)
        out: list[Schema] = []
        for i, branch in enumerate(branches):
            others = overlaps.get(i, ())
            if not others:
                out.append(branch)
                continue
            if tag is not None:
                out.append(self.document.derived({"allOf": [branch, tagged]}, origin))
                continue
            try:
                apart = [self._unlike(branches[j], branch, origin) for j in others]
            except UnsupportedFeature as error:
                hint = "use anyOf, or give the branches a required property with a different const in each"
                message = f"oneOf branches that are not provably disjoint, as one of them uses {error.message}"
                raise UnsupportedFeature(message, where=self.document.where(origin, "oneOf", i), hint=hint) from None
            out.append(self.document.derived({"allOf": [branch, *apart]}, origin))
        return out

    def _unlike(self, other: Schema, branch: Schema, origin: Schema) -> Schema:
        """What tells values of ``branch`` from those of another one, that refuses them.

        Where exact answers are too many, if it can be said so: they lack a property that the other one requires.
        """
        if self.narrow:
            theirs, own = self.gather([other]).required, self.gather([branch]).required
            lacking = [name for name in theirs if name not in own]
            if lacking:
                absent = [{"properties": {name: False}} for name in lacking]
                return self.derive(other, ("lacking", *lacking), lambda: [{"anyOf": absent}])[0]
        return self.negate(other, origin)

    def impossible(self, facts: Conjunction) -> bool:
        """Whether nothing can satisfy a conjunction, as far as a shallow look shows; errors are left for later."""
        try:
            return evaluation.surely_no_value(self, facts, 1)
        except GrammarError:
            return False
