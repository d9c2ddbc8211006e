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
from grammarspec.frontends.json_schema.spelling.json_text import NONZERO
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Multiples"]

_MAX_STATES = 20_000
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
            divisors = [divisor for divisor in divisors if divisor != (1, 0, True)]
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

        Divisors are scaled to integers, and their least common multiple is the modulus.
        """
        b = self.builder
        scale = max(0, *(places for _, places, _ in divisors))
        scaled = [(m * 10 ** (scale - places), wanted) for m, places, wanted in divisors]
        modulus = reduce(lcm, (m for m, _ in scaled))
        if modulus > _MAX_STATES:
            raise UnsupportedFeature(f"multipleOf whose remainders need {modulus} states (at most {_MAX_STATES})")
        accept = [all((r % m == 0) == wanted for m, wanted in scaled) for r in range(modulus)]
        # with more places than all divisors, a number is a multiple of none
        beyond = not any(wanted for _, wanted in scaled)
        bounded = [bound for bound in (low, high) if bound is not None and bound[0] != 0]
        if bounded or any(bound is not None and bound[1] for bound in (low, high)):
            return self._bounded_remainders(low, high, accept, kind, scale)
        machine = _Remainders(b, self.intervals, accept, kind, scale, beyond)
        unsigned = machine.unsigned()
        positive = unsigned if high is None else machine.zero()
        negative = unsigned if low is None else machine.zero()
        return b.alt(positive, b.seq(self.intervals.minus, negative))

    def _bounded_remainders(
        self, low: Bound | None, high: Bound | None, accept: list[bool], kind: Kind, scale: int
    ) -> int:
        """The same between bounds other than 0, which are compared digit by digit; for integers only."""
        if kind is Kind.NUMBER or scale:
            raise UnsupportedFeature("multipleOf with a fraction together with these bounds")
        b = self.builder
        first = None if low is None else int(Decimal(low[0]).to_integral_value(ROUND_CEILING))
        first = first + 1 if low is not None and first is not None and first == low[0] and low[1] else first
        last = None if high is None else int(Decimal(high[0]).to_integral_value(ROUND_FLOOR))
        last = last - 1 if high is not None and last is not None and last == high[0] and high[1] else last
        machine = _Remainders(b, self.intervals, accept, kind, 0, False)
        parts = []
        if last is None or last >= 0:
            parts.append(machine.between(max(first or 0, 0), last))
        if first is None or first <= 0:
            least = 0 if last is None or last > 0 else -last
            parts.append(b.seq(self.intervals.minus, machine.between(least, None if first is None else -first)))
        return b.alt(*parts)


class _Remainders:
    """The automaton over remainders: one right-linear rule for each remainder and number of digits still to come.

    Args:
        accept: for each remainder, whether a number with this remainder is accepted; its length is the modulus.
        kind: the kind of numbers.
        scale: the number of decimal places that take part in the remainder.
        beyond: whether numbers with further places (other than 0) are accepted.
    """

    def __init__(
        self,
        builder: GrammarBuilder,
        intervals: Intervals,
        accept: list[bool],
        kind: Kind,
        scale: int,
        beyond: bool,
    ) -> None:
        self.builder, self.intervals = builder, intervals
        self.accept, self.modulus = accept, len(accept)
        self.kind, self.scale, self.beyond = kind, scale, beyond
        self._calls: dict[tuple[int | None, int], int] = {}
        self._pending: list[tuple[int, int | None, int]] = []
        self._classes: dict[tuple[int, ...], int] = {}

    def zero(self) -> int:
        """The number 0 without its sign, if it is accepted."""
        b, i = self.builder, self.intervals
        if not self.accept[0]:
            return b.nothing
        return b.literal(b"0") if self.kind is Kind.DIGITS else b.seq(b.literal(b"0"), i.zero_fraction)

    def unsigned(self) -> int:
        """The accepted numbers without sign, of any length."""
        b = self.builder
        by_next: dict[int, list[int]] = {}
        for digit in range(1, 10):
            by_next.setdefault(digit % self.modulus, []).append(digit)
        parts = [b.seq(b.literal(b"0"), self._end(0))]
        parts += [b.seq(self._digits(digits), self._state(None, r)) for r, digits in by_next.items()]
        self._finish()
        return b.alt(*parts)

    def between(self, least: int, most: int | None) -> int:
        """The accepted integers from ``least`` to ``most`` (``None``: no upper bound), none of which is negative."""
        b = self.builder
        shortest, longest = len(str(least)), None if most is None else len(str(most))
        if most is not None and least > most:
            return b.nothing
        parts = []
        if longest is None:
            parts.append(self._of_length(str(least), "9" * shortest))
            parts.append(self._longer(shortest))
        else:
            for length in range(shortest, longest + 1):
                low = str(least) if length == shortest else "1" + "0" * (length - 1)
                parts.append(self._of_length(low, str(most) if length == longest else "9" * length))
        self._finish()
        return b.alt(*parts)

    def _longer(self, length: int) -> int:
        """The accepted integers of more than ``length`` digits."""
        b = self.builder
        parts = []
        for digit in range(1, 10):
            parts.append(b.seq(b.literal(str(digit)), self._counted_then_free(length, digit % self.modulus)))
        return b.alt(*parts)

    def _counted_then_free(self, count: int, remainder: int) -> int:
        return self._state(-count, remainder) if count else self._state(None, remainder)

    def _of_length(self, low: str, high: str) -> int:
        """The accepted integers between two bounds of the same number of digits."""
        b, length = self.builder, len(low)

        def tight(i: int, remainder: int, on_low: bool, on_high: bool) -> int:
            if not on_low and not on_high:
                return self._state(length - i, remainder)
            if i == length:
                return self._end(remainder)
            first = int(low[i]) if on_low else 0
            last = int(high[i]) if on_high else 9
            parts = []
            for digit in range(first, last + 1):
                rest = tight(
                    i + 1, (remainder * 10 + digit) % self.modulus, on_low and digit == first, on_high and digit == last
                )
                parts.append(b.seq(b.literal(str(digit)), rest))
            return b.alt(*parts)

        return tight(0, 0, True, True)

    def _state(self, left: int | None, remainder: int) -> int:
        """A call of the rule of a state.

        Args:
            left: the number of digits still to come; ``None``: any number; ``-n``: at least n.
            remainder: the remainder of the digits read so far.

        Raises:
            UnsupportedFeature: there are too many states.
        """
        key = (left, remainder)
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) > _MAX_STATES:
                raise UnsupportedFeature(f"multipleOf that needs more than {_MAX_STATES} states with these bounds")
            rule = self.builder.rule("multiple")
            call = self._calls[key] = self.builder.call(rule)
            self._pending.append((rule, left, remainder))
        return call

    def _finish(self) -> None:
        """Define the rules of all states that have been called."""
        b = self.builder
        while self._pending:
            rule, left, remainder = self._pending.pop()
            if left == 0:
                b.define(rule, self._end(remainder))
                continue
            following = None if left in (None, -1) else left + 1 if left is not None and left < 0 else (left or 0) - 1
            by_next: dict[int, list[int]] = {}
            for digit in range(10):
                by_next.setdefault((remainder * 10 + digit) % self.modulus, []).append(digit)
            parts = [b.seq(self._digits(digits), self._state(following, r)) for r, digits in by_next.items()]
            if left is None:
                parts.append(self._end(remainder))
            b.define(rule, b.alt(*parts))

    def _digits(self, digits: list[int]) -> int:
        key = tuple(digits)
        node = self._classes.get(key)
        if node is None:
            node = self._classes[key] = self.builder.bytes_in([(0x30 + digit, 0x30 + digit) for digit in digits])
        return node

    def _end(self, remainder: int) -> int:
        """What may follow the digits before the point, given their remainder."""
        b, i = self.builder, self.intervals
        if self.kind is Kind.DIGITS:
            return b.empty if self.accept[remainder] else b.nothing
        if self.kind is Kind.WHOLE:
            return i.zero_fraction if self.accept[remainder] else b.nothing
        return self._places(remainder)

    def _places(self, remainder: int) -> int:
        """The fraction: ``scale`` places that take part in the remainder, and further ones.

        Places that are not written count as 0. Further places are zeros, or any digits if :attr:`beyond` is set.
        """
        b, i = self.builder, self.intervals
        remainders = range(self.modulus)
        ends = [[self.accept[r * 10**left % self.modulus] for r in remainders] for left in range(self.scale + 1)]
        memo: dict[tuple[int, int], int] = {}

        def after_point(done: int, r: int) -> int:
            """At least one more digit, after ``done`` places with the remainder ``r``."""
            key = (done, r)
            if key not in memo:
                if done == self.scale:
                    rest = b.nothing
                    if self.accept[r] and self.beyond:
                        rest = b.repeat(i.digit, 1, None)
                    elif self.accept[r]:
                        rest = b.repeat(b.literal(b"0"), 1, None)
                    elif self.beyond:
                        rest = i.nonzero_digits
                    memo[key] = rest
                else:
                    parts = []
                    for digit in range(10):
                        next_r = (r * 10 + digit) % self.modulus
                        more = after_point(done + 1, next_r)
                        if ends[self.scale - done - 1][next_r]:
                            more = b.optional(more)
                        parts.append(b.seq(b.literal(str(digit)), more))
                    memo[key] = b.alt(*parts)
            return memo[key]

        fraction = b.seq(i.point, after_point(0, remainder))
        return b.optional(fraction) if ends[self.scale][remainder] else fraction
