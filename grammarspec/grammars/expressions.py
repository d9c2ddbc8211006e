"""Grammars as values: languages of text, what a text of one means, and the operators that make new ones.

A :class:`Grammar` is a language together with a reading: ``grammar.parse(text)`` is a value of its type parameter. The
front-ends make simple ones (:func:`literal`, :func:`choice`, :func:`grammarspec.regex`, ...), operators combine them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import FrozenInstanceError
from functools import cached_property
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, NewType, TypeVar, get_origin, overload

from grammarspec import _compiler
from grammarspec.errors import GrammarSyntaxError, Unsatisfiable, UnsupportedFeature
from grammarspec.grammars import marks
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import over_bytes

if TYPE_CHECKING:
    from grammarspec.grammars.reading import Match

__all__ = ["Grammar", "choice", "literal", "special", "text"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

_SUM, _AND, _OR = range(3)  # how tightly the operators bind, as in Python: + before & before |


class Grammar(Generic[T_co]):
    """A language over UTF-8 text, independent of any vocabulary, whose texts mean values of type ``T_co``.

    Immutable, hashable, picklable (what :meth:`map` was given permitting). Two grammars are equal when they are built
    alike, which is finer than describing the same language. ``repr`` is an expression that makes the grammar again.

    Operators: ``a + b`` (one after the other), ``a | b`` (either), ``a & b`` (texts of both, read as ``a`` does) and
    ``~a`` (all other texts). The last two take regular languages: regular expressions, choices, literals, and what the
    operators make of these. A ``str`` stands for :func:`literal`, and a class (``int``, ``list[int]``, a model) for
    :func:`grammarspec.grammar` of it; type checkers want that spelled out for other types, and left of ``|``.

    Attributes:
        ir: the compiler's hash-consed form.
    """

    _binds = _SUM
    _read: Callable[[str], Any] | None
    _call: tuple[str, tuple[Any, ...], dict[str, Any]] | str | None

    def __init__(
        self,
        ir: _compiler.Grammar,
        *,
        read: Callable[[str], T_co] | None = None,
        call: tuple[str, tuple[Any, ...], dict[str, Any]] | str | None = None,
    ) -> None:
        """A grammar that is not made of others.

        Args:
            read: makes a value of a text of the language; by default a text means itself.
            call: which function of :mod:`grammarspec` made it, of which arguments and options, or all that as text:
                what ``repr`` says.
        """
        self.__dict__.update(ir=ir, _read=read, _call=call)

    # ------------------------------------------------------------------ as a value
    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"grammars are immutable: cannot assign {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"grammars are immutable: cannot delete {name!r}")

    def __repr__(self) -> str:
        if isinstance(self._call, str):
            return self._call
        if self._call is None:
            return f"<Grammar {hash(self.ir) & 0xFFFF_FFFF_FFFF_FFFF:016x}>"
        name, arguments, options = self._call
        parameters = signature(getattr(import_module("grammarspec"), name)).parameters
        said = [repr(argument) for argument in arguments]
        said += [f"{option}={value!r}" for option, value in options.items() if value != parameters[option].default]
        return f"gs.{name}({', '.join(said)})"

    def _key(self) -> tuple[Any, ...]:
        return (self._read,)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammar):
            return NotImplemented
        return type(self) is type(other) and self.ir == other.ir and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self.ir)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name not in ("_bytes", "_special")}
        if "_call" in state:
            state["_call"] = repr(self)  # its arguments need not be picklable
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def to_bytes(self) -> bytes:
        """The language in a portable form that carries its version; :meth:`from_bytes` reads it back."""
        return self.ir.to_bytes()

    @staticmethod
    def from_bytes(data: bytes) -> Grammar[str]:
        """Read what :meth:`to_bytes` wrote: the same language, whose texts mean themselves.

        Raises:
            GrammarError: ``data`` is damaged, or of a version that this release cannot read.
        """
        return Grammar(_compiler.Grammar.from_bytes(data))

    # ------------------------------------------------------------------ the language
    @cached_property
    def ir(self) -> _compiler.Grammar:
        builder = GrammarBuilder()
        try:
            return builder.build(self._lower(builder))
        except UnsupportedFeature:
            for operand in self._operands():
                _ = operand.ir  # what is wrong within it, its own error says
            if isinstance(self, _Boolean):
                self._check_regular()
            raise

    def _lower(self, builder: GrammarBuilder) -> int:
        return builder.embed(self.ir)

    @cached_property
    def _bytes(self) -> _compiler.Constraint:
        """The grammar compiled over single bytes."""
        return over_bytes(self.ir)

    @cached_property
    def _special(self) -> frozenset[str]:
        """The names of the special tokens in its texts."""
        return frozenset(name for data in self.ir.literals_with(marks.BEGIN) for name in marks.marked_names(data))

    def _operands(self) -> Sequence[Grammar[Any]]:
        return ()

    # ------------------------------------------------------------------ texts
    def matches(self, text: str) -> bool:
        """Whether the text is in the language.

        Raises:
            GrammarError: the grammar cannot be compiled (see :func:`grammarspec.compile`).
        """
        try:
            data = marks.with_marks(text, self._special)
            matcher = self._bytes.matcher()
        except (UnicodeEncodeError, Unsatisfiable):  # a lone surrogate is in no text of any language
            return False
        return matcher.accept_tokens(data) == len(data) and matcher.is_accepting

    def parse(self, text: str) -> T_co:
        """What a text of the language means.

        Where a text can be read in several ways, the parts of a sequence take as much as they can from the left, and of
        alternatives the first that fits is taken.

        Raises:
            NoMatch: the text is not in the language; the error shows where it leaves it, and what may stand there.
        """
        return self.match(text).value

    def match(self, text: str) -> Match[T_co]:
        """What a text of the language means, and what its named parts do; raises as :meth:`parse` does."""
        from grammarspec.grammars.reading import match

        return match(self, text)

    def sample(self, seed: int | None = None, *, max_bytes: int = 200) -> str:
        """Some text of the language, the same for the same seed, for trying things out (by no particular law).

        After ``max_bytes`` bytes it goes on in the shortest way.
        """
        from grammarspec.grammars.reading import sample

        return sample(self, seed, max_bytes)

    # ------------------------------------------------------------------ operators
    def __add__(self, other: Grammar[Any] | str | type[Any]) -> Grammar[str]:
        return Concatenation(self, _grammar(other)) if _is_operand(other) else NotImplemented

    def __radd__(self, other: str | type[Any]) -> Grammar[str]:
        return Concatenation(_grammar(other), self) if _is_operand(other) else NotImplemented

    @overload
    def __or__(self, other: str) -> Grammar[T_co | str]: ...
    @overload
    def __or__(self, other: Grammar[U]) -> Grammar[T_co | U]: ...
    @overload
    def __or__(self, other: type[U]) -> Grammar[T_co | U]: ...
    def __or__(self, other: Any) -> Grammar[Any]:
        return Union(self, _grammar(other)) if _is_operand(other) else NotImplemented

    @overload
    def __ror__(self, other: str) -> Grammar[str | T_co]: ...
    @overload
    def __ror__(self, other: type[U]) -> Grammar[U | T_co]: ...
    def __ror__(self, other: Any) -> Grammar[Any]:
        return Union(_grammar(other), self) if _is_operand(other) else NotImplemented

    def __and__(self, other: Grammar[Any] | str | type[Any]) -> Grammar[T_co]:
        return Intersection(self, _grammar(other)) if _is_operand(other) else NotImplemented

    @overload
    def __rand__(self, other: str) -> Grammar[str]: ...
    @overload
    def __rand__(self, other: type[U]) -> Grammar[U]: ...
    def __rand__(self, other: Any) -> Grammar[Any]:
        return Intersection(_grammar(other), self) if _is_operand(other) else NotImplemented

    def __invert__(self) -> Grammar[str]:
        return Complement(self)

    def repeat(
        self, least: int = 0, most: int | None = None, *, sep: Grammar[Any] | str | type[Any] = ""
    ) -> Grammar[list[T_co]]:
        """``least`` to ``most`` texts (``None``: any number), ``sep`` between them; means the list of their values.

        What is named within, in ``sep`` too, has a list of values (see :meth:`named`).

        Raises:
            ValueError: the numbers are negative, or ``most`` is below ``least``.
        """
        if least < 0 or (most is not None and most < least):
            raise ValueError(f"cannot repeat from {least} to {most} times")
        return Repetition(self, least, most, _grammar(sep))

    def optional(self) -> Grammar[T_co | None]:
        """A text of this language or the empty text, which means ``None``."""
        return Option(self)

    def named(self, name: str) -> Grammar[T_co]:
        """The same, and :meth:`match` tells its value under this name; within a repetition, a list of them."""
        return Named(self, name)

    def fields(self) -> Grammar[dict[str, Any]]:
        """The same language; a text means what the named parts in it mean, by their names (which end here)."""
        return Fields(self)

    def map(self, function: Callable[[T_co], U]) -> Grammar[U]:
        """The same language; what its texts mean goes through a function (whose errors :meth:`parse` lets through)."""
        return Mapped(self, function)


def _is_operand(value: object) -> bool:
    """A grammar, or what stands for one: a text, or a type."""
    return isinstance(value, Grammar | str | type | NewType | None) or (
        get_origin(value) is not None or type(value).__name__ == "TypeAliasType"  # of typing, or its extensions
    )


def _grammar(value: Any) -> Grammar[Any]:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, Grammar):
        return value
    if not _is_operand(value):
        raise TypeError(f"expected a grammar, a text or a type, not {value!r:.60}")
    from grammarspec.frontends.types.python import grammar

    return grammar(value)


class _Combined(Grammar[T_co]):
    """A grammar made of others."""

    def __init__(self, *operands: Grammar[Any]) -> None:
        self.__dict__["operands"] = operands

    operands: tuple[Grammar[Any], ...]

    def _key(self) -> tuple[Any, ...]:
        return self.operands

    def _operands(self) -> Sequence[Grammar[Any]]:
        return self.operands

    def _joined(self, sign: str) -> str:
        parts = []
        for i, operand in enumerate(self.operands):
            loose = operand._binds > self._binds or (i > 0 and operand._binds == self._binds != _SUM)
            nested = i > 0 and type(operand) is type(self)
            parts.append(f"({operand!r})" if loose or nested else repr(operand))
        return f" {sign} ".join(parts)


class Concatenation(_Combined[str]):
    def __repr__(self) -> str:
        return self._joined("+")

    def _lower(self, builder: GrammarBuilder) -> int:
        return builder.seq(*(operand._lower(builder) for operand in self.operands))


class Union(_Combined[T_co]):
    _binds = _OR

    def __repr__(self) -> str:
        return self._joined("|")

    def _lower(self, builder: GrammarBuilder) -> int:
        return builder.alt(*(operand._lower(builder) for operand in self.operands))


class _Boolean(_Combined[T_co]):
    """Takes regular languages only."""

    _sign: str

    def _check_regular(self) -> None:
        """Refuse an operand that is not regular, naming it."""
        for operand in self.operands:
            builder = GrammarBuilder()
            try:
                builder.build(builder.complement(operand._lower(builder)))
            except UnsupportedFeature:
                why = "which has rules that call themselves or remember what came before"
                hint = "& and ~ take regular languages: regular expressions, choices, and what operators make of these"
                raise UnsupportedFeature(f"{self._sign} of {operand!r:.80}, {why}", f"{self!r:.100}", hint) from None


class Intersection(_Boolean[T_co]):
    _binds = _AND
    _sign = "&"

    def __repr__(self) -> str:
        return self._joined("&")

    def _lower(self, builder: GrammarBuilder) -> int:
        return builder.both(*(operand._lower(builder) for operand in self.operands))


class _Unary(_Combined[T_co]):
    """Made of one grammar."""

    @property
    def inner(self) -> Grammar[Any]:
        return self.operands[0]

    def _called(self) -> str:
        """The grammar as what a method or ``~`` is called on."""
        simple = type(self.inner) not in (Concatenation, Union, Intersection, Complement)
        return repr(self.inner) if simple else f"({self.inner!r})"


class Complement(_Unary[str], _Boolean[str]):
    _sign = "~"

    def __repr__(self) -> str:
        return f"~{self._called()}"

    def _lower(self, builder: GrammarBuilder) -> int:
        return builder.both(_any_text(builder), builder.complement(self.inner._lower(builder)))


class Repetition(_Unary[list[Any]]):
    def __init__(self, inner: Grammar[Any], least: int, most: int | None, separator: Grammar[Any]) -> None:
        super().__init__(inner, separator)
        self.__dict__.update(least=least, most=most)

    least: int
    most: int | None

    @property
    def separator(self) -> Grammar[Any]:
        return self.operands[1]

    def __repr__(self) -> str:
        separated = "" if self.separator == literal("") else f", sep={self.separator!r}"
        return f"{self._called()}.repeat({self.least}, {self.most}{separated})"

    def _key(self) -> tuple[Any, ...]:
        return (*self.operands, self.least, self.most)

    def _lower(self, builder: GrammarBuilder) -> int:
        item = self.inner._lower(builder)
        if self.separator == literal(""):
            return builder.repeat(item, self.least, self.most)
        if self.most == 0:
            return builder.empty
        further = builder.seq(self.separator._lower(builder), item)
        most = None if self.most is None else self.most - 1
        some = builder.seq(item, builder.repeat(further, max(self.least - 1, 0), most))
        return some if self.least else builder.optional(some)


class Option(_Unary[T_co]):
    def __repr__(self) -> str:
        return f"{self._called()}.optional()"

    def _lower(self, builder: GrammarBuilder) -> int:
        return builder.optional(self.inner._lower(builder))


class Named(_Unary[T_co]):
    def __init__(self, inner: Grammar[T_co], name: str) -> None:
        super().__init__(inner)
        self.__dict__["name"] = name

    name: str

    def __repr__(self) -> str:
        return f"{self._called()}.named({self.name!r})"

    def _key(self) -> tuple[Any, ...]:
        return (*self.operands, self.name)

    def _lower(self, builder: GrammarBuilder) -> int:
        return self.inner._lower(builder)


class Fields(_Unary[dict[str, Any]]):
    def __repr__(self) -> str:
        return f"{self._called()}.fields()"

    def _lower(self, builder: GrammarBuilder) -> int:
        return self.inner._lower(builder)


class Mapped(_Unary[T_co]):
    def __init__(self, inner: Grammar[Any], function: Callable[[Any], T_co]) -> None:
        super().__init__(inner)
        self.__dict__["function"] = function

    function: Callable[[Any], T_co]

    def __repr__(self) -> str:
        return f"{self._called()}.map({getattr(self.function, '__qualname__', repr(self.function))})"

    def _key(self) -> tuple[Any, ...]:
        return (*self.operands, self.function)

    def _lower(self, builder: GrammarBuilder) -> int:
        return self.inner._lower(builder)


# ---------------------------------------------------------------------- simple grammars
def literal(text: str) -> Grammar[str]:
    """Exactly this text.

    Raises:
        GrammarSyntaxError: the text holds a lone surrogate, which UTF-8 cannot spell.
    """
    if not isinstance(text, str):
        raise TypeError(f"literal() takes a text, not {type(text).__name__}")
    builder = GrammarBuilder()
    return Grammar(builder.build(builder.literal(_encoded(text))), call=("literal", (text,), {}))


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
    return Grammar(builder.build(builder.words(encoded)), call=("choice", (texts,), {}))


def special(name: str) -> Grammar[str]:
    """A special token of the model, such as ``<|eot|>``: that token, and no text that spells its name.

    Which there are, :attr:`grammarspec.Vocabulary.special_tokens` tells. To compile it for a vocabulary without this
    token is an error. A text is read by its name: what ``parse`` is given can spell it.

    Raises:
        ValueError: the name is empty.
    """
    if not name:
        raise ValueError("a special token has a name")
    _encoded(name)
    builder = GrammarBuilder()
    node = builder.literal(marks.mark(name))
    return Grammar(builder.build(node), call=("special", (name,), {}))


def text(*, until: str | None = None, max_chars: int | None = None) -> Grammar[str]:
    """Any text; without ``until`` in it, and of at most ``max_chars`` code points, if these are given.

    Raises:
        ValueError: ``until`` is empty, or ``max_chars`` is negative.
    """
    if until == "" or (max_chars is not None and max_chars < 0):
        raise ValueError("until must not be empty, nor max_chars negative")
    builder = GrammarBuilder()
    node = _any_text(builder, max_chars)
    if until is not None:
        within = builder.seq(builder.anything, builder.literal(_encoded(until)), builder.anything)
        node = builder.both(node, builder.complement(within))
    options = {"until": until, "max_chars": max_chars}
    return Grammar(builder.build(builder.terminal(node)), call=("text", (), options))


def _any_text(builder: GrammarBuilder, most: int | None = None) -> int:
    return builder.repeat(builder.codepoints([(0, 0x10FFFF)]), 0, most)


def _encoded(text: str, where: str = "") -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f"a lone surrogate (U+{ord(text[error.start]):04X}) cannot be spelled in UTF-8"
        raise GrammarSyntaxError(message, where=f"{where}character {error.start}") from None
