"""Disjunctions beside other keywords: one goal per combination that is not plainly impossible.

``anyOf``, ``oneOf``, ``if`` and their like leave a conjunction with *choices*, of each of which one alternative must
hold. As in a satisfiability search, alternatives that contradict the rest are dropped, a choice with one alternative
left is made (which may drop others), and only then a choice is split: the smallest, or the value of a property that
many of them look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Asked, Conjunction
from grammarspec.frontends.json_schema.keywords.json_values import OBJECT
from grammarspec.frontends.json_schema.keywords.objects import Members
from grammarspec.frontends.json_schema.lowering.context import Lowering
from grammarspec.frontends.json_schema.meaning import presence
from grammarspec.frontends.json_schema.meaning.analysis import TooManyCombinations
from grammarspec.frontends.json_schema.meaning.tags import Slots, Tags

__all__ = ["MAX_COMBINATIONS", "Disjunctions"]

MAX_COMBINATIONS = 2_000
"""Alternatives of ``anyOf`` and the like that are combined with other keywords, in one document."""


class Disjunctions:
    """Distributes the choices of one document's conjunctions."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering, self.goals = lowering, lowering.goals
        self._tags = Tags(lowering.goals)
        self._combinations: dict[int, int] = {}  # by level, as the same ones come again on each

    def distribute(self, facts: Conjunction) -> int:
        """The values of a conjunction with choices.

        Raises:
            LimitExceeded: too many combinations.
        """
        base = facts.base
        if len(facts.choices) == 1:
            at = _before(base, facts.places[0])
            return self.any_of(base[:at], facts.choices[0], base[at:])
        slots = self._settle(base, facts.choices)
        if slots is None:
            return self.lowering.builder.nothing
        open_slots = [slot for slot in slots if len(slot) > 1]
        if self.lowering.any_order and facts.types == OBJECT:  # those on presence need not be split
            others = [slot for slot in open_slots if presence.condition(self.goals, slot) is None]
            open_slots = others or open_slots
        smallest = min(open_slots, key=len, default=None)
        if smallest is None:
            return self.lowering.lower(self._goal(base, facts, slots))
        if facts.types & OBJECT and (cases := self._tags.cases(facts, slots)):
            return self._one_of([[*self._goal(base, facts, left), case] for case, left in cases if all(left)])
        split = next(i for i, slot in enumerate(slots) if slot is smallest)
        return self._one_of(
            [self._goal(base, facts, [*slots[:split], [alternative], *slots[split + 1 :]]) for alternative in smallest]
        )

    def _goal(self, base: Sequence[Subschema], facts: Conjunction, slots: Slots) -> list[Subschema]:
        """The base and one schema for each choice, where it stands."""
        goal = list(base)
        for place, i in sorted(zip(facts.places, range(len(slots)), strict=True), reverse=True):
            goal.insert(_before(base, place), slots[i][0] if len(slots[i]) == 1 else self.goals.choice(slots[i]))
        return goal

    def on_presence(self, facts: Conjunction) -> Conjunction:
        """The same conjunction of objects, its choices as conditions on members that there are, if they all are."""
        conditions = []
        for alternatives in facts.choices:
            condition = presence.condition(self.goals, alternatives)
            if condition is None:
                return facts
            conditions.append(condition)
        facts = facts.copy()
        facts.choices = facts.places = ()
        facts.presence = conditions
        facts.asked = facts.asked & ~Asked.CHOICES | Asked.PRESENCE
        return facts

    def any_of(self, before: Sequence[Subschema], alternatives: Sequence[Subschema], after: Sequence[Subschema]) -> int:
        """The values that satisfy one of the alternatives and all the other schemas."""
        lowering = self.lowering
        if not before and not after:
            return lowering.any_of([lowering.lower((alternative,)) for alternative in alternatives])
        return self._one_of([[*before, alternative, *after] for alternative in alternatives])

    def _one_of(self, goals: Sequence[Sequence[Subschema]]) -> int:
        """The values that satisfy all schemas of one of the goals."""
        lowering, parts = self.lowering, []
        for goal in goals:
            facts = self.goals.gather(goal)
            if not self.goals.impossible(facts):
                self._count(goal)
                parts.append(lowering.lower(goal, facts))
        return lowering.any_of(parts)

    def _settle(self, base: Sequence[Subschema], choices: Slots) -> list[Sequence[Subschema]] | None:
        """The choices without alternatives that contradict the base, or the alternatives that are left alone.

        ``None``: a choice has no alternative left.
        """
        slots = list(choices)
        settled: list[Subschema] = []
        open_choices = list(range(len(slots)))
        progress = True
        while progress:
            progress = False
            for i in list(open_choices):
                goals = [[*base, *settled, alternative] for alternative in slots[i]]
                possible = [not self.goals.impossible(self.goals.gather(goal)) for goal in goals]
                if not all(possible):
                    slots[i] = [slot for slot, alive in zip(slots[i], possible, strict=True) if alive]
                if not slots[i]:
                    return None
                if len(slots[i]) == 1:
                    settled.append(slots[i][0])
                    open_choices.remove(i)
                    progress = True
        return slots

    def _count(self, goal: Sequence[Subschema]) -> None:
        level = self.lowering.text.level
        self._combinations[level] = self._combinations.get(level, 0) + 1
        if self._combinations[level] > MAX_COMBINATIONS:
            hint = "write the combinations that are meant as one anyOf"
            message = f"more than {MAX_COMBINATIONS} combinations of anyOf, oneOf and the like"
            raise TooManyCombinations(message, where=goal[0].pointer, hint=hint)


def _before(base: Sequence[Subschema], place: int) -> int:
    """How many of the schemas stand before a choice: those with the first so many properties or the like."""
    declaring = (i for i, schema in enumerate(base, 1) if any(isinstance(a, Members) for a in schema.assertions))
    return next(islice(declaring, place - 1, None), len(base)) if place else 0
