"""Constants: makes the nodes of the values that ``enum`` and ``const`` list."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.json_schema.json_values import ARRAY, INTEGER, NUMBER, OBJECT, STRING, check_names, type_of
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.lowering.members import Asked, Member, remembered_members
from grammarspec.frontends.json_schema.lowering.numbers import constant_spellings
from grammarspec.frontends.json_schema.lowering.strings import string_node
from grammarspec.frontends.json_schema.normal_form.shapes import Constants

__all__ = ["constants_node"]


def constants_node(lowering: Lowering, shape: Constants) -> int:
    """The node of some constants: the spellings of all of them are united.

    Raises:
        GrammarError: a pattern that decides on strings is malformed or not supported, or a number has too many digits.
    """
    strings: list[str] = []
    numbers: list[str] = []
    parts: list[int] = []
    plain = lowering.text.spelling.plain
    strict = shape.digits_only or (plain and shape.whole)
    for constant in shape.values:
        bit = type_of(constant)
        if bit == STRING:
            strings.append(constant)
        elif bit & NUMBER:
            numbers.extend(constant_spellings(lowering, constant, strict=strict and bit == INTEGER))
        else:
            parts.append(_constant(lowering, constant, strict=strict and not plain))
    if strings:
        parts.append(lowering.text.strings(strings))
    if numbers:
        parts.append(lowering.text.words(numbers))
    if shape.undecided is not None:
        parts.append(string_node(lowering, shape.undecided))
    return lowering.any_of(parts)


def _constant(lowering: Lowering, constant: Any, *, strict: bool = False) -> int:
    """The node of one JSON value: a number has a few spellings, whitespace is as in all other values.

    Members come in the order of the constant, or in any order if the lowering's ``any_order`` is set.

    Args:
        strict: whether integers are spelled with digits only.

    Raises:
        GrammarSyntaxError: the constant, or a part of it, is no JSON value.
        UnsupportedFeature: it is an array or an object, and these are written as elements.
    """
    if lowering.container:
        return lowering.inside(lambda: _constant(lowering, constant, strict=strict))
    b, text = lowering.builder, lowering.text
    match constant:
        case None:
            return text.null
        case True:
            return text.true
        case False:
            return text.false
        case str():
            return text.strings([constant])
        case int() | float() | Decimal():
            whole = type_of(constant) == INTEGER  # which refuses infinity and NaN
            words = constant_spellings(lowering, constant, strict=strict and whole)
            return b.literal(words[0]) if len(words) == 1 else b.words(words) if words else b.nothing
        case []:
            return text.empty_array
        case {} if not constant:
            return text.empty_object
        case list() | dict() if lowering.in_elements:
            raise UnsupportedFeature("an array or object as a constant, where these are written as elements")
        case list():
            lowering.enter(ARRAY)
            items = [_constant(lowering, item, strict=strict) for item in constant]
            lowering.leave()
            parts = [text.open_array, items[0]]
            for item in items[1:]:
                parts += (text.comma, item)
            return b.seq(*parts, text.close_array)
        case dict():
            members = []
            lowering.enter(OBJECT)
            check_names(constant)
            for name, member in constant.items():
                node = _constant(lowering, member, strict=strict)
                members.append(b.seq(*text.member(text.name(name), [("", node)])))
            lowering.leave()
            if lowering.any_order and len(members) > 1:
                required = [Member(member, required=True, free=True) for member in members]
                return remembered_members(lowering, required, Asked(None))
            parts = [text.open_object, members[0]]
            for node in members[1:]:
                parts += (text.comma, node)
            return b.seq(*parts, text.close_object)
    raise GrammarSyntaxError(f"{constant!r:.60} is no JSON value")
