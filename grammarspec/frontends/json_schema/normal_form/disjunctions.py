"""Distributes the disjunctions of a conjunction: makes one goal per combination that is not obviously impossible.

``anyOf``, ``oneOf``, ``if`` and the like leave a conjunction with *choices*; of each choice, one alternative must hold.
As in a satisfiability search (the unit propagation and splitting of DPLL), alternatives that contradict the rest are
removed, and a choice with one alternative left is decided, which may remove further ones. Only then one choice is
split: the one with the fewest alternatives, or, where several choices test the same property, the value of that
property.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from grammarspec.frontends.json_schema.document.subschema import ANYTHING, Subschema
from grammarspec.frontends.json_schema.json_values import OBJECT
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.objects import Members
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.implication import declares_nothing_new, implies_one
from grammarspec.frontends.json_schema.normal_form.choices_on_members import one_member
from grammarspec.frontends.json_schema.normal_form.choices_on_presence import condition
from grammarspec.frontends.json_schema.normal_form.some_member import some_alternatives
from grammarspec.frontends.json_schema.normal_form.tags import Slots, Tags

__all__ = ["Alternative", "Disjunctions", "are_many"]

_MANY: Final = 6


def are_many(choices: Slots) -> bool:
    """Whether choices are so many that they are distributed only if there is no other way.

    Those about the presence of members are then tested at the end of the object, whose members come in any order.
    """
    return len(choices) > _MANY


class Alternative(NamedTuple):
    """One goal of a disjunction.

    Attributes:
        goal: the subschemas that must hold at once.
        facts: the conjunction of the goal if it has been gathered; the goal then combines an alternative with other
            subschemas. ``None`` if the goal is an alternative alone.
    """

    goal: Sequence[Subschema]
    facts: Conjunction | None = None


class Disjunctions:
    """Distributes the choices of one document's conjunctions.

    Args:
        goals: gathers goals.
        any_order: whether the members of objects may come in any order.
    """

    def __init__(self, goals: Analysis, *, any_order: bool) -> None:
        self.goals, self.any_order = goals, any_order
        self._tags = Tags(goals)

    def alternatives(self, facts: Conjunction) -> Iterator[Alternative]:
        """The goals that a conjunction with disjunctions is split into; their union is equivalent to it.

        In each goal at least one of the choices is decided, or one of the conditions "there is a member such that"
        (``facts.some``) is bound to a member. Choices that remain are distributed when the goal is lowered. Goals are
        yielded one by one.

        Raises:
            GrammarError: a keyword is malformed or cannot be enforced.
        """
        if not facts.choices:
            rest, ways = some_alternatives(self.goals, facts)
            return self._either(rest, ways, ())
        base = facts.base
        if len(facts.choices) == 1:
            at = _before(base, facts.places[0])
            return self._either(base[:at], facts.choices[0], base[at:])
        return self._split(base, facts)

    def _split(self, base: Sequence[Subschema], facts: Conjunction) -> Iterator[Alternative]:
        """Split one of several choices; if one alternative is left of each, there is one goal."""
        choices = facts.choices
        many = are_many(choices)
        if many and facts.types & OBJECT:
            members = [one_member(self.goals, facts, alternatives) for alternatives in choices]
            choices = [[one] if one else choice for one, choice in zip(members, choices, strict=True)]
        slots = self._settle(base, choices)
        if slots is None:
            return iter(())
        open_slots = [slot for slot in slots if len(slot) > 1]
        if (self.any_order or many) and facts.types & OBJECT:  # choices about presence need not be split
            others = [slot for slot in open_slots if condition(self.goals, slot) is None]
            open_slots = others or open_slots
        smallest = min(open_slots, key=len, default=None)
        if smallest is None:
            return iter((Alternative(self._goal(base, facts, slots)),))
        if facts.types & OBJECT and (cases := self._tags.cases(facts, slots)):
            return self._possible([[*self._goal(base, facts, left), case] for case, left in cases if all(left)])
        at = next(i for i, slot in enumerate(slots) if slot is smallest)
        return self._possible(
            [self._goal(base, facts, [*slots[:at], [alternative], *slots[at + 1 :]]) for alternative in smallest]
        )

    def _goal(self, base: Sequence[Subschema], facts: Conjunction, slots: Slots) -> list[Subschema]:
        """The goal of the base and one schema per choice, inserted at its place so that members keep their order."""
        goal = list(base)
        for place, i in sorted(zip(facts.places, range(len(slots)), strict=True), reverse=True):
            goal.insert(_before(base, place), slots[i][0] if len(slots[i]) == 1 else self.goals.choice(slots[i]))
        return goal

    def _either(
        self, before: Sequence[Subschema], ways: Sequence[Subschema], after: Sequence[Subschema]
    ) -> Iterator[Alternative]:
        """One goal for each of the alternatives ``ways``, with the other schemas before and after it."""
        if not before and not after:
            return (Alternative((way,)) for way in ways)
        return self._possible([[*before, way, *after] for way in ways])

    def _possible(self, goals: Sequence[Sequence[Subschema]]) -> Iterator[Alternative]:
        """The goals that a shallow test does not prove to be impossible, each with its conjunction."""
        for goal in goals:
            facts = self.goals.gather(goal)
            if not self.goals.impossible(facts):
                yield Alternative(goal, facts)

    def _settle(self, base: Sequence[Subschema], choices: Slots) -> list[Sequence[Subschema]] | None:
        """The choices without the alternatives that contradict the base, or the choices that have been decided.

        A choice of which one alternative is implied by those is decided as well.

        Returns:
            The remaining alternatives of each choice; ``None`` if a choice has none left.
        """
        slots = list(choices)
        settled: list[Subschema] = []
        open_choices = list(range(len(slots)))
        progress = True
        while progress:
            progress = False
            known = self.goals.gather([*base, *settled])
            for i in list(open_choices):
                if implies_one(self.goals, known, slots[i]) and declares_nothing_new(self.goals, known, slots[i]):
                    slots[i] = [ANYTHING]
                    open_choices.remove(i)
                    continue
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


def _before(base: Sequence[Subschema], place: int) -> int:
    """The index in ``base`` at which a choice is inserted: after the first ``place`` schemas that declare members."""
    declaring = (i for i, schema in enumerate(base, 1) if any(isinstance(a, Members) for a in schema.assertions))
    return next(islice(declaring, place - 1, None), len(base)) if place else 0
