"""Grammars as values: languages of text, what a text of one means, and the operators that make new ones.

A :class:`Grammar` is a language together with a reading: ``grammar.parse(text)`` is a value of its type parameter. The
front-ends make simple ones (:func:`literal`, :func:`choice`, :func:`grammarspec.regex`, ...), operators combine them.
A grammar wraps an expression, whose nodes are in :mod:`grammarspec.grammars.operators`, and adds its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError
from numbers import Integral
from typing import Any, Generic, NewType, TypeVar, get_origin, overload

from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import GrammarSyntaxError, Unsatisfiable
from grammarspec.grammars import marks, reading
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.operators import (
    Call,
    Captures,
    Complement,
    Concatenation,
    Fields,
    Intersection,
    Leaf,
    Mapped,
    Named,
    Node,
    Option,
    Repetition,
    Union,
    too_deep,
)
from grammarspec.grammars.reading import Match
from grammarspec.grammars.writing.converted import Converted
from grammarspec.imports import importing
from grammarspec.positions import lone_surrogate

__all__ = ["Grammar", "choice", "literal", "read_types_by", "special", "text"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class Grammar(Generic[T_co]):
    """A language over UTF-8 text, independent of any vocabulary, whose texts mean values of type ``T_co``.

    Immutable, hashable, and picklable if the functions given to :meth:`map` are. Two grammars are equal if they are
    built alike; grammars that describe the same language in different ways are not. ``repr`` is an expression that
    makes the grammar again.

    Operators: ``a + b`` (one after the other), ``a | b`` (either), ``a & b`` (texts of both, read as ``a`` does) and
    ``~a`` (all other texts). The last two take regular languages: regular expressions, choices, literals, and what the
    operators make of these. As an operand, a ``str`` stands for :func:`literal` of it, what ``re.compile`` returns for
    :func:`grammarspec.regex` of it, and a class (``int``, ``list[int]``, a model) for :func:`grammarspec.grammar` of
    it; type checkers need that call to be written for other types, and for a type to the left of ``|``.

    Attributes:
        node: the expression that it wraps, for the other modules of grammarspec.
    """

    __slots__ = ("__weakref__", "node")

    node: Node

    def __init__(
        self,
        ir: Ir,
        *,
        read: Callable[[str], T_co] | None = None,
        call: Call | str | None = None,
        why_empty: Callable[[], Unsatisfiable] | None = None,
        captures: Captures | None = None,
    ) -> None:
        """A grammar that is not made of others.

        Args:
            ir: the language in the compiler's form.
            read: makes a value of a text of the language; by default a text means itself.
            call: the call of a function of :mod:`grammarspec` that made it, or the text of such a call, for ``repr``.
            why_empty: makes the error that says why the language has no texts; it is only called if it has none.
            captures: finds the named parts of a text; by default there are none.
        """
        object.__setattr__(self, "node", Leaf(ir, read, call, why_empty, captures))

    @staticmethod
    def of(node: Node) -> Grammar[Any]:
        """The grammar of an expression."""
        grammar: Grammar[Any] = Grammar.__new__(Grammar)
        object.__setattr__(grammar, "node", node)
        return grammar

    # ------------------------------------------------------------------ as a value
    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"grammars are immutable: cannot assign {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"grammars are immutable: cannot delete {name!r}")

    def __repr__(self) -> str:
        try:
            return repr(self.node)
        except RecursionError:
            return f"<{type(self.node).__name__} of operators that are nested too deeply to be shown>"

    def __eq__(self, other: object) -> bool:
        try:
            return self.node == other.node if isinstance(other, Grammar) else NotImplemented
        except RecursionError:
            raise too_deep() from None

    def __hash__(self) -> int:
        return hash(self.node)

    def __reduce__(self) -> tuple[Callable[[Node], Grammar[Any]], tuple[Node]]:
        return Grammar.of, (self.node,)

    def to_bytes(self) -> bytes:
        """The language in a portable form that carries its version; :meth:`from_bytes` reads it back."""
        return self.ir.to_bytes()

    @staticmethod
    def from_bytes(data: bytes) -> Grammar[str]:
        """Read what :meth:`to_bytes` wrote: the same language, whose texts mean themselves.

        Raises:
            GrammarError: ``data`` is damaged, or of a version that this release cannot read.
        """
        return Grammar(Ir.from_bytes(data))

    def to_gbnf(self) -> Converted:
        """The language in GBNF, the notation of llama.cpp, in a form that XGrammar reads, too.

        What regular parts are made of by ``&``, ``~`` and lookarounds is written as the rules of an automaton, if that
        is small. What GBNF cannot say is left out, so that no text is lost, and listed in :attr:`.Converted.lost`. If
        that is empty, :func:`grammarspec.gbnf` of the text has the very language.

        Raises:
            Unsatisfiable: the language is empty.
            UnsupportedFeature: it has bytes that are no text, a special token whose name is not as ``<name>``, or, of a
                ``.lark`` file, a parser's tables or terminals that depend on the text behind them; or as :attr:`ir`.
            GrammarError: as :attr:`ir`.
        """
        with importing:
            from grammarspec.grammars.writing.gbnf import to_gbnf

        return to_gbnf(self.ir)

    def to_llguidance(self) -> Converted:
        """The language in llguidance's variant of lark's syntax, as :meth:`to_gbnf`.

        A regular part is a lexeme where llguidance's lexer, which takes as much as it can, cannot take too much; else
        the whole grammar is written with lexemes of one character each.

        Raises:
            Unsatisfiable, UnsupportedFeature, GrammarError: as :meth:`to_gbnf`.
        """
        with importing:
            from grammarspec.grammars.writing.llguidance import to_llguidance

        return to_llguidance(self.ir)

    @property
    def ir(self) -> Ir:
        """The compiler's hash-consed form of the language.

        Raises:
            UnsupportedFeature: ``&`` or ``~`` has an operand that is not regular.
            LimitExceeded: operators are nested too deeply.
            OverflowError: :meth:`repeat` was given a number of 2**32 - 1 or more.
        """
        return self.node.ir

    # ------------------------------------------------------------------ texts
    def matches(self, text: str) -> bool:
        """Whether the text is in the language.

        Raises:
            GrammarError: the grammar cannot be compiled (see :func:`grammarspec.compile`).
            TypeError: ``text`` is no string.
        """
        return reading.matches(self.node, _text_in("matches", text))

    def parse(self, text: str) -> T_co:
        """What a text of the language means.

        Where a text can be read in several ways, the parts of a sequence take as much as they can from the left, and of
        alternatives the first that fits is taken.

        Raises:
            NoMatch: the text is not in the language; the error shows where it leaves it, and what may stand there.
            LimitExceeded: values in the text are nested more deeply than can be read.
            GrammarError: the grammar cannot be compiled (see :func:`grammarspec.compile`).
            TypeError: ``text`` is no string.
            Exception: whatever a function given to :meth:`map`, or a validator of a type, raises.
        """
        return self.match(_text_in("parse", text)).value

    def match(self, text: str) -> Match[T_co]:
        """What a text of the language means, and what its named parts mean.

        Raises:
            NoMatch, GrammarError and others: as :meth:`parse`.
        """
        return reading.match(self.node, _text_in("match", text))

    def match_marked(self, data: bytes) -> Match[T_co]:
        """What a text in which special tokens are marked means, and what its named parts mean.

        Args:
            data: the text in UTF-8, with marks (:mod:`grammarspec.grammars.marks`), as
                :meth:`grammarspec.Vocabulary.marked` makes it of tokens.

        Raises:
            NoMatch, GrammarError and others: as :meth:`parse`.
            TypeError: ``data`` is no bytes.
        """
        if not isinstance(data, bytes):
            raise TypeError(f"match_marked() takes bytes, not {data!r:.60}")
        return reading.match_marked(self.node, data)

    def sample(self, seed: int | None = None, *, max_bytes: int = 200) -> str:
        """A random text of the language, for trying things out: the same for the same seed.

        The distribution is not specified. After ``max_bytes`` bytes the text is completed in the shortest way.

        Raises:
            GrammarError: the grammar cannot be compiled (see :func:`grammarspec.compile`).
            TypeError: ``seed`` or ``max_bytes`` is no whole number.
        """
        with importing:
            from grammarspec.grammars.examples import sample

        if seed is not None:
            _check_whole("seed", seed)
        _check_whole("max_bytes", max_bytes)
        return sample(self.node, seed, max_bytes)

    # ------------------------------------------------------------------ operators
    def __add__(self, other: Grammar[Any] | str | re.Pattern[str] | type[Any]) -> Grammar[str]:
        return Grammar.of(Concatenation(self.node, _node(other))) if _is_operand(other) else NotImplemented

    def __radd__(self, other: str | re.Pattern[str] | type[Any]) -> Grammar[str]:
        return Grammar.of(Concatenation(_node(other), self.node)) if _is_operand(other) else NotImplemented

    @overload
    def __or__(self, other: str | re.Pattern[str]) -> Grammar[T_co | str]: ...
    @overload
    def __or__(self, other: Grammar[U]) -> Grammar[T_co | U]: ...
    @overload
    def __or__(self, other: type[U]) -> Grammar[T_co | U]: ...
    def __or__(self, other: Any) -> Grammar[Any]:
        return Grammar.of(Union(self.node, _node(other))) if _is_operand(other) else NotImplemented

    @overload
    def __ror__(self, other: str | re.Pattern[str]) -> Grammar[str | T_co]: ...
    @overload
    def __ror__(self, other: type[U]) -> Grammar[U | T_co]: ...
    def __ror__(self, other: Any) -> Grammar[Any]:
        return Grammar.of(Union(_node(other), self.node)) if _is_operand(other) else NotImplemented

    def __and__(self, other: Grammar[Any] | str | re.Pattern[str] | type[Any]) -> Grammar[T_co]:
        return Grammar.of(Intersection(self.node, _node(other))) if _is_operand(other) else NotImplemented

    @overload
    def __rand__(self, other: str | re.Pattern[str]) -> Grammar[str]: ...
    @overload
    def __rand__(self, other: type[U]) -> Grammar[U]: ...
    def __rand__(self, other: Any) -> Grammar[Any]:
        return Grammar.of(Intersection(_node(other), self.node)) if _is_operand(other) else NotImplemented

    def __invert__(self) -> Grammar[str]:
        return Grammar.of(Complement(self.node))

    def repeat(
        self, least: int = 0, most: int | None = None, *, sep: Grammar[Any] | str | re.Pattern[str] | type[Any] = ""
    ) -> Grammar[list[T_co]]:
        """``least`` to ``most`` texts (``None``: any number), ``sep`` between them; means the list of their values.

        Named parts within it, in ``sep`` too, have lists of values (see :meth:`named`).

        Raises:
            ValueError: the numbers are negative, or ``most`` is below ``least``.
            TypeError: ``sep`` is neither a grammar nor a text nor a type, or a number is no whole number.
        """
        _check_whole("least", least)
        if most is not None:
            _check_whole("most", most)
        if least < 0 or (most is not None and most < least):
            raise ValueError(f"cannot repeat from {least} to {most} times")
        separator = _node(sep)
        return Grammar.of(Repetition(self.node, least, most, None if separator == _node("") else separator))

    def optional(self) -> Grammar[T_co | None]:
        """A text of this language or the empty text, which means ``None``."""
        return Grammar.of(Option(self.node))

    def named(self, name: str) -> Grammar[T_co]:
        """The same, and :meth:`match` has its value under this name; within a repetition, a list of values.

        Alternatives may share a name. Parts that one text has both must not: joining them raises ``ValueError``.

        Raises:
            ValueError: a part within this one has the name.
        """
        return Grammar.of(Named(self.node, name))

    def fields(self) -> Grammar[dict[str, Any]]:
        """The same language; the value of a text is a dict of its named parts, which are not captured outside."""
        return Grammar.of(Fields(self.node))

    def map(self, function: Callable[[T_co], U]) -> Grammar[U]:
        """The same language; what its texts mean goes through a function, whose errors :meth:`parse` lets through."""
        return Grammar.of(Mapped(self.node, function))


# ---------------------------------------------------------------------- operands
_type_grammar: Callable[[Any], Grammar[Any]] | None = None


def read_types_by(type_grammar: Callable[[Any], Grammar[Any]]) -> None:
    """Register what makes the grammar of a Python type that is an operand (``word + int``).

    The package does so when it is imported: types are the business of a front-end, and front-ends import this module.
    """
    global _type_grammar  # noqa: PLW0603  # the one registration
    _type_grammar = type_grammar


def _is_operand(value: object) -> bool:
    """Whether a value is a grammar, or stands for one: a text, a compiled regular expression, or a type."""
    return isinstance(value, Grammar | str | type | NewType | re.Pattern | None) or (
        get_origin(value) is not None or type(value).__name__ == "TypeAliasType"  # of typing, or its extensions
    )


def _node(value: Any) -> Node:
    """The expression of an operand."""
    if isinstance(value, str):
        return literal(value).node
    if isinstance(value, Grammar):
        return value.node
    if not _is_operand(value) or _type_grammar is None:
        raise TypeError(f"expected a grammar, a text or a type, not {value!r:.60}")
    return _type_grammar(value).node


# ---------------------------------------------------------------------- simple grammars
def literal(text: str) -> Grammar[str]:
    """Exactly this text.

    Raises:
        TypeError: ``text`` is no string.
        GrammarSyntaxError: the text holds a lone surrogate, which UTF-8 cannot spell.
    """
    if not isinstance(text, str):
        raise TypeError(f"literal() takes a text, not {type(text).__name__}")
    builder = GrammarBuilder()
    return Grammar(builder.build(builder.literal(_encoded(text))), call=Call(literal, (text,)))


def choice(texts: Iterable[str]) -> Grammar[str]:
    """Exactly one of these texts. Large lists are fine: 100,000 texts share one minimised trie.

    Raises:
        TypeError: ``texts`` is a single string, or holds something that is not a string.
        Unsatisfiable: ``texts`` is empty.
        GrammarSyntaxError: a text holds a lone surrogate, which UTF-8 cannot spell.
    """
    if isinstance(texts, str | bytes):
        raise TypeError("choice() takes several texts, not a single one: write choice([text])")
    texts = list(texts)
    encoded: list[bytes] = []
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"choice() takes texts, but element {number} is of type {type(text).__name__}")
        encoded.append(_encoded(text, f"text {number}, "))
    if not encoded:
        raise Unsatisfiable("a choice of no texts has no member", hint="give choice() at least one text")
    builder = GrammarBuilder()
    return Grammar(builder.build(builder.words(encoded)), call=Call(choice, (texts,)))


def special(name: str) -> Grammar[str]:
    """A special token of the model, such as ``<|eot|>``: that token, and no text that spells its name.

    :attr:`grammarspec.Vocabulary.special_tokens` lists those of a model; a grammar with another one cannot be compiled
    for it. In a text that is given to ``parse``, the token's name stands for the token.

    Raises:
        TypeError: the name is no string.
        ValueError: the name is empty.
        GrammarSyntaxError: the name holds a lone surrogate, which UTF-8 cannot spell.
    """
    if not isinstance(name, str):
        raise TypeError(f"special() takes the name of a token, not {name!r:.60}")
    if not name:
        raise ValueError("a special token has a name")
    _encoded(name)
    builder = GrammarBuilder()
    node = builder.literal(marks.mark(name))
    return Grammar(builder.build(node), call=Call(special, (name,)))


def _text_in(call: str, text: object) -> str:
    """What a method that reads a text was given.

    Raises:
        TypeError: it is no string.
    """
    if not isinstance(text, str):
        raise TypeError(f"{call}() takes a text, not {text!r:.60}")
    return text


def _check_whole(name: str, value: object) -> None:
    """Raise an error unless the value is a whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} is a whole number, not {value!r:.60}")


def text(*, until: str | None = None, max_chars: int | None = None) -> Grammar[str]:
    """Any text; without ``until`` in it, and of at most ``max_chars`` code points, if these are given.

    Raises:
        ValueError: ``until`` is empty, or ``max_chars`` is negative.
        OverflowError: ``max_chars`` is 2**32 - 1 or more.
        GrammarSyntaxError: ``until`` holds a lone surrogate, which UTF-8 cannot spell.
        TypeError: ``until`` is no string, or ``max_chars`` no whole number.
    """
    if until is not None and not isinstance(until, str):
        hint = "the text before the first of several is gs.text(until=a) & gs.text(until=b)"
        raise TypeError(f"until is one text, not {until!r:.60}\n  hint: {hint}")
    if max_chars is not None:
        _check_whole("max_chars", max_chars)
    if until == "" or (max_chars is not None and max_chars < 0):
        raise ValueError("until must not be empty, nor max_chars negative")
    builder = GrammarBuilder()
    node = builder.any_text(max_chars)
    if until is not None:
        within = builder.seq(builder.anything, builder.literal(_encoded(until)), builder.anything)
        node = builder.both(node, builder.complement(within))
    options = {"until": until, "max_chars": max_chars}
    return Grammar(builder.build(builder.terminal(node)), call=Call(text, (), options))


def _encoded(text: str, where: str = "") -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise GrammarSyntaxError(lone_surrogate(error), where=f"{where}character {error.start}") from None
