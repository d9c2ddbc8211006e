"""Choices that compare one property with constants, such as thirty ``if`` that test ``kind``, each with its ``then``.

If one such choice after the other is split, the alternative in which a test fails leaves all other choices open. If
instead the values of the property are split into cases, each case decides all of these choices at once. Such a property
is called a tag.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from grammarspec.errors import GrammarError
from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.json_values import ALL_TYPES, OBJECT, canonical
from grammarspec.frontends.json_schema.keywords.combining import Not
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.keywords.constants import Constants
from grammarspec.frontends.json_schema.keywords.goals import Goals
from grammarspec.frontends.json_schema.keywords.objects import Members, Required, absent
from grammarspec.frontends.json_schema.keywords.types_and_sizes import IS_OBJECT, Types
from grammarspec.frontends.json_schema.meaning import evaluation

__all__ = ["Slots", "Tags"]

_FEW = 3  # the fewest choices that compare a property for it to count as a tag
_MOST = 256  # the most constants of a tag
_TELLING = 100  # steps to tell whether a schema holds for a constant
_LOOKING = 8  # steps to compare a case with an alternative

_ASKS = Concern.TYPES | Concern.REQUIRED | Concern.MEMBERS | Concern.CHOICES

_Constants = Mapping[Any, Any]  # constants by their canonical forms


@dataclass(frozen=True, slots=True)
class _Other:
    """All values but these constants (in canonical form)."""

    constants: frozenset[Any]


class _No(Enum):
    """The case that the property is absent, and the case that the value is not an object."""

    PROPERTY = auto()
    OBJECT = auto()


Slots = Sequence[Sequence[Subschema]]
"""Choices; of the alternatives of each, one must hold."""

_Group = Sequence[Any]  # the values of the tag in one case: constants, or one _Other or _No


class Tags:
    """Finds the tags of choices, and splits conjunctions by them; for one document."""

    def __init__(self, goals: Goals) -> None:
        self.goals = goals
        self._looks: dict[Subschema, Mapping[str, list[_Constants]]] = {}
        self._allowed: dict[tuple[Subschema, str], Set[Any] | None] = {}
        self._told: dict[tuple[Subschema, str, Any], bool | None] = {}
        self._facts: dict[tuple[Subschema, ...], Conjunction] = {}

    def cases(self, facts: Conjunction, slots: Slots) -> list[tuple[Subschema, Slots]]:
        """The cases of the property that the most choices compare with constants.

        Returns:
            For each case a schema, with the alternatives of each choice that may hold in it. For any value that
            satisfies ``facts``, one of the schemas holds. The list is empty if no property is compared by enough
            choices, or if its case has been decided already.
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
        """The conjunction of a goal, cached: the same small goals are met many times."""
        key = tuple(goal)
        if key not in self._facts:
            self._facts[key] = self.goals.gather(goal)
        return self._facts[key]

    def _looked_at(self, alternative: Subschema, depth: int = 3) -> Mapping[str, list[_Constants]]:
        """The properties that an alternative compares with constants, each with the sets of constants."""
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
            except GrammarError:  # the lowering of the alternative raises it again, with its place
                pass
            known = self._looks[alternative] = looks
        return known

    def _split(self, facts: Conjunction, name: str, looks: Sequence[_Constants]) -> list[tuple[Subschema, _Group]]:
        """The cases of a property, each as a schema and the values it stands for.

        Constants that every comparison treats alike are one case. Others are: any other value, no such property, and no
        object. Cases that ``facts`` excludes are left out.
        """
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
        """The schema of a case: the property has one of the values of the group."""

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
        """The alternatives of a choice that may hold in a case; if one surely holds, only :data:`ANYTHING`."""
        left = []
        values = None if isinstance(group[0], _No | _Other) else {_key(constant) for constant in group}
        for alternative in slot:
            self.goals.budget.spend(_LOOKING)
            allowed = self._allowed_by(alternative, name)
            if values and allowed is not None and values.isdisjoint(allowed):
                continue
            answers = {self._holds(alternative, name, constant) for constant in group}
            if answers == {True}:
                return [ANYTHING]
            if answers != {False}:
                left.append(alternative)
        return left

    def _allowed_by(self, alternative: Subschema, name: str) -> Set[Any] | None:
        """The constants one of which the property has in all objects that an alternative takes; ``None``: any value.

        Most alternatives of large unions are told apart by this alone, without evaluating each for each constant.
        """
        key = (alternative, name)
        if key not in self._allowed:
            self._allowed[key] = None
            with suppress(GrammarError):
                facets = [facet for facet in self._gather([alternative]).objects if name in facet.properties]
                enums = [self._gather([facet.properties[name]]).allowed_constants for facet in facets]
                self._allowed[key] = next((enum for enum in enums if enum is not None), None)
        return self._allowed[key]

    def _holds(self, schema: Subschema, name: str, constant: Any) -> bool | None:
        """Whether objects whose property has this value satisfy a schema; ``None`` if that depends on more."""
        key = (schema, name, _key(constant))
        if key not in self._told:
            self.goals.budget.spend(_TELLING)
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
        """Whether a conjunction restricts values of these types in any other way than by the property."""
        if facts.types & types != types or facts.asked & ~_ASKS:
            return True
        if types != OBJECT:
            return False
        return not facts.required.keys() <= {name} or any(
            facet.patterns or facet.rest is not ANYTHING or not facet.properties.keys() <= {name}
            for facet in facts.objects
        )

    def _of_others(self, schemas: Sequence[Subschema], constants: frozenset[Any]) -> bool | None:
        """Whether a goal holds of all values but the constants (``False``: of none; ``None``: of some, or unknown)."""
        facts = self._gather(schemas)
        if facts.allowed_constants is not None:
            return False if facts.allowed_constants <= constants else None
        if not facts.asked & ~Concern.EXCLUDED:
            return True if facts.excluded_constants <= constants else None
        return None


def _key(constant: Any) -> Any:
    return constant if isinstance(constant, _Other | _No) else canonical(constant)
