"""From the rules of a grammar to nodes of the grammar builder.

A rule that needs no rule but such ones is a regular expression: it becomes one node, and a lexical unit where a
recursive rule uses it. Rules that may call themselves become rules of the builder. Open parentheses are kept on a list,
so that nesting may be of any depth.
"""

from __future__ import annotations

from typing import Final

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.gbnf.characters import literal, ranges
from grammarspec.frontends.gbnf.dispatch import Dispatch
from grammarspec.frontends.gbnf.text import MACROS, Rule, Source, Token
from grammarspec.frontends.regex.charsets import ALL
from grammarspec.grammars import marks
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Rules"]

_LOWERING: Final = 25
"""Steps for each token of a rule that is lowered."""
_MOST_WRITTEN_OUT: Final = 2_000
"""Tokens of a regular expression, with those of the rules that it names, each as often as it is named."""
_COUNTS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_TOKENS_ONLY: Final = "text is what grammars describe; a special token can be written by its name, <|eot|>"


class _Group:
    """An open parenthesis, or the whole body: what has been read of it so far.

    Attributes:
        token: the parenthesis.
        branches: the nodes of the alternatives that are finished, but for those that are plain texts.
        texts: the alternatives that are plain texts.
        items: the nodes of the alternative that is being read.
        text: if that is one literal so far, its text.
    """

    __slots__ = ("branches", "items", "text", "texts", "token")

    def __init__(self, token: Token | None) -> None:
        self.token = token
        self.branches: list[int] = []
        self.texts: list[str] = []
        self.items: list[int] = []
        self.text: str | None = None

    def add(self, node: int, text: str | None = None) -> None:
        self.text = None if self.items else text
        self.items.append(node)

    def end_branch(self, builder: GrammarBuilder) -> None:
        if self.text is not None:
            self.texts.append(self.text)
        else:
            self.branches.append(builder.seq(*self.items) if self.items else builder.empty)
        self.items, self.text = [], None

    def node(self, builder: GrammarBuilder) -> int:
        """Finish the group; its node."""
        self.end_branch(builder)
        if len(self.texts) > 1:
            self.branches.append(builder.words(self.texts))
        elif self.texts:
            self.branches.append(builder.literal(self.texts[0]))
        return builder.alt(*self.branches)


class Rules:
    """Lowers the rules that are reached from the root, each once."""

    def __init__(self, source: Source, builder: GrammarBuilder) -> None:
        self.source, self.builder = source, builder
        self.nodes: dict[str, int] = {}
        """What stands for a rule where another names it."""
        self.regular: dict[str, int] = {}
        """The nodes of the rules that are regular expressions."""

    def start(self, root: str) -> int:
        """The node of the whole language.

        Raises:
            GrammarSyntaxError: there is no such rule, or a rule is malformed.
            UnsupportedFeature: a rule uses what is refused.
            LimitExceeded, Cancelled: as :class:`~grammarspec.grammars.budget.Budget`.
        """
        if root not in self.source.rules:
            raise GrammarSyntaxError(f"there is no rule {root!r} to start from", hint="pass root=...")
        reached = self._reached(root)
        for name in self._regular(reached):
            self.regular[name] = self.nodes[name] = self._body(self.source.rules[name])
        recursive = [name for name in reached if name not in self.regular]
        for name in self.regular:
            self.nodes[name] = self.builder.terminal(self.regular[name])
        numbers = {name: self.builder.rule(name) for name in recursive}
        self.nodes |= {name: self.builder.call(number) for name, number in numbers.items()}
        for name, number in numbers.items():
            self.builder.define(number, self._body(self.source.rules[name]))
        return self.nodes[root]

    def _reached(self, root: str) -> list[str]:
        """The rules that are reached from the root."""
        reached = {root: None}
        pending = [root]
        while pending:
            for name in self.source.rules[pending.pop()].uses:
                if name not in reached:
                    reached[name] = None
                    pending.append(name)
        return list(reached)

    def _regular(self, reached: list[str]) -> list[str]:
        """Those of the rules that need no recursive one, each behind those that it needs (Kahn 1962).

        Rules that would be large if they were written out are left to be called.
        """
        missing = {name: len(self.source.rules[name].uses) for name in reached}
        users: dict[str, list[str]] = {}
        for name in reached:
            for used in self.source.rules[name].uses:
                users.setdefault(used, []).append(name)
        order = [name for name, count in missing.items() if not count]
        sizes: dict[str, int] = {}
        for name in order:  # which grows meanwhile
            body = self.source.rules[name].body
            sizes[name] = sum(sizes.get(token.text, 1) if token.kind == "name" else 1 for token in body)
            if sizes[name] > _MOST_WRITTEN_OUT:
                continue
            for user in users.get(name, ()):
                missing[user] -= 1
                if not missing[user]:
                    order.append(user)
        return [name for name in order if sizes[name] <= _MOST_WRITTEN_OUT]

    def _body(self, rule: Rule) -> int:
        """The node of a rule's body."""
        builder, body = self.builder, rule.body
        at = self._head(rule)
        group, outer = _Group(None), list[_Group]()
        while at < len(body):
            builder.budget.spend(_LOWERING)
            token = body[at]
            at += 1
            match token.kind:
                case "literal":
                    text = literal(self.source.text, token.begin + 1, token.end - 1)
                    group.add(builder.literal(text), text)
                case "set":
                    group.add(builder.codepoints(ranges(self.source.text, token.begin + 1, token.end - 1)))
                case ".":
                    group.add(builder.codepoints(ALL))
                case "name" if token.text in self.nodes:
                    group.add(self.nodes[token.text])
                case "name" if token.text in MACROS:
                    dispatch = Dispatch(self.source, builder, self.nodes, token)
                    at = dispatch.read(body, at)
                    group.add(dispatch.node())
                case "special":
                    group.add(self._special(token))
                case "(":
                    outer.append(group)
                    group = _Group(token)
                case ")" if outer:
                    node = group.node(builder)
                    group = outer.pop()
                    group.add(node)
                case "|":
                    group.end_branch(builder)
                case "*" | "+" | "?" | "count":
                    self._quantify(group, token)
                case _:
                    self._unexpected(token)
        if group.token is not None:
            self.source.fail("missing )", group.token)
        return group.node(builder)

    def _head(self, rule: Rule) -> int:
        """Read up to the body of a rule; where that begins.

        Raises:
            UnsupportedFeature: the rule has attributes.
        """
        if rule.body[0].kind != "set":
            return 1
        attributes = rule.body[0]
        message = f"the attributes {attributes.text:.60} of a rule are not supported"
        hint = "leave them out: captures do not change the language, and tokens cannot be counted in it"
        raise UnsupportedFeature(message, self.source.at(attributes), hint)

    def _quantify(self, group: _Group, token: Token) -> None:
        """Repeat what was read last."""
        if not group.items:
            self.source.fail(f"nothing stands before {token.text} that it could repeat", token)
        least, most = _COUNTS.get(token.text) or token.counts
        group.items[-1] = self.builder.repeat(group.items[-1], least, most)
        group.text = None

    def _special(self, token: Token) -> int:
        """The node of a special token.

        Raises:
            UnsupportedFeature: the token is meant by its number, or all others are meant.
        """
        if token.text.startswith("!"):
            message = f"{token.text:.60}, any token but one, is not supported"
            raise UnsupportedFeature(message, self.source.at(token), _TOKENS_ONLY)
        if token.text.startswith("<["):
            message = f"a token by its number, {token.text:.60}, is not supported: grammars know no vocabulary"
            raise UnsupportedFeature(message, self.source.at(token), "write it by its name, <|eot|>")
        if token.text == "<>":
            self.source.fail("a token without a name", token)
        try:
            return self.builder.literal(marks.mark(token.text))
        except UnicodeEncodeError:
            self.source.fail("a lone surrogate, which UTF-8 cannot spell", token)

    def _unexpected(self, token: Token) -> None:
        """Say that a token cannot stand where it does.

        Raises:
            UnsupportedFeature: it is a lookahead.
            GrammarSyntaxError: it is something else.
        """
        if token.kind == "lookahead":
            message = "a lookahead assertion is not supported"
            hint = "leave it out: XGrammar uses it to be faster, and no text is refused by it"
            raise UnsupportedFeature(message, self.source.at(token), hint)
        if token.kind == "name":
            self.source.fail(f"the rule {token.text} is not defined", token)
        self.source.fail(f"an unexpected {token.text}", token)
