"""Choices that look at one property: ``if`` the type is this, ``then`` that, for each of thirty types.

Split one by one, each choice would leave all others open in its second half. Split by the value of the property that
they look at, each case settles them all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from grammarspec.errors import GrammarError
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.keywords.combining import Not
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.constants import Constants
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.json_values import ALL_TYPES, OBJECT, canonical
from grammarspec.frontends.json_schema.keywords.objects import Members, Required, absent
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT, Types
from grammarspec.frontends.json_schema.meaning import evaluation

__all__ = ["Slots", "Tags"]

_FEW = 3  # choices that look at a property, from which on it is a tag
_MOST = 256  # values that are told apart

_ASKS = Concern.TYPES | Concern.REQUIRED | Concern.MEMBERS | Concern.CHOICES

_Constants = Mapping[Any, Any]  # by their canonical forms


@dataclass(frozen=True, slots=True)
class _Other:
    """Any value but these constants."""

    constants: frozenset[Any]


class _No(Enum):
    """The property is not there, or the value is no object."""

    PROPERTY = auto()
    OBJECT = auto()


Slots = Sequence[Sequence[Subschema]]
"""Choices: of each, one alternative must hold."""

_Group = Sequence[Any]  # constants; or one of the above


class Tags:
    """Finds the properties that the choices of one document look at."""

    def __init__(self, goals: Goals) -> None:
        self.goals = goals
        self._looks: dict[Subschema, Mapping[str, list[_Constants]]] = {}
        self._told: dict[tuple[Subschema, str, Any], bool | None] = {}
        self._facts: dict[tuple[Subschema, ...], Conjunction] = {}

    def cases(self, facts: Conjunction, slots: Slots) -> list[tuple[Subschema, Slots]]:
        """Schemas one of which holds for any value, each with what it leaves of the choices.

        They tell apart the constants that the most choices compare a property with. There are none, if no property is
        looked at by several choices, or what it is has been settled.
        """
        looks: dict[str, list[_Constants]] = defaultdict(list)
        counts: Counter[str] = Counter()
        for slot in slots:
            if len(slot) > 1:
                seen = [self._looked_at(alternative) for alternative in slot]
                for name in dict.fromkeys(name for found in seen for name in found):
                    looks[name] += [constants for found in seen for constants in found.get(name, ())]
                    counts[name] += 1
        for name, count in counts.most_common():
            cases = self._split(facts, name, looks[name]) if count >= _FEW else []
            if len(cases) > 1 and not any(case in facts.members for case, _ in cases):
                return [(case, [self._left(slot, name, group) for slot in slots]) for case, group in cases]
        return []

    def _gather(self, goal: Sequence[Subschema]) -> Conjunction:
        """What small schemas ask, which are met again and again."""
        key = tuple(goal)
        if key not in self._facts:
            self._facts[key] = self.goals.gather(goal)
        return self._facts[key]

    def _looked_at(self, alternative: Subschema, depth: int = 3) -> Mapping[str, list[_Constants]]:
        """For each property that an alternative compares with constants, these."""
        known = self._looks.get(alternative)
        if known is None:
            looks: dict[str, list[_Constants]] = defaultdict(list)
            try:
                facts = self._gather([alternative])
                for facet in facts.objects:
                    for name, schema in facet.properties.items():
                        value = self._gather([schema])
                        constants = value.excluded if value.enum is None else value.enum
                        if constants:
                            looks[name].append({canonical(constant): constant for constant in constants})
                for inner in (inner for choice in facts.choices for inner in choice if depth):
                    for name, found in self._looked_at(inner, depth - 1).items():
                        looks[name] += found
            except GrammarError:  # raised again, with its place, where the alternative is lowered
                pass
            known = self._looks[alternative] = looks
        return known

    def _split(self, facts: Conjunction, name: str, looks: Sequence[_Constants]) -> list[tuple[Subschema, _Group]]:
        """The property is one of some constants that all who look at it treat alike; or another; or not there."""
        schemas = evaluation.property_schemas(facts, name)
        constants = {key: constant for some in looks for key, constant in some.items()}
        if schemas is None or len(constants) > _MOST:
            return []
        value = self.goals.gather(schemas)
        alike: dict[tuple[bool, ...], list[Any]] = defaultdict(list)
        for key, constant in constants.items():
            if evaluation.holds_facts(self.goals, value, constant) is not False:
                alike[tuple(key in some for some in looks)].append(constant)
        groups: list[_Group] = list(alike.values())
        if value.types and (value.allowed_constants is None or not value.allowed_constants <= constants.keys()):
            groups.append([_Other(frozenset(constants))])
        if name not in facts.required:
            groups.append([_No.PROPERTY])
        if facts.types != OBJECT:
            groups.append([_No.OBJECT])
        origin = facts.first
        return [(self._case(origin, name, group, constants), group) for group in groups]

    def _case(self, origin: Subschema, name: str, group: _Group, constants: _Constants) -> Subschema:
        """That the property is of the group."""

        def make() -> Subschema:
            match group[0]:
                case _No.OBJECT:
                    return origin.derived(Types(ALL_TYPES & ~OBJECT))
                case _No.PROPERTY:
                    return origin.derived(IS_OBJECT, absent(name))
                case _Other():
                    value = origin.derived(Not(origin.derived(Constants(list(constants.values())))))
                case _:
                    value = origin.derived(Constants(group))
            return origin.derived(IS_OBJECT, Required((name,)), Members({name: value}))

        case: Subschema = origin.derive(("case", name, *map(_key, group)), make)
        return case

    def _left(self, slot: Sequence[Subschema], name: str, group: _Group) -> Sequence[Subschema]:
        """The alternatives that may hold where the property is of the group: only one, if one surely does."""
        left = []
        for alternative in slot:
            answers = {self._holds(alternative, name, constant) for constant in group}
            if answers == {True}:
                return [ANYTHING]
            if answers != {False}:
                left.append(alternative)
        return left

    def _holds(self, schema: Subschema, name: str, constant: Any) -> bool | None:
        """Whether objects whose property is this constant satisfy a schema; ``None`` if that depends on more."""
        key = (schema, name, _key(constant))
        if key not in self._told:
            try:
                self._told[key] = self._find(schema, name, constant)
            except GrammarError:
                self._told[key] = None
        return self._told[key]

    def _find(self, schema: Subschema, name: str, constant: Any) -> bool | None:
        facts = self._gather([schema])
        types = ALL_TYPES & ~OBJECT if constant is _No.OBJECT else OBJECT
        if not facts.types & types or (constant is _No.PROPERTY and name in facts.required):
            return False
        answer: bool | None = True
        if not isinstance(constant, _No):
            schemas = evaluation.property_schemas(facts, name)
            if schemas is None:
                answer = None
            elif isinstance(constant, _Other):
                answer = self._of_others(schemas, constant.constants)
            else:
                answer = evaluation.holds_facts(self.goals, self._gather(schemas), constant)
        for alternatives in facts.choices:
            answers = [self._holds(alternative, name, constant) for alternative in alternatives]
            if all(one is False for one in answers):
                return False
            if True not in answers:
                answer = answer and None
        return answer and None if self._asks_more(facts, types, name) else answer

    def _asks_more(self, facts: Conjunction, types: int, name: str) -> bool:
        """Whether a conjunction asks anything of values of these types that is not about the property."""
        if facts.types & types != types or facts.asked & ~_ASKS:
            return True
        if types != OBJECT:
            return False
        return not facts.required.keys() <= {name} or any(
            facet.patterns or facet.rest is not ANYTHING or not facet.properties.keys() <= {name}
            for facet in facts.objects
        )

    def _of_others(self, schemas: Sequence[Subschema], constants: frozenset[Any]) -> bool | None:
        """Whether these hold of what is none of the constants."""
        facts = self._gather(schemas)
        if facts.allowed_constants is not None:
            return False if facts.allowed_constants <= constants else None
        if not facts.asked & ~Concern.EXCLUDED:
            return True if facts.excluded_constants <= constants else None
        return None


def _key(constant: Any) -> Any:
    return constant if isinstance(constant, _Other | _No) else canonical(constant)
