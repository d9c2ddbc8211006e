"""XGrammar's macro ``TagDispatch``: free text, and rules that its tags call.

The text is free up to the first tag that is complete; there the rule of the tag begins, and behind it, text is free
again, unless ``loop_after_dispatch`` is false. Free text cannot hold what ``excludes`` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.gbnf.characters import literal
from grammarspec.frontends.gbnf.text import Source, Token
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Dispatch", "check_apart", "dispatched"]

_STEPS: Final = 50
"""Steps for each tag."""
_HINTS: Final = {
    "Regex": "gs.regex makes a grammar of it, which + and | combine with others",
    "TokenTagDispatch": "TagDispatch takes the texts of tags",
}


class Dispatch:
    """One use of the macro.

    Attributes:
        tags: the tags, each with the node of its rule.
        excludes: what free text cannot hold.
        loops: whether text is free behind a rule.
    """

    def __init__(self, source: Source, builder: GrammarBuilder, rules: Mapping[str, int], macro: Token) -> None:
        self.source, self.builder, self.rules, self.macro = source, builder, rules, macro
        self.tags: list[tuple[str, int]] = []
        self.excludes: list[str] = []
        self.loops = True

    def read(self, body: list[Token], at: int) -> int:
        """Read the arguments from the parenthesis on; where they end.

        Raises:
            UnsupportedFeature: it is another macro.
            GrammarSyntaxError: an argument is malformed.
        """
        if self.macro.text != "TagDispatch":
            what = f"the macro {self.macro.text} is not supported"
            raise UnsupportedFeature(what, self.source.at(self.macro), _HINTS.get(self.macro.text, "name the token"))
        arguments = _Arguments(self.source, body, at, self.macro)
        arguments.take("(")
        while not arguments.accept(")"):
            self.builder.budget.spend(_STEPS)
            if arguments.accept("("):
                self._tag(arguments)
            else:
                self._option(arguments)
            if not arguments.accept(","):
                arguments.take(")")
                break
        self._check()
        return arguments.at

    def _tag(self, arguments: _Arguments) -> None:
        tag = arguments.text()
        arguments.take(",")
        rule = arguments.take("name")
        if rule.text not in self.rules:
            self.source.fail(f"the rule {rule.text} is not defined", rule)
        arguments.accept(",")
        arguments.take(")")
        self.tags.append((tag, self.rules[rule.text]))

    def _option(self, arguments: _Arguments) -> None:
        name = arguments.take("name")
        arguments.take("=")
        if name.text == "loop_after_dispatch":
            value = arguments.take("name")
            if value.text not in ("true", "false"):
                self.source.fail("true or false is expected", value)
            self.loops = value.text == "true"
        elif name.text == "excludes":
            arguments.take("(")
            while not arguments.accept(")"):
                self.excludes.append(arguments.text())
                if not arguments.accept(","):
                    arguments.take(")")
                    break
        else:
            self.source.fail(f"TagDispatch has no option {name.text}", name)

    def _check(self) -> None:
        """Check the texts of the macro, as :func:`check_apart` does.

        Raises:
            UnsupportedFeature: one of them is within another.
        """
        texts = {tag for tag, _ in self.tags} | set(self.excludes)
        check_apart(texts, self.builder.budget, "TagDispatch", self.source.at(self.macro))
        if not self.tags:
            self.source.fail("TagDispatch without a tag", self.macro)

    def node(self) -> int:
        """The language of the macro."""
        return dispatched(self.builder, self.tags, self.excludes, loops=self.loops)


def check_apart(texts: Iterable[str], budget: Budget, what: str, where: str) -> None:
    """Refuse texts of which one is within another, where XGrammar calls a rule or does not as they overlap.

    Args:
        what, where: what has them, and its place, for the error.

    Raises:
        UnsupportedFeature: there are such texts.
    """
    ordered = sorted(set(texts), key=len)
    everything = "\0".join(ordered)
    for text in ordered:
        budget.spend(_STEPS + len(everything) // 100)
        if everything.count(text) > 1:
            other = next((other for other in ordered if text in other and other != text), text)
            message = f"{what} with texts of which one is within another ({text!r:.40}, {other!r:.40})"
            hint = "choose tags and excluded texts that do not hold each other"
            raise UnsupportedFeature(message, where, hint)


def dispatched(
    builder: GrammarBuilder,
    tags: Sequence[tuple[str | bytes, int]],
    excludes: Sequence[str] = (),
    *,
    loops: bool = True,
    least: int = 0,
) -> int:
    """Free text, in which what follows a tag is as its node says.

    Args:
        tags: the texts of tags, or the marks of special tokens, each with the node of what follows it.
        excludes: texts that free text cannot hold.
        loops: whether text is free behind what follows a tag; else the text ends there.
        least: how many tags there are at least, 0 or 1; without ``loops`` 1 stands for exactly one.
    """
    texts = [tag for tag, _ in tags if isinstance(tag, str)]
    words = builder.words(texts) if texts else None
    apart = _without(builder, [*texts, *excludes])
    free = builder.terminal(builder.both(builder.any_text(), *apart))

    def up_to(tag: str | bytes) -> int:
        if isinstance(tag, bytes):
            return builder.seq(free, builder.literal(tag))
        assert words is not None
        any_byte = builder.bytes_in(((0, 255),))
        ends = builder.seq(builder.anything, builder.literal(tag))
        earlier = builder.seq(builder.anything, words, any_byte, builder.anything)
        whole = builder.both(builder.any_text(), ends, builder.complement(earlier), *_without(builder, excludes))
        return builder.terminal(whole)

    called = builder.alt(*(builder.seq(up_to(tag), node) for tag, node in tags))
    if loops:
        return builder.seq(builder.repeat(called, least, None), free)
    return called if least else builder.alt(free, called)


def _without(builder: GrammarBuilder, texts: Sequence[str]) -> list[int]:
    """What no text satisfies that holds one of these; of none, nothing is asked."""
    if not texts:
        return []
    return [builder.complement(builder.seq(builder.anything, builder.words(texts), builder.anything))]


class _Arguments:
    """The tokens of a macro's arguments, read one by one."""

    def __init__(self, source: Source, body: list[Token], at: int, macro: Token) -> None:
        self.source, self.body, self.at, self.macro = source, body, at, macro

    def accept(self, kind: str) -> bool:
        """Read a token of this kind, if one stands here."""
        found = self.at < len(self.body) and self.body[self.at].kind == kind
        self.at += found
        return found

    def take(self, kind: str) -> Token:
        """Read a token, which must be of this kind.

        Raises:
            GrammarSyntaxError: it is of another kind, or there is none.
        """
        if self.at >= len(self.body):
            self.source.fail(f"the arguments of {self.macro.text} do not end", self.macro)
        token = self.body[self.at]
        if token.kind != kind:
            hint = 'write TagDispatch(("tag", rule), ...)'
            self.source.fail(f"in the arguments of {self.macro.text}, an unexpected {token.text:.60}", token, hint)
        self.at += 1
        return token

    def text(self) -> str:
        """Read a literal, which must not be empty.

        Raises:
            GrammarSyntaxError: there is none, it is empty, or it is malformed.
        """
        token = self.take("literal")
        text = literal(self.source.text, token.begin + 1, token.end - 1)
        if not text:
            self.source.fail("an empty text", token)
        return text
