"""Rules of a ``.lark`` grammar as context-free nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from grammarspec.errors import GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.lark.loader import Pattern, Source
from grammarspec.frontends.lark.terminals import Terminals
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Rules"]

_MAX_INSTANCES: Final = 10_000
"""Templates used with different arguments. A template that uses itself with ever larger ones has no end."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """What a template's parameter stands for: a node, or (``template``) the name of a template to use.

    ``key`` tells arguments apart.
    """

    key: int
    node: int
    template: str | None = None


_Scope = Mapping[str, _Argument]


class Rules:
    """Lowers the rules that are reached from the start, each once."""

    def __init__(self, source: Source, builder: GrammarBuilder) -> None:
        self.source, self.builder = source, builder
        self.terminals = Terminals(source, builder)
        self.declared: dict[tuple[str, tuple[int, ...]], int] = {}
        self.keys: dict[object, int] = {}
        self.pending: list[tuple[int, Any, _Scope]] = []

    def start(self, name: str) -> int:
        """The node of the whole language."""
        if name not in self.source.rules:
            raise GrammarSyntaxError(f"there is no rule {name!r} to start from", hint="pass start=...")
        start = self.call(name, ())
        while self.pending:
            rule, tree, scope = self.pending.pop()
            self.builder.define(rule, self.node(tree, scope))
        return self.builder.seq(start, self.terminals.trailing)

    def call(self, name: str, arguments: tuple[_Argument, ...]) -> int:
        """The node of a rule, or of a template with its arguments; its body is lowered later."""
        keys = tuple(argument.key for argument in arguments)
        rule = self.declared.get((name, keys))
        if rule is None:
            parameters, tree = self.source.rules[name]
            if tree is None:
                raise UnsupportedFeature(f"the rule {name} is only declared", hint="define it in the grammar")
            if len(parameters) != len(arguments):
                message = f"the template {name} takes {len(parameters)} arguments, not {len(arguments)}"
                raise GrammarSyntaxError(message, self.source.where(name))
            if arguments and len(self.declared) > _MAX_INSTANCES:
                raise LimitExceeded(f"templates exceed the limit of {_MAX_INSTANCES} uses", self.source.where(name))
            rule = self.declared[name, keys] = self.builder.rule(name)
            self.pending.append((rule, tree, dict(zip(parameters, arguments, strict=True))))
        return self.builder.call(rule)

    def node(self, tree: Any, scope: _Scope) -> int:
        builder, children = self.builder, tree.children
        match tree.data:
            case "expansions":
                return self.alternatives(children, scope)
            case "expansion":
                return builder.seq(*(self.node(child, scope) for child in children)) if children else builder.empty
            case "alias":
                return self.node(children[0], scope)
            case "maybe":
                return builder.optional(self.node(children[0], scope))
            case "expr":
                return self.repetition(self.node(children[0], scope), str(children[1]), [str(c) for c in children[2:]])
            case "value":
                argument = self.argument(children[0], scope)
                if argument.template is not None:
                    message = f"the template {argument.template} is used without arguments"
                    raise GrammarSyntaxError(message, self.source.where(argument.template))
                return argument.node
        raise AssertionError(f"lark's loader made a tree of an unknown kind, {tree.data!r}")

    def alternatives(self, branches: list[Any], scope: _Scope) -> int:
        """Branches that are plain strings become one set of words."""
        texts: list[str] = []
        nodes: list[int] = []
        for branch in branches:
            text = _plain_string(branch)
            if text is None:
                nodes.append(self.node(branch, scope))
            else:
                texts.append(text)
        if texts:
            nodes.append(self.terminals.any_of(texts))
        return self.builder.alt(*nodes)

    def repetition(self, node: int, operator: str, counts: list[str]) -> int:
        if operator in "?*+":
            return self.builder.repeat(node, int(operator == "+"), 1 if operator == "?" else None)
        if any(len(count) > 12 for count in counts):
            raise LimitExceeded(f"a repetition count exceeds the limit: {counts[-1][:12]}...")
        least, most = int(counts[0]), int(counts[-1])
        if not 0 <= least <= most:
            raise GrammarSyntaxError(f"bad range of a repetition: {least}..{most}")
        try:
            return self.builder.repeat(node, least, most)
        except OverflowError as error:
            raise LimitExceeded(str(error)) from None

    def argument(self, value: Any, scope: _Scope) -> _Argument:
        """A symbol, literal or use of a template, in a rule's body or as an argument."""
        if getattr(value, "data", None) == "value":
            return self.argument(value.children[0], scope)
        if getattr(value, "data", None) == "pattern":
            pattern: Pattern = value.children[0]
            return _Argument(self.key(pattern.regex), self.terminals.literal(pattern))
        if getattr(value, "data", None) == "template_usage":
            name, arguments = value.children[0].name, [self.argument(child, scope) for child in value.children[1:]]
            if name in scope:
                name = scope[name].template
            if name not in self.source.rules:
                raise GrammarSyntaxError("a parameter that is no template is used as one")
            key = self.key((name, tuple(argument.key for argument in arguments)))
            return _Argument(key, self.call(name, tuple(arguments)))
        if value.name in scope:
            return scope[value.name]
        key = self.key((value.name,))
        if value.is_term:
            return _Argument(key, self.terminals.named(value.name))
        if self.source.rules[value.name][0]:
            return _Argument(key, self.builder.nothing, template=value.name)
        return _Argument(key, self.call(value.name, ()))

    def key(self, meaning: object) -> int:
        return self.keys.setdefault(meaning, len(self.keys))


def _plain_string(branch: Any) -> str | None:
    """The string that an alternative consists of, if it does."""
    if branch.data == "alias":
        branch = branch.children[0]
    for kind in ("expansion", "value"):
        if branch.data != kind or len(branch.children) != 1:
            return None
        branch = branch.children[0]
    if getattr(branch, "data", None) != "pattern":
        return None
    pattern: Pattern = branch.children[0]
    return pattern.literal
