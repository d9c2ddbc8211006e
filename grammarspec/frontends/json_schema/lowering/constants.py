"""Constants: makes the nodes of the values that ``enum`` and ``const`` list.

Each constant is checked in Python against the other keywords beside it; the spellings of those that pass are united.
Strings for which Python cannot decide that are intersected with the automata of those keywords instead.
"""

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
    """The node of the constants of an ``enum`` that satisfy the rest of the conjunction.

    Raises:
        UnsupportedFeature: for a constant that is not a string it cannot be decided whether it does.
    """
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
    if by_automaton:  # so many constants are matched with the patterns by the compiler, not in Python
        others.texts = ()
    strings: list[str] = []
    numbers: list[str] = []
    undecided: list[str] = []
    parts: list[int] = []
    plain = lowering.text.spelling.plain
    strict = plain and not facts.types & FRACTION
    if lowering.goals.strict_integers:  # keywords of parts may ask for integers, too
        strict = not facts.types & FRACTION or bool(facts.choices or facts.arrays or facts.objects or facts.counts)
    for constant in constants:
        bit = type_of(constant)
        answer = holds_facts(lowering.goals, others, constant)
        if answer is False:
            continue
        if by_automaton and facts.texts and bit == STRING:
            answer = None
        if answer is None and facts.choices:
            return lowering.distribute(facts)  # which decides for each alternative by itself
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
    """The node of one JSON value: a number has a few spellings, whitespace is as in all other values.

    Members come in the order of the constant, or in any order if the lowering's ``any_order`` is set.

    Args:
        strict: whether integers are spelled with digits only.

    Raises:
        GrammarSyntaxError: the constant, or a part of it, is no JSON value.
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
