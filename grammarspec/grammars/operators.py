"""Grammar expressions: the nodes that simple grammars and the operators on grammars are made of.

A node is an immutable value that knows three things: how its language is described to the compiler
(:meth:`Node.lower`), what a text of the language means (:meth:`Node.value`), and how it is written in Python
(``repr``). An operator keeps its operands, so that a combined grammar is compiled only when it is first used. What
comes in are the compiled languages of the front-ends (:class:`Leaf`); what goes out is the compiler's form of the whole
(:attr:`Node.ir`).

A :class:`~grammarspec.grammars.expressions.Grammar` wraps a node and adds its type.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from itertools import pairwise
from typing import Any, ClassVar, Final, Protocol

from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import LimitExceeded, Unsatisfiable, UnsupportedFeature
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.reading import Readable, Reader

__all__ = [
    "Call",
    "Captures",
    "Complement",
    "Concatenation",
    "Fields",
    "Intersection",
    "Leaf",
    "Mapped",
    "Named",
    "Node",
    "Option",
    "Repetition",
    "Union",
    "too_deep",
]

_CACHES = frozenset(("byte_constraint", "names", "special_tokens"))
"""Attributes that a node computes from its others; they are left out of pickles."""

_SUM, _AND, _OR = range(3)  # how tightly operators bind in Python: + before & before |


def too_deep() -> LimitExceeded:
    """The error for operators that are nested more deeply than Python can follow."""
    hint = "join many grammars in halves, not one after the other; gs.choice takes any number of texts"
    return LimitExceeded(
        "the nesting depth of operators on grammars is above the limit of Python's recursion", hint=hint
    )


@dataclass(frozen=True)
class Call:
    """The call that made a grammar: ``str`` of it is Python code that makes the grammar again.

    Attributes:
        function: a public function of :mod:`grammarspec`.
        arguments: its positional arguments.
        options: its keyword arguments, including those that have their default values in its signature.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        defaults = {name: parameter.default for name, parameter in signature(self.function).parameters.items()}
        written = [repr(argument) for argument in self.arguments]
        written += [
            f"{name}={value!r}"
            for name, value in self.options.items()
            if name not in defaults or value != defaults[name]
        ]
        return f"gs.{self.function.__name__}({', '.join(written)})"


class Node(Readable):
    """A language over UTF-8 text, and what its texts mean. Equal nodes are built alike."""

    binds: ClassVar[int] = _SUM
    """How tightly the node's own operator binds, for parentheses in ``repr``."""

    regular_operator: ClassVar[str | None] = None
    """The node's own operator, if its operands must be regular languages."""

    # ------------------------------------------------------------------ as a value
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        return type(self) is type(other) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.ir)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _CACHES}

    @property
    def operands(self) -> Sequence[Node]:
        """The nodes that this one is made of."""
        return ()

    @property
    def parts(self) -> tuple[Any, ...]:
        """All that this node is made of: nodes of one class are equal if these are."""
        return tuple(self.operands)

    # ------------------------------------------------------------------ the language
    @abstractmethod
    def lower(self, builder: GrammarBuilder) -> int:
        """Describe the language to a builder; returns the builder's node for it."""

    def build(self) -> Ir:
        """Make the compiler's form of the language.

        Raises:
            UnsupportedFeature: an operand of ``&`` or ``~`` is not regular.
            LimitExceeded: operators are nested too deeply.
            OverflowError: a number of repetitions is 2**32 - 1 or more.
        """
        builder = GrammarBuilder()
        try:
            return builder.build(self.lower(builder))
        except UnsupportedFeature:
            for operand in self.operands:
                _ = operand.ir  # where the fault is inside an operand, this raises an error that names the part
            if self.regular_operator:
                self._refuse_irregular(self.regular_operator)
            raise
        except RecursionError:
            raise too_deep() from None

    def _refuse_irregular(self, operator: str) -> None:
        """Raise an error that names the first operand that is not regular, if there is one."""
        for operand in self.operands:
            builder = GrammarBuilder()
            try:
                builder.build(builder.complement(operand.lower(builder)))
            except UnsupportedFeature:
                why = "which has rules that call themselves or remember what came before"
                hint = "& and ~ take regular languages: regular expressions, choices, and what operators make of these"
                raise UnsupportedFeature(f"{operator} of {operand!r:.80}, {why}", f"{self!r:.100}", hint) from None

    # ------------------------------------------------------------------ the reading
    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parts that this node captures, the inner ones first."""
        return tuple(dict.fromkeys(name for operand in self.operands for name in operand.names))


class Captures(Protocol):
    """Finds the named parts of the texts of a language. It is a value: compared, hashed and pickled with its grammar.

    Attributes:
        names: the names of all parts that a text may have.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    def __call__(self, text: str) -> Mapping[str, Any]:
        """The values of the parts that a text of the language has, by their names."""
        ...


class Leaf(Node):
    """A language that a front-end has compiled.

    Attributes:
        compiled: the language in the compiler's form.
        read: makes a value of a text of the language; ``None``: the text itself is the value.
        call: the call that made it, or the text of one; ``None`` if there is no such call.
        why_empty: makes the error that says why it has no texts, if it has none; ``None``: nothing is known about that.
        captures: finds the named parts of a text; ``None``: there are none.
    """

    def __init__(
        self,
        compiled: Ir,
        read: Callable[[str], Any] | None = None,
        call: Call | str | None = None,
        why_empty: Callable[[], Unsatisfiable] | None = None,
        captures: Captures | None = None,
    ) -> None:
        self.compiled: Final = compiled
        self.read: Final = read
        self.call: Final = call
        self.why_empty: Final = why_empty
        self.captures: Final = captures

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.compiled, self.read, self.captures

    @cached_property
    def names(self) -> tuple[str, ...]:
        return () if self.captures is None else self.captures.names

    def build(self) -> Ir:
        return self.compiled

    def __repr__(self) -> str:
        return f"<Grammar {hash(self.ir) & 0xFFFF_FFFF_FFFF_FFFF:016x}>" if self.call is None else str(self.call)

    def __getstate__(self) -> dict[str, Any]:
        # the call's arguments and what it leads to need not be picklable
        return super().__getstate__() | {"call": repr(self), "why_empty": None}

    def lower(self, builder: GrammarBuilder) -> int:
        return builder.embed(self.ir)

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> Any:
        """As :meth:`Readable.value`.

        Raises:
            LimitExceeded: values in the text are nested more deeply than can be read.
        """
        text = reader.text(start, end)
        try:
            if self.captures is not None:
                captures.update(self.captures(text))
            return text if self.read is None else self.read(text)
        except RecursionError as error:
            message, hint = "values in the text are nested more deeply than can be read", "matches() reads no values"
            raise LimitExceeded(message, hint=hint) from error


# ---------------------------------------------------------------------- operators between two grammars
class _Binary(Node):
    sign: ClassVar[str]

    def __init__(self, left: Node, right: Node) -> None:
        self.left: Final = left
        self.right: Final = right

    @property
    def operands(self) -> Sequence[Node]:
        return self.left, self.right

    def __repr__(self) -> str:
        left = f"({self.left!r})" if self.left.binds > self.binds else repr(self.left)
        loose = self.right.binds > self.binds or (self.right.binds == self.binds != _SUM)
        right = f"({self.right!r})" if loose or type(self.right) is type(self) else repr(self.right)
        return f"{left} {self.sign} {right}"


class Concatenation(_Binary):
    """A text of the left language, then one of the right; means the text.

    Raises:
        ValueError: both have a part of the same name.
    """

    sign = "+"

    def __init__(self, left: Node, right: Node) -> None:
        super().__init__(left, right)
        _refuse_twice(left.names + right.names)

    def lower(self, builder: GrammarBuilder) -> int:
        return builder.seq(self.left.lower(builder), self.right.lower(builder))

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> str:
        _, cut, _ = reader.cuts(self.operands, start, end)
        self.left.value(reader, start, cut, captures)
        self.right.value(reader, cut, end, captures)
        return reader.text(start, end)


class Union(_Binary):
    """A text of either language; its value is that of the first of the two that has it."""

    binds = _OR
    sign = "|"

    def lower(self, builder: GrammarBuilder) -> int:
        return builder.alt(self.left.lower(builder), self.right.lower(builder))

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> Any:
        taken = self.left if end in reader.ends(self.left, start) else self.right
        return taken.value(reader, start, end, captures)


class Intersection(_Binary):
    """A text of both languages, which are regular; its value is the left one's."""

    binds = _AND
    sign = regular_operator = "&"

    def lower(self, builder: GrammarBuilder) -> int:
        return builder.both(self.left.lower(builder), self.right.lower(builder))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.left.names

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> Any:
        return self.left.value(reader, start, end, captures)


# ---------------------------------------------------------------------- operators on one grammar
class _Unary(Node):
    """Made of one grammar: by default the same language with the same reading."""

    def __init__(self, inner: Node) -> None:
        self.inner: Final = inner

    @property
    def operands(self) -> Sequence[Node]:
        return (self.inner,)

    @property
    def _receiver(self) -> str:
        """The inner grammar as what a method or ``~`` is called on."""
        operator = isinstance(self.inner, _Binary | Complement)
        return f"({self.inner!r})" if operator else repr(self.inner)

    def lower(self, builder: GrammarBuilder) -> int:
        return self.inner.lower(builder)

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> Any:
        return self.inner.value(reader, start, end, captures)


class Complement(_Unary):
    """All texts that the inner language, which is regular, does not have; means the text."""

    regular_operator = "~"

    def __repr__(self) -> str:
        return f"~{self._receiver}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return ()

    def lower(self, builder: GrammarBuilder) -> int:
        return builder.both(builder.any_text(), builder.complement(self.inner.lower(builder)))

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> str:
        return reader.text(start, end)


class Repetition(_Unary):
    """``least`` to ``most`` items (``None``: any number), separators between them; means the list of their values.

    Raises:
        ValueError: item and separator have a part of the same name.
    """

    def __init__(self, inner: Node, least: int, most: int | None, separator: Node | None) -> None:
        super().__init__(inner)
        self.least: Final = least
        self.most: Final = most
        self.separator: Final = separator
        if separator is not None:
            _refuse_twice(inner.names + separator.names)

    @property
    def operands(self) -> Sequence[Node]:
        return (self.inner,) if self.separator is None else (self.inner, self.separator)

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.inner, self.least, self.most, self.separator

    def __repr__(self) -> str:
        separated = "" if self.separator is None else f", sep={self.separator!r}"
        return f"{self._receiver}.repeat({self.least}, {self.most}{separated})"

    def lower(self, builder: GrammarBuilder) -> int:
        item = self.inner.lower(builder)
        if self.separator is None:
            return builder.repeat(item, self.least, self.most)
        if self.most == 0:
            return builder.empty
        further = builder.seq(self.separator.lower(builder), item)
        most = None if self.most is None else self.most - 1
        some = builder.seq(item, builder.repeat(further, max(self.least - 1, 0), most))
        return some if self.least else builder.optional(some)

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> list[Any]:
        """The values of the items. What is named in items and separators is captured as lists."""
        parts = self._parts(reader, start, end)
        captures.update({name: [] for name in self.names})
        values = []
        for part, (begin, stop) in zip(parts, pairwise(reader.cuts(parts, start, end)), strict=True):
            own: dict[str, Any] = {}
            values.append(part.value(reader, begin, stop, own))
            for name, value in own.items():
                captures[name].append(value)
        return values[:: len(self.operands)]

    def _parts(self, reader: Reader, start: int, end: int) -> list[Node]:
        """The fewest items, and the separators between them, that the text can be made of."""
        parts: list[Node] = []
        items, reached = 0, {start}  # where so many items may end
        while items < self.least or end not in reached:
            further = [self.inner] if self.separator is None or not items else [self.separator, self.inner]
            for part in further:
                reached = reader.reached(part, reached)
            parts += further
            items += 1
        return parts


class Option(_Unary):
    """A text of the inner language, or the empty text, which means ``None``."""

    def __repr__(self) -> str:
        return f"{self._receiver}.optional()"

    def lower(self, builder: GrammarBuilder) -> int:
        return builder.optional(self.inner.lower(builder))

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> Any:
        taken = end in reader.ends(self.inner, start)
        return self.inner.value(reader, start, end, captures) if taken else None


class Named(_Unary):
    """The inner grammar, whose value is captured under a name.

    Raises:
        ValueError: a part of it has the same name.
    """

    def __init__(self, inner: Node, name: str) -> None:
        super().__init__(inner)
        self.name: Final = name
        _refuse_twice((*inner.names, name))

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.inner, self.name

    def __repr__(self) -> str:
        return f"{self._receiver}.named({self.name!r})"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return *self.inner.names, self.name

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> Any:
        value = captures[self.name] = self.inner.value(reader, start, end, captures)
        return value


class Fields(_Unary):
    """The inner language; its value is the captures of the inner grammar, by name. Outside they are not captured."""

    def __repr__(self) -> str:
        return f"{self._receiver}.fields()"

    @cached_property
    def names(self) -> tuple[str, ...]:
        return ()

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> dict[str, Any]:
        own: dict[str, Any] = {}
        self.inner.value(reader, start, end, own)
        return own


class Mapped(_Unary):
    """The inner language; its value is what a function makes of the inner grammar's value."""

    def __init__(self, inner: Node, function: Callable[[Any], Any]) -> None:
        super().__init__(inner)
        self.function: Final = function

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.inner, self.function

    def __repr__(self) -> str:
        return f"{self._receiver}.map({getattr(self.function, '__qualname__', repr(self.function))})"

    def value(self, reader: Reader, start: int, end: int, captures: dict[str, Any]) -> Any:
        return self.function(self.inner.value(reader, start, end, captures))


def _refuse_twice(names: Sequence[str]) -> None:
    """Raise an error if parts that all have a value in the same text share a name: one would be lost.

    Raises:
        ValueError: two share a name.
    """
    for name, times in Counter(names).items():
        if times > 1:
            hint = "give them different names, or make them one part by repeat(), whose value is a list"
            raise ValueError(f"two parts of a text are named {name!r}\n  hint: {hint}")
