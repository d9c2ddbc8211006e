"""What lark's own lexer takes: the lexemes of each of its modes, as nodes that exclude each other.

Lark's lexer (``lark.lexer.BasicLexer``) tries its terminals in their order, by one regular expression of alternatives.
The first alternative that matches is taken, as Python's ``re`` prefers it to match, whatever could follow otherwise. So
a lexeme of a terminal is a text that ``re.match`` takes before the text behind it, where no terminal of higher rank
matches: guards say so (:mod:`grammarspec.frontends.regex.preference`), which look past the lexeme's end. A string that
a regular expression of the same priority matches is no alternative of its own: its type is given to lexemes that equal
it (keywords among names).

The contextual lexer has a mode for each set of terminals that a state of the parser accepts; the basic one has only
one. What a terminal sees of the character before it (a lookbehind, ``\\b`` at the beginning) is decided by the class
of that character (:mod:`grammarspec.frontends.regex.before`): each mode has lexemes for each class, and each lexeme
ends in characters of one class.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import cached_property, partial
from math import inf
from typing import Any, Final

from grammarspec.errors import GrammarError, UnsupportedFeature
from grammarspec.frontends.lark.lexeme_parts import LexemeParts, Taken
from grammarspec.frontends.lark.text import GrammarText
from grammarspec.frontends.lark.tree import Pattern
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.before import behind, classes_before, wider_classes
from grammarspec.frontends.regex.charsets import Ranges
from grammarspec.frontends.regex.facts import ANYWHERE, FactTable, Neighbour
from grammarspec.frontends.regex.lower import lexeme, lower
from grammarspec.frontends.regex.patterns import Dialect, parse
from grammarspec.frontends.regex.preference import guarded, head_of, may_both_match, preferred, text_rivals
from grammarspec.frontends.regex.reach import looks_outside
from grammarspec.frontends.regex.tree import EMPTY, NOTHING, Alternation, Chars, Node, Repeat, Sequence, Text
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["IGNORED", "BasicTerminals", "Lexeme", "Lexemes"]

_DECIDED: Final = 1_000
"""Steps of deciding the assertions of a terminal about the character before it."""
_COMPARED: Final = 10
"""Steps of finding out whether two terminals may match at one place."""
_GUARD: Final = 600
"""Steps of the guard of a lexeme against another expression, which is simplified and lowered with the lexeme."""
_ASSERTING: Final = 800
"""The same against an expression that has assertions."""

IGNORED: Final = "%ignore"
"""Stands for the terminals that are passed over."""


@dataclass(frozen=True, eq=False)
class _Terminal:
    """A terminal of lark, and the syntax tree of its expression."""

    name: str
    definition: Any
    tree: Node

    @cached_property
    def is_string(self) -> bool:
        """Whether it is written as a string."""
        return bool(self.definition.pattern.type == "str")


Lexeme = tuple[str, int, int]
"""The name of a terminal, or ``IGNORED``; the node of the texts; and the class of their last character."""


class Lexemes:
    """The lexemes of a grammar's terminals, each made once."""

    def __init__(
        self, definitions: Several[Any], text: GrammarText, flags: int, re_module: Any, builder: GrammarBuilder
    ) -> None:
        """Make nothing yet.

        Args:
            definitions: lark's records of all terminals that may look at the character before them.
            text: the grammar, for positions in it.
            flags: those of :mod:`re` for all terminals.
            re_module: what lark runs the expressions by, ``re`` or ``regex``.

        Raises:
            GrammarError: a terminal's expression is malformed or uses what is refused.
        """
        self.text, self.flags, self.re, self.builder = text, flags, re_module, builder
        self.dialect: Dialect = "python" if re_module is re else "regex"
        self.alphabet = PlainText(builder)
        self.table = FactTable()
        self.trees: dict[str, Node] = {}
        self.terminals: dict[tuple[str, Neighbour | None], _Terminal] = {}
        self.decided: dict[tuple[str, Neighbour], Node] = {}
        self.wider_classes: dict[str, dict[Neighbour, Neighbour]] = {}
        self.runs: dict[_Terminal, _Terminal] = {}
        self.heads: dict[_Terminal, tuple[Ranges, ...]] = {}
        self.rivalries: dict[tuple[_Terminal, _Terminal], bool] = {}
        self.embeddings: dict[tuple[str, str], bool] = {}
        self.preferred_trees: dict[_Terminal, Node] = {}
        self.guarded_trees: dict[tuple[_Terminal, tuple[_Terminal, ...]], Node] = {}
        self.titles: dict[str, tuple[str, str]] = {}
        self.nodes: dict[tuple[object, ...], int] = {}
        self.classes = classes_before([self.tree(definition) for definition in definitions], self.table)
        self.parts = LexemeParts(self.classes, self.table, self.alphabet, builder)

    def modes(self, definitions: Several[Any], ignored: frozenset[str]) -> list[list[Lexeme]]:
        """The lexemes of a mode, for each class of the character before.

        Args:
            definitions: lark's records of the mode's terminals, in the order in which they are tried.
            ignored: the names of the terminals that are passed over. A lexeme is, if one of these was tried; not, if
                its type was given to it since it equals a string.

        Raises:
            GrammarError: as :meth:`terminal`.
            UnsupportedFeature: guards for a terminal would be inexact or too many.
        """
        return [self.mode(definitions, ignored, before) for before in self.classes]

    def mode(self, definitions: Several[Any], ignored: frozenset[str], before: Neighbour) -> list[Lexeme]:
        """The lexemes of a mode behind a character of a class; as :meth:`modes`."""
        terminals = [self.terminal(definition, before) for definition in definitions]
        keywords = {
            name.name: [word for word in terminals if self.is_keyword(word, name)]
            for name in terminals
            if not name.is_string
        }
        embedded = {
            word.name
            for name in terminals
            for word in keywords.get(name.name, ())
            if word.definition.pattern.flags <= name.definition.pattern.flags
        }
        tried = [terminal for terminal in terminals if terminal.name not in embedded]
        found: list[Lexeme] = []
        for place, (terminal, rivals) in enumerate(zip(tried, self.rivals_before(tried), strict=True)):
            with self.builder.budget.at(self.called(terminal.definition)[1]):
                if terminal.name in ignored:
                    passed_over = self.run_of(terminal, tried[:place])
                    found += [(IGNORED, node, last) for _, node, last in self.lexemes(passed_over, rivals, ())]
                else:
                    found += self.lexemes(terminal, rivals, tuple(keywords.get(terminal.name, ())))
        return found

    def run_of(self, ignored: _Terminal, higher: Several[_Terminal]) -> _Terminal:
        """All characters in a row of a terminal that is passed over and has one, where no other is tried between them.

        ``%ignore " "`` passes over a run of blanks one by one, or, just as well, as one lexeme: then a token of many
        blanks leads to one place, and not through as many places as it has blanks.

        Args:
            ignored: the terminal.
            higher: those that are tried before it.

        Returns:
            the terminal itself, if it has longer texts, or one before it may begin within such a run.

        Raises:
            GrammarError: as :meth:`terminal`.
        """
        tree = ignored.tree
        if not isinstance(tree, Chars) and not (isinstance(tree, Text) and len(tree.text) == 1):
            return ignored
        everywhere = (self.terminal(other.definition, before) for other in higher for before in self.classes)
        if any(self.rivals(other, ignored) for other in everywhere):
            return ignored
        known = self.runs.get(ignored)
        if known is None:
            known = self.runs[ignored] = _Terminal(ignored.name, ignored.definition, Repeat(tree, 1, None))
        return known

    def terminal(self, definition: Any, before: Neighbour) -> _Terminal:
        """A terminal by lark's record of it, behind a character of a class: one for all, where it sees none.

        Raises:
            GrammarError: its expression is malformed or uses what is refused, or looks at more of the text before it.
        """
        tree = self.tree(definition)
        before = self.wider(definition, tree)[before]
        decided = self.decided.get((definition.name, before))
        if decided is None:
            decided = self.decided[definition.name, before] = self.behind(definition, tree, before)
        key = definition.name, None if decided is tree else before
        known = self.terminals.get(key)
        if known is None:
            known = self.terminals[key] = _Terminal(definition.name, definition, decided)
        return known

    def wider(self, definition: Any, tree: Node) -> dict[Neighbour, Neighbour]:
        """For each class of the character before, the widest that holds it and that a terminal does not tell apart."""
        known = self.wider_classes.get(definition.name)
        if known is None:
            wider = (
                wider_classes(tree, self.classes, self.table) if tree.asserts else self.classes[:1] * len(self.classes)
            )
            known = self.wider_classes[definition.name] = dict(zip(self.classes, wider, strict=True))
        return known

    def tree(self, definition: Any) -> Node:
        """The syntax tree of a terminal, made once.

        Raises:
            GrammarError: its expression is malformed or uses what is refused.
        """
        known = self.trees.get(definition.name)
        if known is None:
            known = self.trees[definition.name] = self.new_tree(definition)
        return known

    def behind(self, definition: Any, tree: Node, before: Neighbour) -> Node:
        """The syntax tree of a terminal, without assertions about the character before it.

        Raises:
            UnsupportedFeature: it looks at more of the text before it.
        """
        if not tree.asserts:
            return tree
        self.builder.budget.spend(_DECIDED, f"the terminal {definition.name}, behind each character")
        decided = behind(tree, before, self.table)
        outside = looks_outside(decided, before, ANYWHERE, self.table, room_after=inf)
        if outside:
            title, where = self.called(definition)
            message, hint = f"{title} has {outside} of its own text", "say the condition in the rules instead"
            raise UnsupportedFeature(message, where, hint)
        return decided

    def new_tree(self, definition: Any) -> Node:
        """The syntax tree of a terminal.

        Raises:
            GrammarError: its expression is malformed or uses what is refused.
            UnsupportedFeature: it can be empty.
        """
        pattern = definition.pattern
        if pattern.type == "str" and not pattern.flags and not self.flags & re.IGNORECASE:
            return Text(pattern.value)
        title, where = self.called(definition)
        try:
            tree = parse(pattern.to_regexp(), flags=self.flags, dialect=self.dialect)
        except GrammarError as error:
            place = f"{where or title}\n  in its expression, {error.where}"
            raise type(error)(f"{error.message} ({title})", place, error.hint) from None
        if self.table.of(tree).nullable:
            raise UnsupportedFeature(f"{title} can be empty", where, "make it optional where it is used instead")
        return tree

    def called(self, definition: Any) -> tuple[str, str]:
        """What a terminal is called in messages, and where it stands in the grammar, if it does."""
        known = self.titles.get(definition.name)
        if known is None:
            known = self.titles[definition.name] = self.new_title(definition)
        return known

    def new_title(self, definition: Any) -> tuple[str, str]:
        """As :meth:`called`, for the first time."""
        raw = definition.pattern.raw
        if definition.name.startswith("__") or (raw and not self.text.definition(definition.name)):
            return f"the terminal {raw or definition.name}", self.text.literal(raw or "")
        return f"the terminal {definition.name}", self.text.definition(definition.name)

    def is_keyword(self, word: _Terminal, name: _Terminal) -> bool:
        """Whether a string is taken as a lexeme of a regular expression, whose type is then changed."""
        if not word.is_string or word.definition.priority != name.definition.priority:
            return False
        key = word.name, name.name
        known = self.embeddings.get(key)
        if known is None:
            text = word.definition.pattern.value
            found = self.re.match(name.definition.pattern.to_regexp(), text, self.flags)
            known = self.embeddings[key] = found is not None and found[0] == text
        return known

    def rivals_before(self, tried: list[_Terminal]) -> list[tuple[_Terminal, ...]]:
        """For each terminal, those before it that may match where it does.

        Plain texts, of which there may be thousands, are not compared one by one.
        """
        texts = [(place, one.tree.text) for place, one in enumerate(tried) if isinstance(one.tree, Text)]
        among_texts = iter(text_rivals([text for _, text in texts], closed=False))
        others = [place for place, one in enumerate(tried) if not isinstance(one.tree, Text)]
        found = []
        for place, terminal in enumerate(tried):
            if isinstance(terminal.tree, Text):
                places = [texts[i][0] for i in next(among_texts)]
                places += [
                    other for other in others[: bisect_left(others, place)] if self.rivals(tried[other], terminal)
                ]
            else:
                places = [other for other in range(place) if self.rivals(tried[other], terminal)]
            found.append(tuple([tried[other] for other in sorted(places)]))
        return found

    def rivals(self, higher: _Terminal, lower: _Terminal) -> bool:
        """Whether both terminals may match at one place."""
        known = self.rivalries.get((higher, lower))
        if known is None:
            self.builder.budget.spend(_COMPARED, "the terminals, each compared with those before it")
            known = self.rivalries[higher, lower] = may_both_match(self.head(higher), self.head(lower))
        return known

    def head(self, terminal: _Terminal) -> tuple[Ranges, ...]:
        """The sets of the first characters of a terminal."""
        known = self.heads.get(terminal)
        if known is None:
            known = self.heads[terminal] = head_of(terminal.tree, self.table)
        return known

    def lexemes(self, terminal: _Terminal, rivals: tuple[_Terminal, ...], words: tuple[_Terminal, ...]) -> list[Lexeme]:
        """The lexemes of an alternative of the lexer: those of a terminal, and those of the strings among them.

        Raises:
            UnsupportedFeature: as :meth:`mode`.
        """
        tree = self.guarded(terminal, rivals)
        if tree is NOTHING:
            return []
        key: tuple[object, ...] = (terminal, rivals)
        if not words and len(self.classes) == 1:
            return [(terminal.name, self.once(key, lambda: lexeme(tree, self.builder, self.alphabet)), 0)]
        taken = self.parts.taken(tree)
        trees = tuple([word.tree for word in words])
        found = self.by_last(terminal, (*key, "but", words), partial(self.others, taken, trees))
        alike: dict[str, list[_Terminal]] = {}  # those so far, by what is the same of all that may equal one text
        for word in words:
            earlier = alike.setdefault(word.definition.pattern.value.casefold(), [])
            if not self.always_equal(earlier, word):
                equal = partial(self.equal_to, taken, word.tree, tuple([other.tree for other in earlier]))
                found += self.by_last(word, (*key, "as", word, tuple(earlier)), equal)
            earlier.append(word)
        return found

    def guarded(self, terminal: _Terminal, rivals: tuple[_Terminal, ...]) -> Node:
        """The syntax tree of a terminal that is tried after others, with guards; made once.

        Raises:
            UnsupportedFeature: as :meth:`mode`.
        """
        known = self.guarded_trees.get((terminal, rivals))
        if known is None:
            known = self.guarded_trees[terminal, rivals] = self.new_guarded(terminal, rivals)
        return known

    def new_guarded(self, terminal: _Terminal, rivals: tuple[_Terminal, ...]) -> Node:
        """As :meth:`guarded`, for the first time.

        Raises:
            UnsupportedFeature: as :meth:`mode`.
        """
        steps = sum(
            _ASSERTING if rival.tree.asserts else _GUARD for rival in rivals if not isinstance(rival.tree, Text)
        )
        self.builder.budget.spend(steps, f"guards of {terminal.name} against {len(rivals)} other terminals")
        try:
            guard = guarded([rival.tree for rival in rivals], terminal.tree, self.table)
            if guard is NOTHING:
                return NOTHING
            tree = self.preferred_trees.get(terminal)
            if tree is None:
                tree = self.preferred_trees[terminal] = preferred(terminal.tree, self.table, ANYWHERE)
        except UnsupportedFeature as error:
            title, where = self.called(terminal.definition)
            raise UnsupportedFeature(f"{error.message} ({title})", where, error.hint) from None
        return tree if guard is EMPTY else Sequence((guard, tree))

    def by_last(self, terminal: _Terminal, key: tuple[object, ...], make: Callable[[int | None], int]) -> list[Lexeme]:
        """The lexemes of a terminal, sorted by the class of their last character.

        Args:
            make: makes a node of them, given one of texts that all of them end; ``None``: they end as they may.
        """
        return [
            (terminal.name, self.once((*key, ending), partial(make, ending)), last)
            for ending, last in self.parts.endings(terminal.tree)
        ]

    def always_equal(self, words: Several[_Terminal], word: _Terminal) -> bool:
        """Whether one of some strings equals every text that a string equals."""
        text, flags = word.definition.pattern.value, word.definition.pattern.flags
        patterns = [other.definition.pattern for other in words]
        return any(pattern.value == text and pattern.flags >= flags for pattern in patterns)

    def once(self, key: tuple[object, ...], make: Callable[[], int]) -> int:
        """A node that is made once."""
        known = self.nodes.get(key)
        if known is None:
            known = self.nodes[key] = make()
        return known

    def words(self, trees: tuple[Node, ...]) -> int:
        """Any of these texts."""
        return lower(trees[0] if len(trees) == 1 else Alternation(trees), self.builder, self.alphabet)

    def others(self, taken: Taken, words: tuple[Node, ...], ending: int | None) -> int:
        """The lexemes that are none of these texts, and end in a text of ``ending``."""
        builder = self.builder
        others = [builder.complement(self.words(words))] if words else []
        return self.parts.lexeme(taken, [taken.body, *others] if taken.body is not None else others, ending)

    def equal_to(self, taken: Taken, word: Node, others: tuple[Node, ...], ending: int | None) -> int:
        """The lexemes that are this text, and none of the others, and end in a text of ``ending``."""
        texts = [self.words((word,))]
        if others:
            texts.append(self.builder.complement(self.words(others)))
        # of texts that differ in case, some may be lexemes; behind some characters, a terminal may have fewer of them
        if taken.body is not None and (not isinstance(word, Text) or len(self.classes) > 1):
            texts.append(taken.body)
        return self.parts.lexeme(taken, texts, ending)


class BasicTerminals:
    """The nodes of terminals as the basic lexer takes them, whatever the parser expects."""

    def __init__(self, parser: Any, text: GrammarText, builder: GrammarBuilder) -> None:
        """Make the lexemes of a grammar.

        Args:
            parser: a ``lark.Lark`` with ``lexer="basic"``.
            text: the grammar, for positions in it.

        Raises:
            GrammarError: as :meth:`Lexemes.mode`.
        """
        self.builder, self.look_past_their_ends = builder, True
        configuration = parser.parser.lexer_conf
        definitions = parser.parser.lexer.terminals
        lexemes = Lexemes(definitions, text, configuration.g_regex_flags, configuration.re_module, builder)
        found: dict[str, list[tuple[int, int, int]]] = {}
        for before, mode in enumerate(lexemes.modes(definitions, frozenset(configuration.ignore))):
            for name, node, last in mode:
                found.setdefault(name, []).append((before, node, last))
        if len(lexemes.classes) > 1:
            units = {name: [builder.lexemes(placed)] for name, placed in found.items()}
        else:
            units = {name: [node for _, node, _ in placed] for name, placed in found.items()}
        self.skipped_alone = units.get(IGNORED, [])
        self.trailing = builder.repeat(builder.alt(*self.skipped_alone), 0, None)
        self.nodes = {name: builder.seq(self.trailing, builder.alt(*nodes)) for name, nodes in units.items()}
        # of several terminals of one pattern, lark takes the last one defined for the pattern in a rule
        self.names = {(item.pattern.to_regexp(), item.pattern.type == "str"): item.name for item in parser.terminals}

    def named(self, name: str) -> int:
        """A terminal by its name, with what is ignored before it."""
        return self.nodes.get(name, self.builder.nothing)

    def literal(self, pattern: Pattern) -> int:
        """A string or regular expression within a rule, with what is ignored before it."""
        return self.named(self.names.get((pattern.regex, pattern.is_string), ""))

    def any_of(self, patterns: Several[Pattern]) -> int:
        """One or several strings, each a terminal of its own, with what is ignored before it."""
        return self.builder.alt(*[self.literal(pattern) for pattern in patterns])
