"""From the rules of a ``.lark`` grammar to context-free nodes of the grammar builder.

Each rule that is reached from the start becomes a rule of the builder, and each template one rule for each different
choice of arguments. Terminals become nodes by :mod:`.terminals` or, for lark's basic lexer, by
:mod:`.lexers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Final

from grammarspec.errors import GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.lark.lexers import BasicTerminals
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.terminals import Terminals
from grammarspec.frontends.lark.tree import (
    Alternatives,
    Body,
    Literal,
    Maybe,
    Pattern,
    Repetition,
    Sequence,
    Symbol,
    TemplateUse,
    Value,
)
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["AnyTerminals", "Rules"]

_MAX_INSTANCES: Final = 10_000
"""Templates used with different arguments. A template that uses itself with ever larger ones has no end."""
_LOWERING: Final = 20
"""Steps of a part of a rule."""
_MAX_DIGITS: Final = 12
"""Digits of a repetition count that are read as a number; all longer ones are too large."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """What a value means, as an argument of a template or on its own.

    Attributes:
        key: a number that is the same for equal values.
        node: the builder's node.
        template: if the value is a template without its arguments, its name; then there is no node of its own.
    """

    key: int
    node: int
    template: str | None = None


AnyTerminals = Terminals | BasicTerminals
"""The nodes of terminals, each with what may be ignored before it."""

_Scope = Mapping[str, _Argument]
"""The parameters of the template around a body, and their arguments."""


class Rules:
    """Lowers the rules that are reached from the start, each once."""

    def __init__(self, source: Source, terminals: AnyTerminals, builder: GrammarBuilder) -> None:
        self.source, self.terminals, self.builder = source, terminals, builder
        self.declared: dict[tuple[str, tuple[int, ...]], int] = {}
        self.keys: dict[object, int] = {}
        self.pending: list[tuple[int, Body, _Scope]] = []

    def start(self, names: Several[str]) -> int:
        """The node of the whole language, from any of the rules that it starts with.

        Raises:
            GrammarSyntaxError: a rule, template or terminal is malformed.
            UnsupportedFeature: a rule or terminal uses what is refused.
            LimitExceeded: counts or templates go too far.
            RecursionError: the grammar is nested too deeply.
        """
        start = self.builder.alt(*[self.call(name, ()) for name in names])
        while self.pending:
            rule, body, scope = self.pending.pop()
            self.builder.define(rule, self.node(body, scope))
        whole = self.builder.seq(start, self.terminals.trailing)
        if not self.terminals.look_past_their_ends:
            return whole
        return self.builder.text(names[0], whole, self.terminals.skipped_alone)

    def call(self, name: str, arguments: tuple[_Argument, ...]) -> int:
        """The node of a rule, or of a template with its arguments; its body is lowered later.

        Raises:
            GrammarSyntaxError: a template gets another number of arguments than it has parameters.
            UnsupportedFeature: the rule is only declared.
            LimitExceeded: there are too many uses of templates.
        """
        keys = tuple(argument.key for argument in arguments)
        rule = self.declared.get((name, keys))
        if rule is None:
            definition = self.source.rules[name]
            parameters, where = definition.parameters, self.source.text.definition
            if definition.body is None:
                raise UnsupportedFeature(f"the rule {name} is only declared", hint="define it in the grammar")
            if len(parameters) != len(arguments):
                message = f"the template {name} takes {len(parameters)} arguments, not {len(arguments)}"
                raise GrammarSyntaxError(message, where(name))
            if arguments and len(self.declared) > _MAX_INSTANCES:
                raise LimitExceeded(f"templates exceed the limit of {_MAX_INSTANCES} uses", where(name))
            rule = self.declared[name, keys] = self.builder.rule(name)
            self.pending.append((rule, definition.body, dict(zip(parameters, arguments, strict=True))))
        return self.builder.call(rule)

    def node(self, body: Body, scope: _Scope) -> int:
        """The node of a rule's body, or of a part of it.

        Raises:
            GrammarError: as :meth:`start`.
        """
        builder = self.builder
        builder.budget.spend(_LOWERING)
        match body:
            case Alternatives(branches):
                return self.alternatives(branches, scope)
            case Sequence(parts):
                return builder.seq(*[self.node(part, scope) for part in parts]) if parts else builder.empty
            case Maybe(inner):
                return builder.optional(self.node(inner, scope))
            case Repetition(inner, operator, counts):
                return self.repetition(self.node(inner, scope), operator, counts)
        argument = self.argument(body, scope)
        if argument.template is not None:
            message = f"the template {argument.template} is used without arguments"
            raise GrammarSyntaxError(message, self.source.text.definition(argument.template))
        return argument.node

    def alternatives(self, branches: tuple[Body, ...], scope: _Scope) -> int:
        """Any of the branches; those that are plain strings become one set of words.

        Raises:
            GrammarError: as :meth:`start`.
        """
        texts: list[Pattern] = []
        nodes: list[int] = []
        for branch in branches:
            if isinstance(branch, Literal) and branch.pattern.literal is not None:
                texts.append(branch.pattern)
            else:
                nodes.append(self.node(branch, scope))
        if texts:
            nodes.append(self.terminals.any_of(texts))
        return self.builder.alt(*nodes)

    def repetition(self, node: int, operator: str, counts: tuple[str, ...]) -> int:
        """A node with an operator; see :class:`~.tree.Repetition`.

        Raises:
            LimitExceeded: a count is too large.
            GrammarSyntaxError: the upper count is below the lower one.
        """
        if operator in "?*+":
            return self.builder.repeat(node, int(operator == "+"), 1 if operator == "?" else None)
        if any(len(count) > _MAX_DIGITS for count in counts):
            raise LimitExceeded(f"a repetition count exceeds the limit: {counts[-1][:_MAX_DIGITS]}...")
        least, most = int(counts[0]), int(counts[-1])
        if not 0 <= least <= most:
            where = self.source.text.range(least, most)
            raise GrammarSyntaxError(f"bad range of a repetition: {least}..{most}", where)
        try:
            return self.builder.repeat(node, least, most)
        except OverflowError as error:
            raise LimitExceeded(str(error)) from None

    def argument(self, value: Value, scope: _Scope) -> _Argument:
        """A symbol, a literal or the use of a template.

        Raises:
            GrammarError: as :meth:`start`.
        """
        match value:
            case Literal(pattern):
                return _Argument(self.key(pattern.regex), self.terminals.literal(pattern))
            case TemplateUse(name, values):
                return self.template(name, tuple([self.argument(inner, scope) for inner in values]), scope)
            case Symbol(name, is_terminal):
                if name in scope:
                    return scope[name]
                key = self.key((name,))
                if is_terminal:
                    return _Argument(key, self.terminals.named(name))
                if self.source.rules[name].parameters:
                    return _Argument(key, self.builder.nothing, template=name)
                return _Argument(key, self.call(name, ()))

    def template(self, name: str, arguments: tuple[_Argument, ...], scope: _Scope) -> _Argument:
        """A template, or the one that a parameter stands for, with its arguments.

        Raises:
            GrammarSyntaxError: the parameter stands for no template; or as :meth:`call`.
            UnsupportedFeature, LimitExceeded: as :meth:`call`.
        """
        template = scope[name].template if name in scope else name
        if template not in self.source.rules:
            raise GrammarSyntaxError("a parameter that is no template is used as one")
        key = self.key((template, tuple(argument.key for argument in arguments)))
        return _Argument(key, self.call(template, arguments))

    def key(self, meaning: object) -> int:
        """A number for what an argument means."""
        return self.keys.setdefault(meaning, len(self.keys))
