"""From the rules of a grammar to context-free nodes of the grammar builder.

Ignored lexemes stand before each lexeme but the first of the text, and at the end of the text, if it could go on there.
So a rule that the text may begin with is lowered twice: as what begins the text, of which the first lexeme has nothing
before it, and as what stands behind a lexeme.
"""

from __future__ import annotations

from typing import Final

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, Unsatisfiable
from grammarspec.frontends.json_schema import language
from grammarspec.frontends.json_schema.document.loading import load
from grammarspec.frontends.json_schema.options import check_options
from grammarspec.frontends.llguidance.parsing import Source
from grammarspec.frontends.llguidance.rows import Leaf, Rows, bits, is_nullable, nullable_rules
from grammarspec.frontends.llguidance.terminals import Terminals
from grammarspec.frontends.llguidance.tree import (
    And,
    Choice,
    Json,
    Literal,
    Name,
    Node,
    Repeat,
    Sequence,
    Special,
)
from grammarspec.grammars import marks
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits, byte_index, compile_ir
from grammarspec.positions import where

__all__ = ["Rules"]

_STEPS: Final = 20
"""Steps for each part of a rule."""
_TRYING: Final = 20_000
"""Steps for each pair of lexemes whose texts are compared."""
_JSON_BEGINS: Final = tuple((ord(char), ord(char)) for char in '"-0123456789[fnt{')


class Rules:
    """Lowers the rules that are reached from the start, each once, or twice."""

    def __init__(self, source: Source, builder: GrammarBuilder) -> None:
        self.source, self.builder = source, builder
        self.terminals = Terminals(source, builder)
        self.declared: dict[tuple[str, bool], int] = {}
        self.pending: list[tuple[str, bool]] = []
        self.lexemes: dict[object, int] = {}
        self.guards: dict[int, list[object]] = {}
        """By the ``id`` of a node, the lazy lexemes that its texts cannot begin with."""
        self.skipped = builder.empty
        self.nullable: set[str] = set()
        self.trailed: set[int] = set()
        """The ``id`` of each place behind which ignored lexemes may end the text."""

    def start(self, name: str) -> int:
        """The node of the whole language.

        Raises:
            GrammarSyntaxError: there is no such rule, or a name is not defined, or a pattern is malformed.
            UnsupportedFeature: a rule or terminal uses what is refused, or whether a lazy lexeme ends others cannot be
                told.
            LimitExceeded, Cancelled: as :class:`~grammarspec.grammars.budget.Budget`.
            RecursionError: terminals are nested too deeply.
        """
        if name not in self.source.rules:
            raise GrammarSyntaxError(f"there is no rule {name!r} to start from", hint="pass start=...")
        if self.source.rules[name].lazy:
            return self.lexeme(Name(name, self.source.rules[name].place))
        bodies = {rule: self.source.rules[rule].body for rule in self._reached(name)}
        for body in bodies.values():
            self._check(body)
        rows = Rows(name, bodies, self.leaf, self.builder.budget)
        if any(rule.lazy for rule in self.source.rules.values()):
            self._find_guards(rows)
        if self.source.ignored:
            self._find_trailed(rows)
            ignored = [self.terminals.lexeme(node) for node in self.source.ignored]
            self.skipped = self.builder.terminal(self.builder.repeat(self.builder.alt(*ignored), 0, None))
        if not self.source.ignored or self.source.initial_skip:
            node = self.call(name, False)
        else:
            self.nullable = nullable_rules(bodies, self.leaf, self.builder.budget)
            node = self.call(name, True)
            node = self.builder.alt(node, self.builder.empty) if name in self.nullable else node
        while self.pending:
            rule, first = self.pending.pop()
            body = self.source.rules[rule].body
            lowered = self.first(body) if first else self.node(body)
            self.builder.define(self.declared[rule, first], lowered)
        return node

    def _reached(self, start: str) -> list[str]:
        """The rules that are reached from the start and are no lexemes; the start in any case."""
        reached = {start: None}
        pending = [self.source.rules[start].body]
        while pending:
            node = pending.pop()
            self.builder.budget.spend(_STEPS)
            match node:
                case Sequence(parts) | Choice(parts):
                    pending += parts
                case Repeat(inner):
                    pending.append(inner)
                case Name(name) if name in self.source.rules and name not in reached:
                    if not self.source.rules[name].lazy:
                        reached[name] = None
                        pending.append(self.source.rules[name].body)
        return list(reached)

    def _check(self, body: Node) -> None:
        """Refuse ``&`` in a rule, which is for terminals."""
        pending = [body]
        while pending:
            match pending.pop():
                case Sequence(parts) | Choice(parts):
                    pending += parts
                case Repeat(inner):
                    pending.append(inner)
                case And(_, place):
                    self.source.fail("& in a rule", place, "name what it makes as a terminal, in upper case")

    # Lexemes.

    def leaf(self, node: Node, owner: str) -> Leaf | None:
        """What stands at a place of a rule, for :class:`~.rows.Rows`."""
        if isinstance(node, Name) and node.name in self.source.rules:
            rule = self.source.rules[node.name]
            return Leaf(node, (rule.body, rule.suffix), "", owner) if rule.lazy else Leaf(node, None, node.name, owner)
        return None if isinstance(node, Literal) and not node.text else Leaf(node, node, "", owner)

    def made(self, key: object) -> int:
        """The node of a lexeme, without guards, by its key."""
        if key not in self.lexemes:
            if isinstance(key, tuple):
                self.lexemes[key] = self.terminals.shortest(*key)
            else:
                self.lexemes[key] = self._made(key)  # type: ignore[arg-type]
        return self.lexemes[key]

    def _made(self, node: Node) -> int:
        if isinstance(node, Special):
            return self.builder.literal(marks.mark(node.name))
        return self._json(node) if isinstance(node, Json) else self.terminals.lexeme(node)

    def _json(self, node: Json) -> int:
        """The values of a schema, as :func:`grammarspec.json_schema` has them."""
        place = where(self.source.text, node.place)
        try:
            schema = load(node.schema)
            options = schema.pop("x-guidance", {}) if isinstance(schema, dict) else {}
            flexible = options.pop("whitespace_flexible", True) if isinstance(options, dict) else True
            if options or not isinstance(flexible, bool):
                self.source.refuse("x-guidance in a schema, but for whitespace_flexible", node.place)
            spelled = check_options(whitespace="flexible" if flexible else "compact")
            return self.builder.embed(language(schema, spelled, budget=self.builder.budget))
        except GrammarError as error:
            if error.where.startswith("line"):
                raise
            raise type(error)(error.message, f"{place}\n  in its schema, {error.where or '#'}", error.hint) from None

    def lexeme(self, node: Node) -> int:
        """What stands at a place of a rule, as a node: a lexeme or the call of a rule."""
        leaf = self.leaf(node, "")
        if leaf is None:
            return self.builder.empty
        if leaf.rule:
            return self.call(leaf.rule, False)
        guards = self.guards.get(id(node), ())
        made = self.made(leaf.key)
        if guards:
            made = self._guarded(made, [self.made(guard) for guard in guards], isinstance(leaf.key, tuple))
        plain = isinstance(node, Literal | Special | Json) and not guards
        made = made if plain else self.builder.terminal(made)
        return self.builder.seq(made, self.skipped) if id(node) in self.trailed else made

    def _guarded(self, made: int, lazy: list[int], is_lazy: bool) -> int:
        """The texts of a lexeme that do not begin with a lazy one; a lazy one may itself be such a text."""
        builder = self.builder
        begun = [self.terminals.longer(other) if is_lazy else builder.seq(other, builder.anything) for other in lazy]
        return builder.both(made, *map(builder.complement, begun))

    # Rules.

    def call(self, name: str, first: bool) -> int:
        """The call of a rule; ``first``: of its texts that are not empty, at the beginning of the whole text."""
        if (name, first) not in self.declared:
            self.declared[name, first] = self.builder.rule(name)
            self.pending.append((name, first))
        return self.builder.call(self.declared[name, first])

    def node(self, node: Node) -> int:
        """The node of a part of a rule that stands behind a lexeme."""
        builder = self.builder
        builder.budget.spend(_STEPS)
        match node:
            case Sequence(parts):
                return builder.seq(*map(self.node, parts)) if parts else builder.empty
            case Choice(branches):
                return builder.alt(*map(self.node, branches))
            case Repeat(inner, least, most):
                return builder.repeat(self.node(inner), least, most)
        made = self.lexeme(node)
        leaf = self.leaf(node, "")
        if not self.source.ignored or leaf is None or leaf.rule or isinstance(node, Json):
            return made
        return builder.seq(self.skipped, made)

    def first(self, node: Node) -> int:
        """The node of a part of a rule that the whole text begins with, without the empty text."""
        builder = self.builder
        builder.budget.spend(_STEPS)
        match node:
            case Sequence(parts):
                return self._first_of_sequence(parts)
            case Choice(branches):
                return builder.alt(*map(self.first, branches))
            case Repeat(_, _, 0):
                return builder.nothing
            case Repeat(inner, least, most):
                fewer = 0 if is_nullable(inner, self.nullable, self.leaf) else max(0, least - 1)
                more = builder.repeat(self.node(inner), fewer, None if most is None else most - 1)
                return builder.seq(self.first(inner), more)
        leaf = self.leaf(node, "")
        if leaf is None:
            return builder.nothing
        return self.call(leaf.rule, True) if leaf.rule else self.lexeme(node)

    def _first_of_sequence(self, parts: tuple[Node, ...]) -> int:
        """A part begins the text if all parts before it are empty."""
        builder = self.builder
        branches = []
        rest = [builder.empty]
        for part in reversed(parts):
            rest.append(builder.seq(self.node(part), rest[-1]))
        rest.reverse()
        for number, part in enumerate(parts):
            branches.append(builder.seq(self.first(part), rest[number + 1]))
            if not is_nullable(part, self.nullable, self.leaf):
                break
        return builder.alt(*branches)

    def _find_trailed(self, rows: Rows) -> None:
        """Find the places behind which the text may end or go on. Nothing is ignored before values of a schema."""
        for number in bits(rows.ends):
            behind = [rows.leaves[other].node for other in bits(rows.may_next[number])]
            if behind and not rows.leaves[number].rule and not any(isinstance(node, Json) for node in behind):
                self.trailed.add(id(rows.leaves[number].node))

    # Lazy lexemes.

    def _find_guards(self, rows: Rows) -> None:
        """Note for each lexeme the lazy ones that it stands beside and that would end it.

        Raises:
            UnsupportedFeature: whether a lazy one stands beside it depends on more than the place.
        """
        lazy: dict[object, int] = {}
        for number, leaf in enumerate(rows.leaves):
            if leaf.lazy:
                lazy[leaf.key] = lazy.get(leaf.key, 0) | 1 << number
        meets: dict[tuple[object, object], bool] = {}
        for number, leaf in enumerate(rows.leaves):
            for key, places in lazy.items() if not leaf.rule else ():
                if leaf.key == key or not rows.may[number] & places:
                    continue
                pair = (leaf.key, key)
                if pair not in meets:
                    meets[pair] = self._meet(leaf, key)
                if not meets[pair]:
                    continue
                if not rows.must[number] & places:
                    self._refuse(rows, leaf, places)
                self.guards.setdefault(id(leaf.node), []).append(key)

    def _refuse(self, rows: Rows, leaf: Leaf, places: int) -> None:
        rule = next(rows.leaves[number].node for number in bits(places))
        name = rule.name if isinstance(rule, Name) else "?"
        place = getattr(leaf.node, "place", 0)
        message = f"a lexeme that the lazy rule {name} ends in some contexts and not in others"
        self.source.refuse(message, place, "give each context rules and lexemes of its own")

    def _meet(self, leaf: Leaf, lazy: object) -> bool:
        """Whether a lexeme has a text that begins with a lazy one."""
        builder = self.builder
        if isinstance(leaf.node, Special):
            return False
        begun = builder.seq(self.made(lazy), builder.anything)
        if isinstance(leaf.node, Json):
            made = builder.seq(builder.bytes_in(_JSON_BEGINS), builder.anything)
        else:
            made = self.made(leaf.key)
            begun = self.terminals.longer(self.made(lazy)) if isinstance(leaf.key, tuple) else begun
        builder.budget.spend(_TRYING)
        new = builder.copy()
        new.define_others(new.nothing)
        try:
            compile_ir(new.build(new.both(made, begun)), byte_index(), Limits(max_steps=4 * _TRYING))
        except Unsatisfiable:
            return False
        except LimitExceeded:
            pass
        return True
