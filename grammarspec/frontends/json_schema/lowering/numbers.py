"""Numbers: makes the node of the numbers that satisfy a conjunction, and lists the spellings of a constant number."""

from __future__ import annotations

from decimal import Decimal

from grammarspec.errors import LimitExceeded
from grammarspec.frontends.json_schema.json_values import FRACTION, INTEGER, NUMBER, Number
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.lowering.intervals import MAX_EXPONENT, Kind
from grammarspec.frontends.json_schema.normal_form.shapes import NumberShape
from grammarspec.frontends.json_schema.spelling.json_text import NONZERO, TOLD_APART

__all__ = ["constant_spellings", "number_node", "spellings"]

_MAX_PLAIN = 400  # digits of a constant that is spelled without an exponent
_EXACT = 2**53  # integers up to it are floats, which are written without an exponent


def number_node(lowering: Lowering, shape: NumberShape) -> int:
    """The node of the numbers of a shape.

    Raises:
        UnsupportedFeature: a ``multipleOf`` cannot be enforced with these bounds.
        LimitExceeded: a bound has too many digits.
    """
    node = _numbers(lowering, shape)
    return lowering.text.number_terminal(node) if lowering.text.distinct and node != lowering.builder.nothing else node


def _numbers(lowering: Lowering, shape: NumberShape) -> int:
    text = lowering.text
    types, low, high, multiples, excluded, digits_only = shape
    strict = types == INTEGER and (digits_only or text.spelling.plain)
    if low is None and high is None and not multiples and not excluded and types != FRACTION:
        return text.number if types == NUMBER else text.strict_integer if strict else text.integer
    b, intervals = lowering.builder, lowering.intervals
    if types == FRACTION:
        parts = [intervals.node(low, high, Kind.NUMBER), _fractional(lowering)]
        parts += [lowering.multiples.regular(divisor, wanted) for divisor, wanted in multiples]
        return b.terminal(lowering.multiples.without(b.both(*parts), excluded))
    kind = Kind.NUMBER if types & FRACTION else Kind.DIGITS if strict else Kind.WHOLE
    if multiples:
        return lowering.multiples.node(low, high, multiples, kind, excluded)
    node = intervals.node(low, high, kind)
    if node == b.nothing:
        return node
    return b.terminal(lowering.multiples.without(node, excluded) if excluded else node)


def _fractional(lowering: Lowering) -> int:
    """The node of spellings of numbers that are not integers."""
    b, i = lowering.builder, lowering.intervals
    whole = b.alt(b.literal(b"0"), b.seq(b.bytes_in(NONZERO), i.any_digits))
    plain = b.seq(whole, i.point, i.any_digits, b.bytes_in(NONZERO), i.any_digits)
    small = b.seq(b.bytes_in(NONZERO), i.any_fraction, i.exponent_mark, i.minus, i.any_digits)
    # an exponent below 0 makes d.ddd less than 1
    return b.seq(b.optional(i.minus), b.alt(plain, b.both(small, b.complement(b.seq(b.anything, i.minus, i.zeros)))))


def constant_spellings(lowering: Lowering, value: Number | float, *, strict: bool = False) -> list[str]:
    """The spellings of a constant number.

    Where values are compared (``uniqueItems``), only those that can be compared are kept; there may be none.

    Args:
        strict: whether it is spelled with digits only.
    """
    found = spellings(value, strict=strict, plain=lowering.text.spelling.plain)
    return [text for text in found if TOLD_APART.fullmatch(text)] if lowering.text.distinct else found


def spellings(value: Number | float, *, strict: bool, plain: bool) -> list[str]:
    """A few spellings of a constant number: without an exponent, with ``.0``, and as ``json.dumps`` writes it.

    Args:
        value: the number.
        strict: digits only.
        plain: no exponent, and ``.0`` only if the schema writes it.

    Raises:
        LimitExceeded: with ``plain``, the number has more than 400 digits.
    """
    if type(value) is int and 0 < abs(value) <= _EXACT:  # what follows finds the same; there may be thousands of them
        return [str(value)] if strict or plain else [str(value), f"{value}.0"]
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if plain:
        return _plain(exact, strict=strict)
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    found: dict[str, None] = {}
    if len(digits) + abs(exponent) <= _MAX_PLAIN:
        shortest = _shortest(exact)
        if shortest in ("-0", "0"):
            return ["0"] if strict else ["0", "0.0", "-0", "-0.0"]
        if strict:
            return [shortest]
        found[shortest] = None
        if "." not in shortest:
            found[shortest + ".0"] = None
    if not strict:
        written = str(exact).replace("E", "e")  # as the schema writes it, trailing zeros included
        found.update({written: None, written.replace("e+", "e"): None})
        if abs(exact.adjusted()) <= MAX_EXPONENT:
            as_float = float(exact)
            if Decimal(repr(as_float)) == exact:
                found[repr(as_float)] = None
    return list(found)


def _plain(exact: Decimal, *, strict: bool) -> list[str]:
    """The spellings without an exponent: the shortest, and unless ``strict`` the one with the schema's zeros.

    Raises:
        LimitExceeded: the number has more than 400 digits.
    """
    _, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) + abs(exponent) > _MAX_PLAIN:
        raise LimitExceeded(f'a constant of more than {_MAX_PLAIN} digits with numbers="plain"')
    shortest = _shortest(exact)
    found = {"0" if shortest == "-0" else shortest: None}
    if not strict:
        found[format(exact, "f")] = None
    return list(found)


def _shortest(exact: Decimal) -> str:
    text = format(exact, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
