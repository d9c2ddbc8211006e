"""Constants: ``enum`` and ``const``, and any JSON value written out."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.json_values import (
    ARRAY,
    FRACTION,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    type_of,
)
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.lowering.members import Asked, Member, remembered_members
from grammarspec.frontends.json_schema.lowering.numbers import constant_spellings
from grammarspec.frontends.json_schema.lowering.strings import text_of
from grammarspec.frontends.json_schema.meaning.evaluation import holds_facts
from grammarspec.frontends.json_schema.spelling.json_text import SMALL

__all__ = ["constant_node", "enum_node"]


def enum_node(lowering: Lowering, facts: Conjunction) -> int:
    """The constants of an enumeration that satisfy everything else, too."""
    assert facts.enum is not None
    constants = facts.enum
    only_strings = all(isinstance(constant, str) for constant in constants)
    if only_strings and not facts.types & STRING:
        return lowering.builder.nothing
    plain = not facts.choices
    if only_strings and plain and not facts.texts and not facts.excluded and facts.max_length is None:
        if facts.min_length > 0:
            constants = [constant for constant in constants if len(constant) >= facts.min_length]
        return lowering.text.strings(constants) if constants else lowering.builder.nothing
    return _mixed(lowering, facts, constants)


def _mixed(lowering: Lowering, facts: Conjunction, constants: Sequence[Any]) -> int:
    others = facts.copy()
    others.enum = None
    by_automaton = len(constants) > SMALL and not facts.choices
    if by_automaton:  # let the compiler match the patterns
        others.texts = ()
    strings: list[str] = []
    numbers: list[str] = []
    undecided: list[str] = []
    parts: list[int] = []
    plain = lowering.text.spelling.plain
    strict = plain and not facts.types & FRACTION
    if lowering.goals.strict_integers:  # whether a number must be an integer may be asked further in, too
        strict = not facts.types & FRACTION or bool(facts.choices or facts.arrays or facts.objects or facts.counts)
    for constant in constants:
        bit = type_of(constant)
        answer = holds_facts(lowering.goals, others, constant)
        if answer is False:
            continue
        if by_automaton and facts.texts and bit == STRING:
            answer = None
        if answer is None and facts.choices:
            return lowering.distribute(facts)  # and ask again, of each alternative
        if answer is None:
            if bit == STRING:
                undecided.append(constant)
                continue
            where = facts.where("enum", "const")
            raise UnsupportedFeature(f"whether {constant!r:.60} satisfies the other keywords beside enum", where=where)
        if bit == STRING:
            strings.append(constant)
        elif bit & NUMBER:
            numbers.extend(constant_spellings(lowering, constant, strict=strict and bit == INTEGER))
        else:
            parts.append(constant_node(lowering, constant, strict=strict and not plain))
    if strings:
        parts.append(lowering.text.strings(strings))
    if numbers:
        parts.append(lowering.text.words(numbers))
    if undecided:
        text = text_of(lowering, facts, undecided)
        parts.append(lowering.text.exact_string(text.node, asserting=text.asserting))
    return lowering.any_of(parts)


def constant_node(lowering: Lowering, constant: Any, *, strict: bool = False) -> int:
    """One JSON value: members in the order given (or any), whitespace as everywhere, numbers in a few spellings.

    ``strict``: whole numbers in digits only.
    """
    if lowering.container:
        return lowering.inside(lambda: constant_node(lowering, constant, strict=strict))
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
            words = constant_spellings(lowering, constant, strict=strict and type_of(constant) == INTEGER)
            return b.literal(words[0]) if len(words) == 1 else b.words(words) if words else b.nothing
        case []:
            return text.empty_array
        case {} if not constant:
            return text.empty_object
        case list():
            lowering.enter(ARRAY)
            items = [constant_node(lowering, item, strict=strict) for item in constant]
            lowering.leave()
            parts = [text.open_array, items[0]]
            for item in items[1:]:
                parts += (text.comma, item)
            return b.seq(*parts, text.close_array)
        case dict():
            members = []
            lowering.enter(OBJECT)
            for name, member in constant.items():
                if not isinstance(name, str):
                    raise GrammarSyntaxError(f"{name!r:.60} is no name of a JSON object's member")
                node = constant_node(lowering, member, strict=strict)
                members.append(text.member(text.name(name), node))
            lowering.leave()
            if lowering.any_order and len(members) > 1:
                required = [Member(member, required=True, free=True) for member in members]
                return remembered_members(lowering, required, Asked(None))
            parts = [text.open_object, members[0]]
            for node in members[1:]:
                parts += (text.comma, node)
            return b.seq(*parts, text.close_object)
    raise GrammarSyntaxError(f"{constant!r:.60} is no JSON value")
