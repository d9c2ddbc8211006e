"""Intervals of decimal numbers as regular expressions over digits, exactly.

Two spellings are described: *plain* decimals (``-12.50``) and *normalised scientific* ones (``1.25e+3``: one digit
other than 0 before the point). Bounds are compared digit by digit, never as floats. A comparison with a bound of n
digits is a chain of n steps: at each, the digit decides, or is equal and leaves the decision to the next.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum, auto
from typing import NamedTuple

from grammarspec.errors import LimitExceeded
from grammarspec.frontends.json_schema.json_values import Bound
from grammarspec.frontends.json_schema.spelling.json_text import DIGITS, LETTER_E, NONZERO, JsonText
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["MAX_EXPONENT", "Intervals", "Kind"]

MAX_EXPONENT = 307
"""Exponents of bounded numbers go from -307 to 307, so that every value is a finite, normal double."""
_MAX_DIGITS = 400
_QUICK = 10**18  # integers below it are written by ``str``, which refuses very long ones


class Kind(Enum):
    """The kind of numbers that is described. It decides what may follow the digits before the decimal point."""

    NUMBER = auto()
    """All numbers: plain decimals with any fraction, and scientific spellings."""
    WHOLE = auto()
    """Integers: plain decimals whose fraction is zeros only, and scientific spellings of large integers."""
    DIGITS = auto()
    """Integers, spelled with digits only."""


class _Magnitude(NamedTuple):
    """The absolute value of a bound as decimal digits.

    Attributes:
        whole: the digits before the point, without leading zeros; ``"0"`` if there are no others.
        fraction: the digits after the point, without trailing zeros.
        open: whether the bound itself is excluded.
    """

    whole: str
    fraction: str
    open: bool

    @property
    def is_zero(self) -> bool:
        return self.whole == "0" and not self.fraction


def _magnitude(bound: Bound) -> _Magnitude:
    value = bound[0]
    if isinstance(value, int) and -_QUICK < value < _QUICK:
        return _Magnitude(str(abs(value)), "", bound[1])
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return _Magnitude("0", "", bound[1])
    if len(text) + abs(exponent) > _MAX_DIGITS:
        raise LimitExceeded(f"a bound of more than {_MAX_DIGITS} digits")
    if exponent >= 0:
        return _Magnitude(text + "0" * exponent, "", bound[1])
    text = text.rjust(1 - exponent, "0")
    return _Magnitude(text[:exponent], text[exponent:].rstrip("0"), bound[1])


class Intervals:
    """Makes the nodes of intervals of numbers, in one grammar builder."""

    def __init__(self, builder: GrammarBuilder, text: JsonText) -> None:
        self.builder, self.text = builder, text
        b = builder
        self.digit = b.bytes_in(DIGITS)
        self.any_digits = b.repeat(self.digit, 0, None)
        self.zeros = b.repeat(b.literal(b"0"), 0, None)
        self.point = b.literal(b".")
        self.minus = b.literal(b"-")
        self.any_fraction = b.optional(b.seq(self.point, b.repeat(self.digit, 1, None)))
        self.zero_fraction = b.optional(text.zero_fraction)
        self.exponent_mark = b.bytes_in(LETTER_E)
        self.nonzero_digits = b.seq(self.zeros, b.bytes_in(NONZERO), self.any_digits)
        self._made: dict[tuple[Bound | None, Bound | None, Kind], int] = {}
        self._exponents: dict[tuple[int, int], int] = {}

    def node(self, low: Bound | None, high: Bound | None, kind: Kind) -> int:
        """The node of the numbers of a kind between two bounds.

        A bound of ``None`` is infinity. ``-0`` counts as 0.

        Raises:
            LimitExceeded: a bound has more than 400 digits before or after the point.
        """
        key = (low, high, kind)
        node = self._made.get(key)
        if node is None:
            node = self._made[key] = self._node(low, high, kind)
        return node

    def _node(self, low: Bound | None, high: Bound | None, kind: Kind) -> int:
        if low is not None and high is not None and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
            return self.builder.nothing
        parts = []
        if high is None or high[0] >= 0:
            floor = _magnitude(low) if low is not None and low[0] >= 0 else None
            parts.append(self._unsigned(floor, None if high is None else _magnitude(high), kind))
        if low is None or low[0] <= 0:
            floor = _magnitude(high) if high is not None and high[0] <= 0 else None
            magnitude = self._unsigned(floor, None if low is None else _magnitude(low), kind)
            if magnitude != self.builder.nothing:
                parts.append(self.builder.seq(self.minus, magnitude))
        return self._alt(parts)

    def _alt(self, parts: list[int]) -> int:
        parts = [part for part in parts if part != self.builder.nothing]
        return self.builder.alt(*parts) if parts else self.builder.nothing

    # ------------------------------------------------------------------ without sign
    def _unsigned(self, low: _Magnitude | None, high: _Magnitude | None, kind: Kind) -> int:
        if low is not None and low.is_zero and not low.open:
            low = None
        parts = [self._plain(low, high, kind)]
        if self.text.spelling.plain:
            pass
        elif kind is Kind.NUMBER:
            parts.append(self._scientific(low, high))
        elif kind is Kind.WHOLE and (high is None or len(high.whole) > 16):
            large = self.text.scientific_integer
            bounded = high is not None or (low is not None and len(low.whole) > 16)
            parts.append(self.builder.both(large, self._scientific(low, high)) if bounded else large)
        return self._alt(parts)

    def _plain(self, low: _Magnitude | None, high: _Magnitude | None, kind: Kind) -> int:
        """Plain decimals between the bounds: more digits mean a larger number, equally many are compared one by one."""
        b = self.builder
        shortest = 1 if low is None else len(low.whole)
        longest = None if high is None else len(high.whole)
        if shortest == longest:
            return self._same_length(shortest, low, high, kind)
        if longest is not None and shortest > longest:
            return b.nothing
        parts = []
        if low is None:
            between = 0  # digits after the first digit, in the shortest numbers that need no comparison with a bound
            if longest is None or longest > 1:
                parts.append(b.seq(b.literal(b"0"), self._any(kind)))
        else:
            parts.append(self._same_length(shortest, low, None, kind))
            between = shortest
        if longest is None or between <= longest - 2:
            rest = b.repeat(self.digit, between, None if longest is None else longest - 2)
            parts.append(b.seq(b.bytes_in(NONZERO), rest, self._any(kind)))
        if high is not None:
            parts.append(self._same_length(len(high.whole), None, high, kind))
        return self._alt(parts)

    # ------------------------------------------------------------------ numbers of one length
    def _same_length(self, length: int, low: _Magnitude | None, high: _Magnitude | None, kind: Kind) -> int:
        """Plain decimals between the bounds with ``length`` digits before the point, without leading zeros."""
        b = self.builder
        if high is None:
            assert low is not None
            return self._above(low.whole, self._tail_above(low, kind), kind)
        if low is None:
            return self._below(high.whole, self._tail_below(high, kind), kind, "1" if length > 1 else "0")
        first, last = low.whole, high.whole
        if first > last:
            return b.nothing
        same = next((i for i in range(length) if first[i] != last[i]), length)
        above, below = self._tail_above(low, kind), self._tail_below(high, kind)
        if same == length:
            if b.nothing in (above, below):
                return b.nothing
            return b.seq(b.literal(first), below if above == self._any(kind) else b.both(above, below))
        parts = []
        if ord(last[same]) - ord(first[same]) > 1:
            rest = b.repeat(self.digit, length - same - 1, length - same - 1)
            parts.append(b.seq(b.bytes_in(((ord(first[same]) + 1, ord(last[same]) - 1),)), rest, self._any(kind)))
        parts.append(self._join(first[same], self._above(first[same + 1 :], above, kind)))
        parts.append(self._join(last[same], self._below(last[same + 1 :], below, kind, "0")))
        inner = self._alt(parts)
        return inner if inner == b.nothing or same == 0 else b.seq(b.literal(first[:same]), inner)

    def _join(self, digits: str, rest: int) -> int:
        return rest if rest == self.builder.nothing else self.builder.seq(self.builder.literal(digits), rest)

    def _above(self, digits: str, equal: int, kind: Kind) -> int:
        """Whole parts as long as ``digits``: a larger one with any tail, or ``digits`` followed by ``equal``."""
        b, node = self.builder, equal
        for i in range(len(digits) - 1, -1, -1):
            parts = [self._join(digits[i], node)]
            if digits[i] != "9":
                after = b.repeat(self.digit, len(digits) - 1 - i, len(digits) - 1 - i)
                parts.append(b.seq(b.bytes_in(((ord(digits[i]) + 1, 0x39),)), after, self._any(kind)))
            node = self._alt(parts)
        return node

    def _below(self, digits: str, equal: int, kind: Kind, least: str) -> int:
        """Whole parts as long as ``digits``: a smaller one with any tail, or ``digits`` followed by ``equal``.

        The first digit is at least ``least``.
        """
        b, node = self.builder, equal
        for i in range(len(digits) - 1, -1, -1):
            parts = [self._join(digits[i], node)]
            floor = least if i == 0 else "0"
            if digits[i] > floor:
                after = b.repeat(self.digit, len(digits) - 1 - i, len(digits) - 1 - i)
                parts.append(b.seq(b.bytes_in(((ord(floor), ord(digits[i]) - 1),)), after, self._any(kind)))
            node = self._alt(parts)
        return node

    # ------------------------------------------------------------------ after the point
    def _any(self, kind: Kind) -> int:
        match kind:
            case Kind.NUMBER:
                return self.any_fraction
            case Kind.WHOLE:
                return self.zero_fraction
            case Kind.DIGITS:
                return self.builder.empty

    def _tail_above(self, low: _Magnitude, kind: Kind) -> int:
        """Fractions with which the whole part of the bound is at least (if open, greater than) the bound."""
        b = self.builder
        if kind is not Kind.NUMBER:
            return b.nothing if low.fraction or low.open else self._any(kind)
        if not low.fraction:
            return b.seq(self.point, self.nonzero_digits) if low.open else self.any_fraction
        node = self.nonzero_digits if low.open else self.any_digits
        for digit in reversed(low.fraction):
            parts = [b.seq(b.literal(digit), node)]
            if digit != "9":
                parts.append(b.seq(b.bytes_in(((ord(digit) + 1, 0x39),)), self.any_digits))
            node = b.alt(*parts)
        return b.seq(self.point, node)

    def _tail_below(self, high: _Magnitude, kind: Kind) -> int:
        """Fractions with which the whole part of the bound is at most (if open, less than) the bound."""
        b = self.builder
        if kind is not Kind.NUMBER or not high.fraction:
            within = high.fraction or not high.open
            return self._any(Kind.WHOLE if kind is Kind.NUMBER else kind) if within else b.nothing
        node = b.nothing if high.open else self.zeros
        for i in range(len(high.fraction) - 1, -1, -1):
            digit = high.fraction[i]
            parts = [self._join(digit, node)]
            if digit != "0":
                parts.append(b.seq(b.bytes_in(((0x30, ord(digit) - 1),)), self.any_digits))
            node = self._alt(parts)
            if i > 0:  # a number that ends here is less than the bound, whose further digits are not all 0
                node = b.optional(node)
        return b.optional(b.seq(self.point, node))

    # ------------------------------------------------------------------ scientific
    def _scientific(self, low: _Magnitude | None, high: _Magnitude | None) -> int:
        """``d.ddde±x`` with a first digit other than 0: compare the exponents, then the digits."""
        if high is not None and high.is_zero:
            return self.builder.nothing
        floor, least = _normalised(low) if low is not None and not low.is_zero else (None, -MAX_EXPONENT)
        ceiling, most = _normalised(high) if high is not None else (None, MAX_EXPONENT)
        if least < -MAX_EXPONENT:
            floor, least = None, -MAX_EXPONENT
        if most > MAX_EXPONENT:
            ceiling, most = None, MAX_EXPONENT
        if least == most:
            return self._with_exponent(floor, ceiling, most, most)
        parts = []
        if floor is not None:
            parts.append(self._with_exponent(floor, None, least, least))
            least += 1
        if ceiling is not None:
            parts.append(self._with_exponent(None, ceiling, most, most))
            most -= 1
        parts.append(self._with_exponent(None, None, least, most))
        return self._alt(parts)

    def _with_exponent(self, low: _Magnitude | None, high: _Magnitude | None, least: int, most: int) -> int:
        b = self.builder
        if least > most:
            return b.nothing
        if low is None and high is None:
            mantissa = b.seq(b.bytes_in(NONZERO), self.any_fraction)
        else:
            mantissa = self._same_length(1, low or _Magnitude("1", "", False), high, Kind.NUMBER)
        return mantissa if mantissa == b.nothing else b.seq(mantissa, self.exponent_mark, self._exponent(least, most))

    def _exponent(self, least: int, most: int) -> int:
        """Exponents in the range; a plus sign and one leading zero are optional (Python writes ``1e-07``)."""
        key = (least, most)
        node = self._exponents.get(key)
        if node is None:
            b, parts = self.builder, []
            if most >= 0:
                parts.append(b.seq(b.optional(b.literal(b"+")), self._exponent_digits(max(least, 0), most)))
            if least < 0:
                parts.append(b.seq(self.minus, self._exponent_digits(max(-most, 1), -least)))
            node = self._exponents[key] = b.alt(*parts)
        return node

    def _exponent_digits(self, least: int, most: int) -> int:
        b = self.builder
        parts = []
        if least <= 9:
            digit = b.bytes_in(((0x30 + least, 0x30 + min(most, 9)),))
            parts.append(b.seq(b.optional(b.literal(b"0")), digit))
        if most > 9:
            low, high = _Magnitude(str(max(least, 10)), "", False), _Magnitude(str(most), "", False)
            parts.append(self._plain(low, high, Kind.DIGITS))
        return b.alt(*parts)


def _normalised(bound: _Magnitude) -> tuple[_Magnitude, int]:
    """A bound other than 0 in scientific notation: the mantissa with one digit before the point, and the exponent."""
    digits = (bound.whole + bound.fraction).lstrip("0")
    exponent = len(bound.whole) - 1 if bound.whole != "0" else len(digits) - len(bound.fraction) - 1
    return _Magnitude(digits[0], digits[1:].rstrip("0"), bound.open), exponent
