"""The shapes of ``enum`` and ``const``.

Each constant is checked in Python against the other keywords beside it. Strings for which Python cannot decide that are
left to the compiler, together with those keywords.
"""

from __future__ import annotations

from typing import Any

from grammarspec.errors import UnsupportedFeature
from grammarspec.frontends.json_schema.json_values import FRACTION, STRING
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.evaluation import holds_facts
from grammarspec.frontends.json_schema.normal_form.scalars import string_shape
from grammarspec.frontends.json_schema.normal_form.shapes import Constants

__all__ = ["constants"]

_MANY = 32  # so many constants are matched with patterns by the compiler, not in Python


def constants(goals: Analysis, facts: Conjunction) -> Constants | None:
    """The constants of an ``enum`` that satisfy the rest of its conjunction.

    Returns:
        The constants; ``None`` if that depends on which alternative of a disjunction holds.

    Raises:
        UnsupportedFeature: for a constant that is not a string it cannot be decided whether it does.
    """
    assert facts.enum is not None
    if all(isinstance(constant, str) for constant in facts.enum):
        if not facts.types & STRING:
            return Constants(())
        if not facts.choices and not facts.texts and not facts.excluded and facts.max_length is None:
            return Constants([constant for constant in facts.enum if len(constant) >= facts.min_length])
    return _mixed(goals, facts, facts.enum)


def _mixed(goals: Analysis, facts: Conjunction, listed: Any) -> Constants | None:
    others = facts.copy()
    others.enum = None
    by_automaton = len(listed) > _MANY and not facts.choices
    if by_automaton:
        others.texts = ()
    allowed: list[Any] = []
    undecided: list[str] = []
    for constant in listed:
        answer = holds_facts(goals, others, constant)
        if answer is False:
            continue
        if answer and not (by_automaton and facts.texts and isinstance(constant, str)):
            allowed.append(constant)
        elif facts.choices:
            return None
        elif isinstance(constant, str):
            undecided.append(constant)
        else:
            where = facts.where("enum", "const")
            raise UnsupportedFeature(f"whether {constant!r:.60} satisfies the other keywords beside enum", where=where)
    whole = not facts.types & FRACTION
    # keywords of parts may ask for integers, too
    parts = bool(facts.choices or facts.arrays or facts.objects or facts.counts)
    shape = string_shape(facts)._replace(words=undecided) if undecided else None
    return Constants(allowed, shape, whole, goals.strict_integers and (whole or parts))
