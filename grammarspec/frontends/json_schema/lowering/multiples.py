"""``multipleOf``, exactly: by the last digits where they decide, else by an automaton over remainders.

A divisor is ``m * 10**-places``. If ``m`` divides a small power of ten, the last digits decide and the multiples are a
regular expression. For any other ``m`` the digits drive a remainder through ``m`` states; regular expressions for
that grow exponentially, so the states become rules (right-linear ones, which the compiler runs as an automaton).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, floor, gcd, lcm

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.json_values import Bound, Number
from grammarspec.frontends.json_schema.lowering.intervals import Intervals, Kind
from grammarspec.frontends.json_schema.lowering.remainders import Numbers, Remainders, numbers_by_remainder
from grammarspec.frontends.json_schema.spelling.json_text import NONZERO
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Multiples"]

_MAX_WORDS = 2_000
_MAX_PLACES = 30
_MAX_EXCLUDED = 32


def _divisor(value: Number) -> tuple[int, int]:
    """``(m, places)`` with ``value == m * 10**-places``; places may be negative."""
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    m = int("".join(map(str, digits)))
    while m % 10 == 0:
        m, exponent = m // 10, exponent + 1
    if len(digits) > _MAX_PLACES or abs(exponent) > _MAX_PLACES:
        raise UnsupportedFeature(f"multipleOf with more than {_MAX_PLACES} digits")
    return m, -exponent


def _fewer(divisors: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Divisors of whole numbers, as ``(m, places, wanted)``, of which fewer and smaller ones ask for the same.

    The wanted ones are one, their least common multiple. Of those that must not divide a number, only what that
    multiple leaves open is kept: a multiple of 3 is none of 6 if it is odd. And what is no multiple of 2 is none of 8.
    """
    if len(divisors) < 2:
        return divisors
    whole = [(m * 10**-places, wanted) for m, places, wanted in divisors]
    known = reduce(lcm, (n for n, wanted in whole if wanted), 1)
    left = {_left_open(n, known) for n, wanted in whole if not wanted}
    least = sorted(n for n in left if not any(n % other == 0 for other in left if other != n))
    wanted = [(*_without_zeros(known), True)] if known > 1 else []
    return [*wanted, *((*_without_zeros(n), False) for n in least)]


def _left_open(n: int, known: int) -> int:
    """The smallest number that divides exactly those multiples of ``known`` that ``n`` divides."""
    further = lcm(n, known) // known  # has the primes whose power in n is higher than in known
    return gcd(n, further ** n.bit_length())


def _without_zeros(n: int) -> tuple[int, int]:
    """``(m, -k)`` with ``n == m * 10**k``, where ``k`` is as large as possible."""
    k = 0
    while n % 10 == 0:
        n, k = n // 10, k + 1
    return n, -k


def _last_digits(m: int) -> int | None:
    """How many last digits decide whether an integer is a multiple of ``m``; ``None`` if more than three do."""
    return next((n for n in range(4) if 10**n % m == 0), None)


def _plain(value: int, places: int) -> str:
    """``value * 10**-places`` in decimal digits, without trailing zeros after the point."""
    digits = str(abs(value)).rjust(places + 1, "0")
    cut = len(digits) - places
    fraction = digits[cut:].rstrip("0")
    return ("-" if value < 0 else "") + digits[:cut] + ("." + fraction if fraction else "")


class Multiples:
    """Makes the nodes of numbers that are, or are not, multiples of some divisors."""

    def __init__(self, builder: GrammarBuilder, intervals: Intervals) -> None:
        self.builder, self.intervals = builder, intervals

    def node(
        self,
        low: Bound | None,
        high: Bound | None,
        multiples: Sequence[tuple[Number, bool]],
        kind: Kind,
        excluded: Sequence[Number],
    ) -> int:
        """The node of the multiples between two bounds.

        Args:
            low, high: the bounds; ``None`` is infinity.
            multiples: divisors, each with whether the number must be a multiple of it (or must not).
            kind: the kind of numbers.
            excluded: numbers that are left out.

        Raises:
            UnsupportedFeature: the automaton over remainders has too many states, or cannot be combined with these
                bounds or these excluded numbers.
        """
        divisors = [(*_divisor(value), wanted) for value, wanted in multiples]
        if kind is Kind.NUMBER and any(wanted and places <= 0 for _, places, wanted in divisors):
            kind = Kind.WHOLE
        if kind is not Kind.NUMBER:  # for integers, m / 10**k has the same multiples as m / gcd(m, 10**k)
            divisors = [(m // gcd(m, 10 ** max(k, 0)), min(k, 0), wanted) for m, k, wanted in divisors]
            if (1, 0, False) in divisors:
                return self.builder.nothing
            divisors = _fewer([divisor for divisor in divisors if divisor != (1, 0, True)])
            if (1, 0, False) in divisors:
                return self.builder.nothing
        if all(_last_digits(m) is not None for m, _, _ in divisors):
            parts = [self.intervals.node(low, high, kind)]
            parts += [self._regular(m, places, wanted) for m, places, wanted in divisors]
            return self.builder.terminal(self.without(self.builder.both(*parts), excluded))
        words = self._counted(low, high, divisors, kind, set(map(Fraction, excluded)))
        if words is not None:
            return words
        if excluded:
            return self._between_excluded(low, high, multiples, kind, excluded)
        if kind is Kind.NUMBER and (low or high) and all(places <= 0 for _, places, _ in divisors):
            # multiples of whole numbers are whole: so others are fractions, or whole
            fractions = self.builder.both(self.intervals.node(low, high, kind), self._regular(1, 0, False))
            whole = self.node(low, high, multiples, Kind.WHOLE, ())
            return self.builder.alt(whole, self.builder.terminal(fractions))
        return self._by_remainders(low, high, divisors, kind)

    def _between_excluded(
        self,
        low: Bound | None,
        high: Bound | None,
        multiples: Sequence[tuple[Number, bool]],
        kind: Kind,
        excluded: Sequence[Number],
    ) -> int:
        """The multiples below, between and above numbers that are left out."""
        inside = {
            value
            for value in map(Decimal, excluded)
            if (low is None or value >= low[0]) and (high is None or value <= high[0])
        }
        if len(inside) > _MAX_EXCLUDED:
            raise UnsupportedFeature("multipleOf together with so many excluded numbers")
        ends = [low, *((value, True) for value in sorted(inside)), high]
        return self.builder.alt(*(self.node(*ends, multiples, kind, ()) for ends in pairwise(ends)))

    def regular(self, divisor: Number, wanted: bool) -> int:
        """The regular node of the plain decimals that are multiples of a divisor, or of those that are not.

        Raises:
            UnsupportedFeature: the last digits do not decide whether a number is a multiple.
        """
        m, places = _divisor(divisor)
        if _last_digits(m) is None:
            raise UnsupportedFeature(f"multipleOf {divisor} of numbers that are not whole")
        return self._regular(m, places, wanted)

    def _regular(self, m: int, places: int, wanted: bool) -> int:
        multiple = self._by_last_digits(m, places)
        return multiple if wanted else self.builder.both(self._plain(), self.builder.complement(multiple))

    def _plain(self) -> int:
        b, i = self.builder, self.intervals
        whole = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), i.any_digits))
        return b.seq(b.optional(i.minus), whole, i.any_fraction)

    def without(self, node: int, excluded: Iterable[Number]) -> int:
        """A node without the spellings of some numbers; the interval from a number to itself has all of these."""
        b = self.builder
        taken = [self.intervals.node((value, False), (value, False), Kind.NUMBER) for value in excluded]
        return b.both(node, b.complement(b.alt(*taken))) if taken else node

    # ------------------------------------------------------------------ last digits
    def _by_last_digits(self, m: int, places: int) -> int:
        """Plain decimals whose value is a multiple of ``m * 10**-places``, decided by their last digits."""
        b, i = self.builder, self.intervals
        deciding = _last_digits(m)
        assert deciding is not None
        after = max(places, 0)
        ends = max(deciding - after, 0) + max(-places, 0)  # digits before the point that matter
        by_fraction: dict[str, list[str]] = {}
        if places <= 0:
            endings = [f"{n * 10**-places:0{ends}d}" if ends else "" for n in range(0, 10**deciding, m)]
            by_fraction[""] = endings
        elif deciding > after:
            for n in range(0, 10**deciding, m):
                text = f"{n:0{deciding}d}"
                by_fraction.setdefault(text[ends:].rstrip("0"), []).append(text[:ends])
        parts = []
        for fraction, endings in by_fraction.items():
            tail = b.seq(i.point, b.literal(fraction), i.zeros) if fraction else i.zero_fraction
            parts.append(b.seq(self._ending(endings, ends), tail))
        if places > 0 and deciding <= after:
            # the deciding digits are the last of `after` decimal places; whatever comes before them is free
            whole = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), i.any_digits))
            parts.append(b.seq(whole, b.optional(self._fraction(m, deciding, after))))
        return b.seq(b.optional(i.minus), b.alt(*parts))

    def _ending(self, endings: list[str], length: int) -> int:
        """Integers without sign that end in one of these endings, or equal one without its leading zeros."""
        b, i = self.builder, self.intervals
        if length == 0:
            return b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), i.any_digits))
        short = b.words(sorted({ending.lstrip("0") or "0" for ending in endings}))
        return b.alt(short, b.seq(b.bytes_in(NONZERO), i.any_digits, b.words(endings)))

    def _fraction(self, m: int, deciding: int, after: int) -> int:
        """Fractions with ``after`` places, of which the last ``deciding`` are a multiple of ``m``, then zeros.

        Places that are not written count as 0.
        """
        b, i = self.builder, self.intervals
        free = after - deciding
        tails = sorted({f"{n:0{deciding}d}".rstrip("0") for n in range(0, 10**deciding, m)} if deciding else {""})
        full = b.seq(b.repeat(i.digit, free, free), b.words(tails), i.zeros)
        shorter = b.seq(b.repeat(i.digit, 1, free), i.zeros) if free else i.builder.seq(b.literal(b"0"), i.zeros)
        return b.seq(i.point, b.alt(shorter, full) if free or deciding else shorter)

    # ------------------------------------------------------------------ few numbers
    def _counted(
        self,
        low: Bound | None,
        high: Bound | None,
        divisors: Sequence[tuple[int, int, bool]],
        kind: Kind,
        excluded: set[Fraction],
    ) -> int | None:
        """The multiples as a list of words, if the bounds leave few of them; otherwise ``None``."""
        if low is None or high is None:
            return None
        scale = max(0, *(places for _, places, _ in divisors))
        scaled = [(m * 10 ** (scale - places), wanted) for m, places, wanted in divisors]
        steps = [m for m, wanted in scaled if wanted]
        if kind is not Kind.NUMBER:
            steps.append(10**scale)
        if not steps:
            return None
        step = reduce(lcm, steps)
        unit = Fraction(step, 10**scale)
        first, last = ceil(Fraction(low[0]) / unit), floor(Fraction(high[0]) / unit)
        if last - first > _MAX_WORDS:
            return None
        texts = []
        for n in range(first, last + 1):
            value = n * step
            exact = Fraction(value, 10**scale)
            outside = (exact == low[0] and low[1]) or (exact == high[0] and high[1]) or exact in excluded
            if not outside and all((value % m == 0) == wanted for m, wanted in scaled):
                texts += [_plain(value, scale)] if value else ["0", "-0"]
        b = self.builder
        whole, others = [t for t in texts if "." not in t], [t for t in texts if "." in t]
        parts = []
        if whole:
            parts.append(b.words(whole) if kind is Kind.DIGITS else b.seq(b.words(whole), self.intervals.zero_fraction))
        if others:
            parts.append(b.seq(b.words(others), self.intervals.zeros))
        return b.alt(*parts) if parts else b.nothing

    # ------------------------------------------------------------------ remainders
    def _by_remainders(
        self, low: Bound | None, high: Bound | None, divisors: Sequence[tuple[int, int, bool]], kind: Kind
    ) -> int:
        """The multiples by an automaton whose states are the remainders of the digits read so far.

        Divisors are scaled to integers.
        """
        b = self.builder
        scale = max(0, *(places for _, places, _ in divisors))
        scaled = [(m * 10 ** (scale - places), wanted) for m, places, wanted in divisors]
        numbers = numbers_by_remainder(scaled)
        # with more places than all divisors, a number is a multiple of none
        beyond = not any(wanted for _, wanted in scaled)
        bounded = [bound for bound in (low, high) if bound is not None and bound[0] != 0]
        if bounded or any(bound is not None and bound[1] for bound in (low, high)):
            return self._bounded_remainders(low, high, numbers, kind, scale)
        machine = Remainders(b, self.intervals, numbers, kind, scale, beyond)
        unsigned = machine.unsigned()
        positive = unsigned if high is None else machine.zero()
        negative = unsigned if low is None else machine.zero()
        return b.alt(positive, b.seq(self.intervals.minus, negative))

    def _bounded_remainders(
        self,
        low: Bound | None,
        high: Bound | None,
        numbers: Numbers,
        kind: Kind,
        scale: int,
    ) -> int:
        """The same between bounds other than 0, which are compared digit by digit; for integers only."""
        if kind is Kind.NUMBER or scale:
            raise UnsupportedFeature("multipleOf with a fraction together with these bounds")
        b = self.builder
        first = None if low is None else int(Decimal(low[0]).to_integral_value(ROUND_CEILING))
        first = first + 1 if low is not None and first is not None and first == low[0] and low[1] else first
        last = None if high is None else int(Decimal(high[0]).to_integral_value(ROUND_FLOOR))
        last = last - 1 if high is not None and last is not None and last == high[0] and high[1] else last
        machine = Remainders(b, self.intervals, numbers, kind, 0, False)
        parts = []
        if last is None or last >= 0:
            parts.append(machine.between(max(first or 0, 0), last))
        if first is None or first <= 0:
            least = 0 if last is None or last > 0 else -last
            parts.append(b.seq(self.intervals.minus, machine.between(least, None if first is None else -first)))
        return b.alt(*parts)
