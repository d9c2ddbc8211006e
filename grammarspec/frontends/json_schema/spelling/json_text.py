"""The texts of JSON values: strings, names, numbers, punctuation, any value, as nodes that a whole grammar shares.

A builder and a :class:`~.options.Spelling` go in; the attributes and methods of :class:`JsonText` are the nodes.

Strings have two alphabets: a *free* one, any spelling that JSON allows, with ``\\u`` escapes of surrogates in pairs
only (RFC 8259, section 7), and an *exact* one, in which each character has one spelling (:mod:`.alphabets`). Strings
that a keyword constrains, and names, are in the exact one.

Free whitespace is part of the punctuation: the node of a comma holds the whitespace around it. Where lines are
indented, they depend on the number of objects and arrays around a value; then there is a :class:`JsonText` for each
such level, and each member and item begins with the line break and indentation before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from json.encoder import encode_basestring as quote

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.spelling.alphabets import PLAIN, ExactAlphabet, RawAlphabet
from grammarspec.frontends.json_schema.spelling.options import JSON, Spelling
from grammarspec.frontends.json_schema.spelling.unicode_escapes import quote_ascii
from grammarspec.frontends.json_schema.spelling.whitespace import bounded_whitespace, whitespace_matching
from grammarspec.frontends.regex.charsets import complement, normalise
from grammarspec.grammars.builder import NAMES, OPENS, GrammarBuilder

__all__ = ["DIGITS", "LETTER_E", "MAX_LEVELS", "NONZERO", "NOT_IN_TAGS", "SMALL", "JsonText", "Ways"]

DIGITS = ((0x30, 0x39),)
NONZERO = ((0x31, 0x39),)
LETTER_E = ((0x45, 0x45), (0x65, 0x65))

SMALL = 32
"""The greatest number of words in an enumeration that is no terminal of its own."""

_CONTROLS = "".join(map(chr, range(0x21))) + "\x7f"
_NOT_BARE = _CONTROLS + "\"'(),:<=>[\\]{|}"
"""What no name holds that is written without quotation marks: whitespace, brackets, separators, what is escaped."""
NOT_IN_TAGS = _CONTROLS + '"&<>'
"""What no name holds that is written in the tag of an element."""

MAX_LEVELS = 32
"""The most objects and arrays inside one another, where lines are indented. Each level has nodes of its own."""

TOLD_APART = re.compile(r"-?[1-9][0-9]*(\.[0-9]*[1-9]|\.0)?|-?0\.[0-9]*[1-9]|0(\.0)?")
"""The spellings of numbers where values are compared with each other: one of each number, and ``.0`` of integers."""

_OF_THE_LEVEL = ("inner", "_anything", "telling_apart")
"""Cached nodes that another level does not share."""
_OF_SPELLINGS = ("inner", "_anything", "string", "number", "integer", "strict_integer", "free_character")
"""Cached nodes that a level of values which are compared does not share."""


Ways = Sequence[tuple[str, int]]
"""The nodes of some values, each with what stands before it. That is nothing in JSON, so there is one node."""


class JsonText:
    """The shared nodes of one grammar, made when first asked for.

    Attributes:
        builder: what makes the nodes.
        spelling: how values are spelled.
        quote: a string as it is spelled in the exact alphabet, in its quotation marks.
        level: how many objects and arrays are around a value; counted only where lines are indented.
        variant: a number that tells this from those of other levels, and from those of values that are compared.
        distinct: whether values are compared with each other, see :attr:`telling_apart`.
        line: what a member or an item begins with, if lines are indented.
        quotation: what stands before and after a string.
        null, false, true: the constants.
        comma, colon, open_object, close_object, open_array, close_array: the punctuation, with its whitespace.
        no_members, no_items: what follows the beginning of an object or array that is empty.
        not_bare, bare: the characters that no name holds, where names are without quotation marks; where that is.
    """

    not_bare, bare = _NOT_BARE, "without quotation marks"

    def __init__(self, builder: GrammarBuilder, spelling: Spelling) -> None:
        self.builder, self.spelling = builder, spelling
        self.quote: Callable[[str], str] = quote_ascii if spelling.ascii else quote
        self.level = self.variant = 0
        self.distinct = False
        self.line: int | None = None
        literal, notation = builder.literal, spelling.notation
        quotes = notation.quotes
        self.quotation = literal(b'"') if quotes is None else builder.embed(quotes.mark)
        self.null, self.false, self.true = map(literal, (notation.null, notation.false, notation.true))
        if spelling.separators is not None:
            self.comma, self.colon = map(literal, spelling.separators)
            self.open_object, self.close_object = literal(b"{"), literal(b"}")
            self.open_array, self.close_array = literal(b"["), literal(b"]")
            self._indent()
        else:
            blanks = spelling.blanks
            white = bounded_whitespace(builder) if blanks is None else whitespace_matching(builder, blanks)
            self.comma = builder.seq(white, literal(b","), white)
            self.colon = builder.seq(white, literal(b":"), white)
            self.open_object = builder.seq(literal(b"{"), white)
            self.close_object = builder.seq(white, literal(b"}"))
            self.open_array = builder.seq(literal(b"["), white)
            self.close_array = builder.seq(white, literal(b"]"))
        self.no_members, self.no_items = literal(b"}"), literal(b"]")

    # ------------------------------------------------------------------ layout
    def _indent(self) -> None:
        """Set the nodes that depend on the level, if lines are indented."""
        b, unit = self.builder, self.spelling.indent
        if unit is not None:
            own = "\n" + unit * self.level
            self.line = b.literal(own + unit)
            self.close_object, self.close_array = b.literal(own + "}"), b.literal(own + "]")

    @cached_property
    def inner(self) -> JsonText | None:
        """The texts of values one level deeper, where lines are indented; ``None``: no value may stand there."""
        if self.level == MAX_LEVELS:
            return None
        new = self._copy(without=_OF_THE_LEVEL)
        new.level, new.variant = self.level + 1, self.variant + 2
        new._indent()
        return new

    @cached_property
    def telling_apart(self) -> JsonText:
        """The texts of values at the same level that are compared with each other, as those of ``uniqueItems`` are.

        The engine compares them as they are spelled. So each value has one spelling, but for whitespace, the order of
        members and the ``.0`` of integers, which the engine knows; and the names of an object's members differ.

        Raises:
            UnsupportedFeature: values are not written in JSON.
        """
        if self.distinct:
            return self
        self.check_comparable()
        new = self._copy(without=_OF_SPELLINGS)
        new.distinct, new.variant = True, self.variant + 1
        return new

    def _copy(self, *, without: Sequence[str] = ()) -> JsonText:
        """The same, with the nodes that have been made so far but those of the attributes ``without``."""
        new = JsonText.__new__(JsonText)
        new.__dict__.update(self.__dict__)
        for name in without:
            new.__dict__.pop(name, None)
        return new

    def check_comparable(self) -> None:
        """Check that the engine can compare values and names, which it does as JSON spells them.

        Raises:
            UnsupportedFeature: they are not written in JSON.
        """
        if self.spelling.notation._replace(excluded=()) != JSON:
            raise UnsupportedFeature("items or names that must differ, in a notation that is not JSON")

    def member(self, name: int, values: Ways) -> tuple[int, ...]:
        """The parts of a member of an object at this level; ``name`` includes the quotation marks."""
        ((_, value),) = values
        return (name, self.colon, value) if self.line is None else (self.line, name, self.colon, value)

    def undeclared(self, name: int, values: Ways) -> tuple[int, ...]:
        """The parts of a member that may have many names.

        Raises:
            UnsupportedFeature: a name is written twice in this notation, and nothing ensures that it is the same.
        """
        return self.member(name, values)

    def item(self, value: int) -> int:
        """An item of an array at this level."""
        return value if self.line is None else self.builder.seq(self.line, value)

    def make_common(self) -> None:
        """Make the nodes that most schemas use."""
        _ = (self.string, self.number, self.integer, self.key, self.value, self.zero_fraction)

    def over(self, builder: GrammarBuilder) -> JsonText:
        """The same nodes in a copy of the builder."""
        exact = self.exact.over(builder)
        first = new = self._over(builder, exact)
        level: JsonText | None = self
        while level is not None and (level := level.__dict__.get("inner")) is not None:
            new.inner = level._over(builder, exact)
            new = new.inner
        return first

    def _over(self, builder: GrammarBuilder, exact: ExactAlphabet) -> JsonText:
        """This level alone, in a copy of the builder and of the exact alphabet."""
        new = self._copy()
        new.builder, new.exact = builder, exact
        return new

    # ------------------------------------------------------------------ punctuation
    @cached_property
    def empty_object(self) -> int:
        """``{}``."""
        return self.builder.seq(self.open_object, self.no_members)

    @cached_property
    def empty_array(self) -> int:
        """``[]``."""
        return self.builder.seq(self.open_array, self.no_items)

    # ------------------------------------------------------------------ strings
    @cached_property
    def exact(self) -> ExactAlphabet:
        """The alphabet with one spelling per character."""
        if self.spelling.notation.quotes is not None:
            return RawAlphabet(self.builder)
        return ExactAlphabet(self.builder, self.quote)

    @cached_property
    def free_character(self) -> int:
        """One character of a free string; a pair of surrogate escapes is one character."""
        if self.spelling.minimal or self.distinct or self.spelling.notation.quotes is not None:
            return self.exact.character
        b = self.builder
        hexadecimal = b.bytes_in(((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)))
        two = b.repeat(hexadecimal, 2, 2)
        three = b.repeat(hexadecimal, 3, 3)
        letter_d = b.bytes_in(((0x44, 0x44), (0x64, 0x64)))
        plain = b.alt(
            b.seq(b.bytes_in(((0x30, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66))), three),
            b.seq(letter_d, b.bytes_in(((0x30, 0x37),)), two),
        )
        high = b.seq(letter_d, b.bytes_in(((0x38, 0x39), (0x41, 0x42), (0x61, 0x62))), two)
        low = b.seq(letter_d, b.bytes_in(((0x43, 0x46), (0x63, 0x66))), two)
        # b f n r t, the quotation mark, both slashes
        short = b.bytes_in(((0x22, 0x22), (0x2F, 0x2F), (0x5C, 0x5C), *((ord(c), ord(c)) for c in "bfnrt")))
        unicode = b.seq(b.literal(b"u"), b.alt(plain, b.seq(high, b.literal(b"\\u"), low)))
        return b.alt(b.codepoints(PLAIN), b.seq(b.literal(b"\\"), b.alt(short, unicode)))

    @cached_property
    def string(self) -> int:
        """Any string."""
        return self.free_string(0, None)

    def free_string(self, least: int, most: int | None) -> int:
        """Any string of ``least`` to ``most`` characters."""
        return self.exact_string(self.builder.repeat(self.free_character, least, most))

    def exact_string(self, text: int, *, asserting: bool = False) -> int:
        """The strings whose text, without its quotation marks, is in a language.

        Args:
            text: the language, a regular node in the exact alphabet.
            asserting: it holds zero-width assertions. They look at the whole of their terminal, so the quotation marks
                stay outside of it.
        """
        b = self.builder
        text = self._within_quotes(text)
        if asserting:
            return b.seq(self.quotation, b.terminal(text), self.quotation)
        return b.terminal(b.seq(self.quotation, text, self.quotation))

    def _within_quotes(self, text: int) -> int:
        """The texts of a regular node that can stand in quotation marks."""
        b, excluded = self.builder, self._excluded
        return b.both(text, b.complement(b.seq(b.anything, b.words(excluded), b.anything))) if excluded else text

    @cached_property
    def _excluded(self) -> tuple[str, ...]:
        """What no string holds, as it is written."""
        notation = self.spelling.notation
        return notation.excluded if notation.quotes is None else (notation.quotes.excluded, *notation.excluded)

    def strings(self, texts: Sequence[str]) -> int:
        """Any one of these strings, in its quotation marks, but for those that hold what no string holds.

        Raises:
            UnsupportedFeature: the notation cannot write one of them.
        """
        quotes = self.spelling.notation.quotes
        if quotes is None:
            kept = [written for written in map(self.quote, texts) if self._is_allowed(written[1:-1])]
            return self.words(kept) if kept else self.builder.nothing
        for text in texts:
            if quotes.excluded in text:
                raise UnsupportedFeature(f"the string {text!r:.60} where no string can hold {quotes.excluded!r}")
        kept = [text for text in texts if self._is_allowed(text)]
        return self.builder.seq(self.quotation, self.words(kept), self.quotation) if kept else self.builder.nothing

    def _is_allowed(self, written: str) -> bool:
        """Whether a string or name, as it is written without quotation marks, holds nothing that is excluded."""
        return not any(excluded in written for excluded in self.spelling.notation.excluded)

    def words(self, texts: Sequence[str]) -> int:
        """Any one of these texts, which are spelled as they are to be written."""
        b = self.builder
        node = b.literal(texts[0]) if len(texts) == 1 else b.words(texts)
        return node if len(texts) <= SMALL else b.terminal(node)

    # ------------------------------------------------------------------ names
    def name(self, name: str) -> int:
        """A member's name as it is written.

        Raises:
            UnsupportedFeature: the notation cannot write it.
        """
        notation = self.spelling.notation
        if notation == JSON:
            return self.builder.literal(self.quote(name))
        if not notation.bare_names:
            return self.strings([name])
        if not name or not set(self.not_bare).isdisjoint(name):
            raise UnsupportedFeature(f"the name {name!r:.60} {self.bare}")
        return self.builder.literal(name) if self._is_allowed(name) else self.builder.nothing

    def exact_key(self, text: int, *, asserting: bool = False) -> int:
        """The names whose text is in a language; the arguments are those of :meth:`exact_string`."""
        if not self.spelling.notation.bare_names:
            return self.exact_string(text, asserting=asserting)
        return self.builder.terminal(self.builder.both(text, self._bare_name))

    @cached_property
    def _bare_name(self) -> int:
        """The names that can be written without quotation marks."""
        b = self.builder
        characters = complement(normalise((ord(char), ord(char)) for char in self.not_bare))
        return self._within_quotes(b.repeat(b.codepoints(characters), 1, None))

    @cached_property
    def key(self) -> int:
        """Any name."""
        return self.exact_key(self.exact.any_text)

    def key_except(self, names: Sequence[str]) -> int:
        """Any name but these."""
        b, quoted = self.builder, self.quote
        if not names:
            return self.key
        if self.spelling.notation != JSON:
            return self.exact_key(b.both(self.exact.any_text, b.complement(self.exact.words(names))))
        text = b.seq(self.quotation, self.exact.any_text, self.quotation)
        return b.terminal(b.both(text, b.complement(b.words([quoted(name) for name in names]))))

    # ------------------------------------------------------------------ numbers
    @cached_property
    def integer(self) -> int:
        """Any integer: plain, with a fraction of zeros, or with an exponent that makes it whole."""
        if self.spelling.plain:
            return self.strict_integer
        b = self.builder
        digits = b.repeat(b.bytes_in(DIGITS), 0, None)
        plain = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), digits))
        magnitude = b.alt(b.seq(plain, b.optional(self.zero_fraction)), self.scientific_integer)
        return self.number_terminal(b.seq(b.optional(b.literal(b"-")), magnitude))

    @cached_property
    def strict_integer(self) -> int:
        """Any integer in digits, as draft 4 has it: no fraction, no exponent."""
        b = self.builder
        plain = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), b.repeat(b.bytes_in(DIGITS), 0, None)))
        return self.number_terminal(b.seq(b.optional(b.literal(b"-")), plain))

    @cached_property
    def zero_fraction(self) -> int:
        """``.0``, ``.00`` and so on."""
        b = self.builder
        return b.seq(b.literal(b"."), b.repeat(b.literal(b"0"), 1, None))

    @cached_property
    def scientific_integer(self) -> int:
        """``d.ddde±x`` that is an integer: at most 16 digits of fraction and an exponent of at least 16.

        This is how ``json.dumps`` spells whole floats from 1e16 on.
        """
        b = self.builder
        digit = b.bytes_in(DIGITS)
        fraction = b.seq(b.literal(b"."), b.repeat(digit, 1, 16))
        exponent = b.alt(
            b.seq(b.literal(b"1"), b.bytes_in(((0x36, 0x39),))),
            b.seq(b.bytes_in(((0x32, 0x39),)), digit),
            b.seq(b.bytes_in(((0x31, 0x32),)), digit, digit),
            b.seq(b.literal(b"30"), b.bytes_in(((0x30, 0x37),))),
        )
        sign = b.optional(b.literal(b"+"))
        return b.seq(b.bytes_in(NONZERO), b.optional(fraction), b.bytes_in(LETTER_E), sign, exponent)

    @cached_property
    def number(self) -> int:
        """Any number."""
        b = self.builder
        digit = b.bytes_in(DIGITS)
        some, any_digits = b.repeat(digit, 1, None), b.repeat(digit, 0, None)
        whole = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), any_digits))
        sign = b.optional(b.bytes_in(((0x2B, 0x2B), (0x2D, 0x2D))))
        exponent = b.seq(b.bytes_in(LETTER_E), sign, some)
        fraction = b.seq(b.literal(b"."), some)
        parts = [b.optional(b.literal(b"-")), whole, b.optional(fraction)]
        if not self.spelling.plain:
            parts.append(b.optional(exponent))
        return self.number_terminal(b.seq(*parts))

    def number_terminal(self, node: int) -> int:
        """A terminal of numbers; where values are compared, of those with the one spelling that they have then."""
        b = self.builder
        return b.terminal(b.both(node, self._told_apart)) if self.distinct else b.terminal(node)

    @cached_property
    def _told_apart(self) -> int:
        """The spellings of numbers that :data:`TOLD_APART` matches."""
        b = self.builder
        minus, zero, point = b.optional(b.literal(b"-")), b.literal(b"0"), b.literal(b".")
        nonzero, digits = b.bytes_in(NONZERO), b.repeat(b.bytes_in(DIGITS), 0, None)
        fraction, whole = b.seq(point, digits, nonzero), b.optional(b.seq(point, zero))
        large = b.seq(minus, nonzero, digits, b.alt(fraction, whole))
        return b.alt(large, b.seq(minus, zero, fraction), b.seq(zero, whole))

    # ------------------------------------------------------------------ any value
    @cached_property
    def _anything(self) -> tuple[int, int, int]:
        """Any value, any object and any array, made together because they contain each other."""
        b = self.builder
        rule = b.rule("value")
        value = b.call(rule)
        inside = value if self.line is None else None if self.inner is None else self.inner.value
        if inside is None:
            any_object, any_array = self.empty_object, self.empty_array
        else:
            member = b.seq(*self.member(self.key, [("", inside)]))
            members = b.seq(member, b.repeat(b.seq(self.comma, member), 0, None), self.close_object)
            any_object = b.seq(self.open_object, b.alt(members, self.no_members))
            if self.distinct:
                of = b.rule("object", OPENS | NAMES)
                b.define(of, any_object)
                any_object = b.call(of)
            item = self.item(inside)
            items = b.seq(item, b.repeat(b.seq(self.comma, item), 0, None), self.close_array)
            any_array = b.seq(self.open_array, b.alt(items, self.no_items))
        b.define(rule, b.alt(self.string, self.number, any_object, any_array, self.true, self.false, self.null))
        return value, any_object, any_array

    @property
    def value(self) -> int:
        """Any value."""
        return self._anything[0]

    @property
    def object(self) -> int:
        """Any object."""
        return self._anything[1]

    @property
    def array(self) -> int:
        """Any array."""
        return self._anything[2]
