"""The tiers of the tests: how many examples each draws, and from which seeds.

``pytest --tier=quick`` (what happens unless another tier is named) draws a tenth of the examples, ``--tier=all`` all of
them and runs the conformance suites, ``--tier=ci`` these and a third of the examples, ``--tier=long`` twenty times as
many from random seeds. A test says how many
examples it draws in the tier ``all``; what this module returns is that number in the tier that was chosen.

Three markers say what else the tier ``quick`` leaves out: tests marked ``suite`` and ``slow``, and of the cases of a
test marked ``combined`` those whose values are all in others (:func:`covering`). The tier ``long`` runs only tests
marked ``property``, those that draw examples: the others would show what they show in the tier ``all``.

Test modules ask while they are imported, so ``tests/conftest.py`` selects the tier before tests are collected.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, settings

__all__ = ["TIERS", "Part", "Tier", "covering", "draws", "each_round", "seed", "select", "selected", "slow", "some"]

Case = TypeVar("Case")


@dataclass(frozen=True)
class Tier:
    """How a run of the tests differs from others."""

    share: float
    """Examples drawn, as a multiple of those of the tier ``all``."""
    whole: bool
    """Whether tests marked ``suite`` or ``slow`` are run, and all cases of those marked ``combined``."""
    random: bool
    """Whether examples are other ones in every run, and only tests that draw any are run."""
    rounds: int = 1
    """In how many runs the examples of a property are drawn: Hypothesis keeps all that it drew until its run is over,
    a hundred megabytes for each thousand large ones."""


TIERS = {
    "quick": Tier(share=0.1, whole=False, random=False),
    "ci": Tier(share=1 / 3, whole=True, random=False),
    "all": Tier(share=1, whole=True, random=False),
    "long": Tier(share=20, whole=True, random=True, rounds=20),
}


class Part(NamedTuple):
    """One of the parts that a run is divided into, as ``3/8``: of every eight tests, the third."""

    number: int
    """From 1 to ``parts``."""
    parts: int

    @classmethod
    def parsed(cls, text: str) -> Part:
        """The part that a text names.

        Raises:
            argparse.ArgumentTypeError: it names none.
        """
        found = re.fullmatch(r"([1-9][0-9]*)/([1-9][0-9]*)", text)
        part = cls(*map(int, found.groups())) if found else cls(1, 0)
        if part.number > part.parts:
            raise ArgumentTypeError(f"{text!r} is no part: write 1/8, ..., 8/8")
        return part

    def of(self, tests: Sequence[Case]) -> Sequence[Case]:
        """Its tests. Cases of one test stand together and take about as long, so each part has its share of them."""
        return tests[self.number - 1 :: self.parts]


_tier = TIERS["quick"]
_seed = 0

# Machines that run tests are slow and shared, so that times would only measure their load. How many examples a
# property discards is checked by tests/counting.py.
_UNCHECKED = [
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
]


def select(name: str, random_seed: int) -> None:
    """Choose the tier for this process.

    Args:
        name: A key of ``TIERS``.
        random_seed: What :func:`seed` adds to the seeds of tests, if the tier is random.
    """
    global _tier, _seed  # noqa: PLW0603 (test modules read it while they are imported)
    _tier = TIERS[name]
    _seed = random_seed if _tier.random else 0
    settings.register_profile(
        name,
        deadline=None,
        derandomize=not _tier.random,
        max_examples=each_round(100),
        print_blob=True,
        suppress_health_check=_UNCHECKED,
    )
    settings.load_profile(name)


def selected() -> Tier:
    """The tier that was chosen."""
    return _tier


def draws(count: int, *, least: int = 1, most: int | None = None) -> int:
    """The number of examples of a test that draws ``count`` in the tier ``all``, but not fewer than ``least``.

    ``most`` is for what is drawn for each of some other examples, whose number grows with the tier, too.
    """
    wanted = max(round(count * _tier.share), min(count, least))
    return wanted if most is None else min(wanted, most)


def each_round(count: int, *, least: int = 1) -> int:
    """The number of examples that Hypothesis draws in each of the tier's rounds, as :func:`draws` counts them."""
    return max(draws(count, least=least) // _tier.rounds, 1)


def some(cases: Sequence[Case], *, least: int = 1) -> list[Case]:
    """As many cases of a list as the tier draws, evenly spread from the first to the last; the whole list at most."""
    count = min(draws(len(cases), least=least), len(cases))
    return [cases[number * (len(cases) - 1) // max(count - 1, 1)] for number in range(count)]


def slow(*values: object) -> ParameterSet:
    """A case of a parametrized test that the tier ``quick`` leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow)


def covering(cases: Sequence[Sequence[object]]) -> list[int]:
    """The numbers of a few cases, in their order, such that each value of a case is, at its place, in one of them.

    Each next one has the most values that are in none yet, and of these cases the one whose values are in the fewest.
    """
    values = [{(place, repr(value)) for place, value in enumerate(case)} for case in cases]
    found: set[int] = set()
    uses: Counter[tuple[int, str]] = Counter()

    def gain(number: int) -> tuple[int, int]:
        return len(values[number] - uses.keys()), -sum(uses[value] for value in values[number])

    while len(uses) < len(set().union(*values)):
        best = max(range(len(cases)), key=gain)
        found.add(best)
        uses.update(values[best])
    return sorted(found)


def seed(number: int) -> int:
    """The seed of a test that draws its examples itself: ``number``, and another one in each run of a random tier."""
    return number + _seed
