"""Terminals of a ``.lark`` grammar whose texts are those of another grammar (``terminals=``).

What is given comes in, is checked (:func:`checked`), and takes the place of the definitions of these terminals in what
lark's loader has made of the grammar (:func:`replace_terminals`). There are two kinds. For lexers that cut a text by
regular expressions, a given grammar must be such an expression, and becomes the terminal's own. For
``dynamic_complete``, to which a terminal is just a set of texts, any grammar will do: its language is embedded, lark's
expression is a stand-in, and lark asks :class:`Matcher` for the texts where it reads one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from grammarspec.errors import GrammarSyntaxError, Unsatisfiable, UnsupportedFeature
from grammarspec.frontends.lark.text import GrammarText
from grammarspec.frontends.regex import regex
from grammarspec.frontends.regex.charsets import LAST, Ranges, normalise, union
from grammarspec.grammars.expressions import Grammar, choice, literal
from grammarspec.grammars.operators import Call, Leaf
from grammarspec.grammars.reading import Reader

__all__ = ["GivenTerminal", "Matcher", "checked", "replace_terminals"]

_FLAGS: Final = {re.ASCII: "a", re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}
_REST: Final = re.compile("(?s:.*)")


@dataclass(frozen=True)
class GivenTerminal:
    """A terminal, and the grammar that was given for it.

    Attributes:
        name: the terminal.
        grammar: the grammar.
        pattern: its regular expression and the letters of its flags, for lexers that need one; else ``None``.
        words: its texts, if these were given one by one, for the same lexers; else ``None``.
    """

    name: str
    grammar: Grammar[Any]
    pattern: tuple[str, str] | None = None
    words: tuple[str, ...] | None = None

    @property
    def is_expression(self) -> bool:
        """Whether lark tries it as any regular expression; else its language is embedded."""
        return self.pattern is not None or self.words is not None

    @property
    def first(self) -> Ranges:
        """The characters that its texts may begin with: of those beyond ASCII, all or none."""
        following, _ = self.grammar.node.byte_constraint.matcher().next_bytes()
        beyond = ((128, LAST),) if any(byte >= 128 for byte in following) else ()
        return union(normalise((byte, byte) for byte in following if byte < 128), beyond)


def checked(terminals: Mapping[str, Grammar[Any]], lexer: str, flags: int) -> tuple[GivenTerminal, ...]:
    """The option ``terminals``.

    Args:
        lexer: the name of lark's lexer.
        flags: those of :mod:`re` for all terminals.

    Raises:
        TypeError: it is no mapping of names to grammars.
        UnsupportedFeature: the lexer needs regular expressions, and another grammar is given; or a given grammar has
            what a terminal cannot have: the empty text, special tokens, named parts.
        Unsatisfiable: a given grammar has no texts.
    """
    if not isinstance(terminals, Mapping):
        raise TypeError(f"terminals takes a dict of names and grammars, not {terminals!r:.60}")
    for name, grammar in terminals.items():
        if not isinstance(name, str) or not isinstance(grammar, Grammar):
            hint = "gs.literal, gs.regex, gs.json_schema and gs.grammar make grammars"
            raise TypeError(f"terminals[{name!r:.60}] is no grammar, but {grammar!r:.60}\n  hint: {hint}")
        _check_texts(name, grammar)
    if terminals and flags:
        message = "g_regex_flags and terminals= are not supported together: the flags are for all terminals"
        raise UnsupportedFeature(message, hint="write flags in the expressions of the file, as /[a-z]+/i")
    return tuple([_given(name, grammar, lexer) for name, grammar in terminals.items()])


def _check_texts(name: str, grammar: Grammar[Any]) -> None:
    """Refuse a grammar whose texts a terminal cannot have."""
    title, where = f"the grammar given for the terminal {name}", f"terminals[{name!r}]"
    if grammar.node.names:
        hint = f'captures=["{name}"] captures the texts, and parse of the given grammar reads one'
        raise UnsupportedFeature(f"{title} has named parts: {', '.join(grammar.node.names)}", where, hint)
    if grammar.node.special_tokens:
        listed = ", ".join(sorted(grammar.node.special_tokens))
        raise UnsupportedFeature(f"{title} has special tokens: {listed}", where, "combine grammars by + and | instead")
    try:
        can_be_empty = grammar.node.byte_constraint.matcher().is_accepting
    except Unsatisfiable:
        raise Unsatisfiable(f"{title} has no texts", where) from None
    if can_be_empty:
        raise UnsupportedFeature(f"{title} can be empty", where, f"write [{name}] in rules where it may be left out")


def _given(name: str, grammar: Grammar[Any], lexer: str) -> GivenTerminal:
    """A given terminal, as an expression unless the lexer takes any language."""
    if lexer == "dynamic_complete":
        return GivenTerminal(name, grammar)
    node = grammar.node
    call = node.call if isinstance(node, Leaf) else None
    if isinstance(call, Call):
        if call.function is regex and call.options["dialect"] == "python":
            flags = re.RegexFlag(call.options["flags"])
            letters = "".join(letter for flag, letter in _FLAGS.items() if flag & flags)
            end = "\n" if flags & re.VERBOSE else ""  # ends a comment, before the bracket that lark adds
            return GivenTerminal(name, grammar, pattern=(call.arguments[0] + end, letters))
        if call.function is literal:
            return GivenTerminal(name, grammar, words=(call.arguments[0],))
        if call.function is choice:
            return GivenTerminal(name, grammar, words=tuple(call.arguments[0]))
    raise UnsupportedFeature(
        f"the grammar given for the terminal {name} is no regular expression, by which lexer={lexer!r} cuts the text",
        f"terminals[{name!r}]",
        'parser="earley" with lexer="dynamic_complete" takes any grammar; '
        "the other lexers take gs.regex, gs.literal and gs.choice",
    )


def replace_terminals(definitions: Mapping[str, Any], given: Iterable[GivenTerminal], text: GrammarText) -> None:
    """Put given terminals in the places of those that a grammar has.

    Args:
        definitions: those of lark's loader by name. What they refer to is resolved: one that uses another has its tree.
        text: the grammar, for positions in it.

    Raises:
        GrammarSyntaxError: the grammar has no terminal of a given name.
        UnsupportedFeature: another terminal is made of a given one: lark would only join the text of expressions.
    """
    from lark import Tree
    from lark.grammar import TOKEN_DEFAULT_PRIORITY

    terminals = {name: definition for name, definition in definitions.items() if definition.is_term}
    for one in given:
        if one.name not in terminals:
            listed = ", ".join(sorted(name for name in terminals if "__" not in name)) or "none"
            message = f"the grammar has no terminal {one.name}; its terminals are {listed}"
            hint = f"write %declare {one.name} in the file, and use it in rules"
            raise GrammarSyntaxError(message, f"terminals[{one.name!r}]", hint)
        definition = terminals[one.name]
        _refuse_users(one, definition.tree, terminals, text)
        if definition.tree is None:
            definition.tree = Tree("expansions", [])
            definition.options = TOKEN_DEFAULT_PRIORITY  # lark's loader gives declared terminals another
        definition.tree.children[:] = [Tree("pattern", [pattern]) for pattern in _patterns(one)]


def _refuse_users(one: GivenTerminal, tree: Any, terminals: Mapping[str, Any], text: GrammarText) -> None:
    """Refuse terminals that are made of a given one."""
    for name, user in terminals.items():
        others = () if tree is None or user.tree is None or user.tree is tree else user.tree.iter_subtrees()
        if any(part is tree for part in others):
            message = f"the terminal {name} is made of {one.name}, for which another grammar is given"
            raise UnsupportedFeature(message, text.definition(name), f"make a rule of {name}")


def _patterns(one: GivenTerminal) -> list[Any]:
    """Lark's patterns of a given terminal, of which any may match."""
    from lark.lexer import PatternRE, PatternStr

    if one.words is not None:
        return [PatternStr(word) for word in one.words]
    if one.pattern is not None:
        return [PatternRE(one.pattern[0], tuple(one.pattern[1]))]
    return [PatternRE(rf"(?:(?#stands for the texts given for {one.name})[\s\S])+")]


class Matcher:
    """Answers lark's dynamic lexer, which asks where a terminal matches, for terminals whose languages are embedded."""

    def __init__(self, given: Iterable[GivenTerminal], others: Callable[..., Any]) -> None:
        """Answer for given terminals; ``others`` is lark's own matcher of all other ones."""
        self._others = others
        self._given = {one.name: one.grammar.node for one in given if not one.is_expression}
        self._last: tuple[str, str, list[int]] = ("", "", [])

    def __call__(self, terminal: Any, text: str, index: int = 0) -> Any:
        """The longest match of a terminal at an index, as one of :mod:`re`, or ``None``.

        Lark asks first for the match in the whole text, and then for those in all beginnings of that match.
        """
        if terminal.name not in self._given:
            return self._others(terminal, text, index)
        name, known, ends = self._last
        rest = text[index:]
        if name != terminal.name or not known.startswith(rest):
            data = rest.encode()
            ends = [len(data[:end].decode()) for end in Reader(data).ends(self._given[terminal.name], 0)]
            self._last = terminal.name, rest, ends
        end = next((end for end in ends if 0 < end <= len(rest)), None)
        return None if end is None else _REST.match(text, index, index + end)
