"""The automaton over remainders, which finds out whether a number is a multiple by all its digits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from math import gcd, lcm
from typing import Any, Final, NamedTuple

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.lowering.intervals import Intervals, Kind
from grammarspec.grammars.builder import GrammarBuilder

__all__ = ["Numbers", "Remainders", "numbers_by_remainder"]

_MAX_STATES: Final = 20_000
_MAX_MODULUS: Final = 50_000  # remainders; many of them may be one state
_MAX_BELOW: Final = 2_000  # numbers below a bound that are followed digit by digit
_FRACTION: Final = 120  # steps for each remainder and number of places behind the point


class Numbers(NamedTuple):
    """Numbers that are accepted by their remainder.

    Attributes:
        accept: for each remainder, whether a number with this remainder is accepted; its length is the modulus.
        states: for each remainder, the one that stands for it (see :func:`_states`).
        step: what divides all numbers that are accepted.
    """

    accept: list[bool]
    states: Sequence[int]
    step: int


def numbers_by_remainder(divisors: Sequence[tuple[int, bool]]) -> Numbers:
    """The numbers that some divisors divide, and some others do not; their least common multiple is the modulus.

    Args:
        divisors: each with whether it must divide a number.

    Raises:
        UnsupportedFeature: the automaton would have too many states.
    """
    divisors = list(dict.fromkeys(divisors))
    modulus = reduce(lcm, (m for m, _ in divisors))
    states = _states(modulus, [m for m, _ in divisors]) if modulus <= _MAX_MODULUS else ()
    if modulus > _MAX_MODULUS or len(set(states)) > _MAX_STATES:
        raise UnsupportedFeature(f"multipleOf whose remainders need more than {_MAX_STATES} states")
    accept = [all((r % m == 0) == wanted for m, wanted in divisors) for r in range(modulus)]
    return Numbers(accept, states, reduce(lcm, (m for m, wanted in divisors if wanted), 1))


def _states(modulus: int, divisors: Sequence[int]) -> Sequence[int]:
    """For each remainder, one remainder that stands for all those that no further digits can tell apart.

    Only the last digits decide about powers of 2 and 5. So what matters of a remainder by these is found by refining a
    partition (Moore 1956), and combined with the remainder by the rest of the modulus (the Chinese remainder theorem).
    """
    tail = gcd(modulus, 10 ** modulus.bit_length())
    head = modulus // tail
    parts = [gcd(divisor, tail) for divisor in divisors]
    if tail == 1:
        return range(modulus)
    group: list[Any] = [tuple(x % part == 0 for part in parts) for x in range(tail)]
    count = 0
    while len(set(group)) > count:
        count = len(set(group))
        numbers: dict[Any, int] = {}
        group = [
            numbers.setdefault((group[x], *(group[(10 * x + digit) % tail] for digit in range(10))), x)
            for x in range(tail)
        ]
    inverse = pow(head, -1, tail)
    return [(r + head * ((group[r % tail] - r) * inverse % tail)) % modulus for r in range(modulus)]


class Remainders:
    """The automaton over remainders: one right-linear rule for each remainder and number of digits still to come.

    Args:
        numbers: the numbers that are accepted, by their remainder.
        kind: the kind of numbers.
        scale: the number of decimal places that take part in the remainder.
        beyond: whether numbers with further places (other than 0) are accepted.
    """

    def __init__(
        self,
        builder: GrammarBuilder,
        intervals: Intervals,
        numbers: Numbers,
        kind: Kind,
        scale: int,
        beyond: bool,
    ) -> None:
        self.builder, self.intervals = builder, intervals
        self.accept, self.states, self.step = numbers
        self.modulus = len(numbers.accept)
        self.kind, self.scale, self.beyond = kind, scale, beyond
        self._calls: dict[tuple[int | None, int], int] = {}
        self._pending: list[tuple[int, int | None, int]] = []
        self._classes: dict[tuple[int, ...], int] = {}
        self._fractions: dict[tuple[int, int], int] = {}

    def zero(self) -> int:
        """The number 0 without its sign, if it is accepted."""
        b, i = self.builder, self.intervals
        if not self.accept[0]:
            return b.nothing
        return b.literal(b"0") if self.kind is Kind.DIGITS else b.seq(b.literal(b"0"), i.zero_fraction)

    def unsigned(self) -> int:
        """The accepted numbers without sign, of any length.

        Raises:
            UnsupportedFeature: there are too many states.
        """
        b = self.builder
        by_next: dict[int, list[int]] = {}
        for digit in range(1, 10):
            by_next.setdefault(self.states[digit % self.modulus], []).append(digit)
        parts = [b.seq(b.literal(b"0"), self._end(0))]
        parts += [b.seq(self._digits(digits), self._state(None, r)) for r, digits in by_next.items()]
        self._finish()
        return b.alt(*parts)

    def between(self, least: int, most: int | None) -> int:
        """The accepted integers from ``least`` to ``most`` (``None``: no upper bound), none of which is negative.

        Raises:
            UnsupportedFeature: there are too many states.
        """
        b = self.builder
        shortest, longest = len(str(least)), None if most is None else len(str(most))
        if most is not None and least > most:
            return b.nothing
        parts = []
        if longest is None and least // self.step <= _MAX_BELOW:
            parts.append(self._without_few(least))
        elif longest is None:
            parts.append(self._of_length(str(least), "9" * shortest))
            parts.append(self._longer(shortest))
        else:
            for length in range(shortest, longest + 1):
                low = str(least) if length == shortest else "1" + "0" * (length - 1)
                parts.append(self._of_length(low, str(most) if length == longest else "9" * length))
        self._finish()
        return b.alt(*parts)

    def _without_few(self, least: int) -> int:
        """The accepted integers from ``least`` on, of which few are less.

        The digits are followed exactly while they may become one of these few, and by their remainder from then on.
        """
        b = self.builder
        few = [str(n) for n in range(0, least, self.step) if self.accept[n % self.modulus]]
        begun = {text[:size] for text in few for size in range(len(text) + 1)}

        def after(text: str) -> int:
            parts = []
            for digit in range(10) if text else range(1, 10):
                longer = f"{text}{digit}"
                rest = after(longer) if longer in begun else self._state(None, int(longer) % self.modulus)
                parts.append(b.seq(b.literal(str(digit)), rest))
            return b.alt(*parts)

        return b.alt(after(""), self.zero() if least == 0 else b.nothing)

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
        bound_below, bound_above = len(low.rstrip("0")), len(high.rstrip("9"))  # behind these any digits may follow

        def tight(i: int, remainder: int, on_low: bool, on_high: bool) -> int:
            on_low, on_high = on_low and i < bound_below, on_high and i < bound_above
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
        remainder = self.states[remainder]
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
                by_next.setdefault(self.states[(remainder * 10 + digit) % self.modulus], []).append(digit)
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
        fraction = self.builder.seq(self.intervals.point, self._after_point(0, remainder))
        return self.builder.optional(fraction) if self._accepted_with[self.scale][remainder] else fraction

    @cached_property
    def _accepted_with(self) -> list[list[bool]]:
        """By the number of zeros appended to a number, then by its remainder: whether the result is accepted."""
        return [
            [self.accept[r * 10**zeros % self.modulus] for r in range(self.modulus)] for zeros in range(self.scale + 1)
        ]

    def _after_point(self, done: int, r: int) -> int:
        """At least one more digit, after ``done`` places with the remainder ``r``."""
        node = self._fractions.get((done, r))
        if node is not None:
            return node
        b, i = self.builder, self.intervals
        b.budget.spend(_FRACTION)
        if done < self.scale:
            parts = []
            for digit in range(10):
                next_r = (r * 10 + digit) % self.modulus
                more = self._after_point(done + 1, next_r)
                if self._accepted_with[self.scale - done - 1][next_r]:
                    more = b.optional(more)
                parts.append(b.seq(b.literal(str(digit)), more))
            node = b.alt(*parts)
        elif self.accept[r]:
            node = b.repeat(i.digit if self.beyond else b.literal(b"0"), 1, None)
        else:
            node = i.nonzero_digits if self.beyond else b.nothing
        self._fractions[done, r] = node
        return node
