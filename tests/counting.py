"""How much of what a test draws it compares in the end.

Some examples say nothing: a random schema that the front-end refuses, a search that exceeds its limit. They are
discarded, and counted. A test fails if it keeps less than the share of its examples that it promises, so that an engine
which refuses everything does not pass.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, NoReturn, TypeVar

import pytest
from hypothesis import reject, settings
from hypothesis.errors import UnsatisfiedAssumption

from tests import tiers

__all__ = [
    "KEPT",
    "Counts",
    "Tally",
    "as_property",
    "compared",
    "count_examples",
    "discard",
    "examples",
    "scope",
    "summary",
    "tally",
]

Test = TypeVar("Test", bound=Callable[..., None])

KEPT = 0.9
"""The share of its examples that a property keeps at least, unless it says another one."""

EXAMPLES = "examples"
"""The name of the tally of a property's examples."""


@dataclass
class Tally:
    """How many of some things a test kept, and why it discarded the others."""

    floor: float
    """The share to be kept."""
    kept: int = 0
    discarded: Counter[str] = field(default_factory=Counter)

    def keep(self) -> None:
        """Count one that is compared."""
        self.kept += 1

    def discard(self, reason: str) -> None:
        """Count one that is not."""
        self.discarded[reason] += 1

    @property
    def total(self) -> int:
        return self.kept + self.discarded.total()

    @property
    def share(self) -> float:
        return self.kept / self.total if self.total else 1.0

    @property
    def least(self) -> float:
        """The number to be kept of so many: below it by three standard deviations, as few examples vary."""
        return self.floor * self.total - 3 * sqrt(self.floor * (1 - self.floor) * self.total)

    @property
    def is_enough(self) -> bool:
        return self.kept >= self.least and (self.kept > 0 or self.total == 0)


@dataclass
class Counts:
    """What one test counted."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    mask_bits: int = 0
    """Bits of masks compared with acceptance of the token."""
    masks: int = 0

    def check(self) -> None:
        """Fail the test if a tally is below its floor."""
        for what, found in self.tallies.items():
            if not found.is_enough:
                pytest.fail(
                    f"of {found.total} {what} only {found.kept} were kept, below a share of {found.floor}; the others "
                    f"were discarded: {dict(found.discarded)}",
                    pytrace=False,
                )


_running = Counts()
_reason: str | None = None


@contextmanager
def scope() -> Iterator[Counts]:
    """The counts of one test, checked at its end unless it failed."""
    global _running  # noqa: PLW0603 (there is one test at a time)
    before, _running = _running, Counts()
    try:
        yield _running
        _running.check()
    finally:
        _running = before


def tally(what: str, floor: float) -> Tally:
    """The running test's tally of that name; made when it is first asked for."""
    return _running.tallies.setdefault(what, Tally(floor))


def compared(bits: int) -> None:
    """Note that all bits of a mask were compared."""
    _running.mask_bits += bits
    _running.masks += 1


def discard(reason: str) -> NoReturn:
    """Discard the example of a property that is being run: it says nothing, for this reason."""
    global _reason  # noqa: PLW0603
    _reason = reason
    reject()


def examples(count: int, *, kept: float = KEPT, least: int = 1) -> Callable[[Test], Test]:
    """A decorator of properties, to stand above ``@given``.

    Args:
        count: The number of examples in the tier ``all``.
        kept: The share of them that must not be discarded.
        least: The number of them in tiers that draw fewer.
    """

    def decorate(test: Test) -> Test:
        return count_examples(settings(max_examples=tiers.each_round(count, least=least))(test), kept)

    return decorate


def count_examples(test: Test, kept: float = KEPT) -> Test:
    """Count the examples of a property (a function that ``@given`` returned); those of ``examples`` are already."""
    handle: Any = test.hypothesis  # type: ignore[attr-defined]  # Hypothesis has it for functions around the body
    body = handle.inner_test
    if not hasattr(body, "is_counted"):
        handle.inner_test = _counting(body, kept)
    return test


def _counting(body: Callable[..., None], kept: float) -> Callable[..., None]:
    @functools.wraps(body)
    def counting(*args: Any, **kwargs: Any) -> None:
        global _reason
        found, _reason = tally(EXAMPLES, kept), None
        try:
            body(*args, **kwargs)
        except UnsatisfiedAssumption:
            found.discard(_reason or "an assumption of the test")
            raise
        found.keep()

    counting.is_counted = True  # type: ignore[attr-defined]
    return counting


# ---------------------------------------------------------------------- what a run says about its counts
_PROPERTY = "counts"
_SAID = 10
"""Tallies that a summary lists: those of which the least was kept."""


def as_property(counts: Counts) -> tuple[str, Any]:
    """The counts of a test as one of the ``user_properties`` of its report, which workers of pytest-xdist hand over."""
    tallies = {what: (one.floor, one.kept, dict(one.discarded)) for what, one in counts.tallies.items()}
    return _PROPERTY, {"tallies": tallies, "masks": counts.masks, "mask bits": counts.mask_bits}


def summary(reports: Iterable[Any]) -> Iterator[str]:
    """Lines about the counts of a run.

    Args:
        reports: Those that pytest made of the tests.
    """
    found = {report.nodeid: said for report in reports for name, said in report.user_properties if name == _PROPERTY}
    tallies = {
        f"{what} of {test}": Tally(floor, kept, Counter(discarded))
        for test, said in found.items()
        for what, (floor, kept, discarded) in said["tallies"].items()
    }
    if tallies:
        kept, total = sum(one.kept for one in tallies.values()), sum(one.total for one in tallies.values())
        yield f"{kept:,} of {total:,} examples kept, in {len(tallies):,} tallies; the least of:"
        for name, one in sorted(tallies.items(), key=lambda item: item[1].share)[:_SAID]:
            reasons = ", ".join(f"{count} by {reason}" for reason, count in sorted(one.discarded.items()))
            yield f"  {one.share:.2f} (floor {one.floor}) {name}: {one.kept} kept, {reasons or 'none discarded'}"
    masks = sum(said["masks"] for said in found.values())
    if masks:
        bits = sum(said["mask bits"] for said in found.values())
        yield f"{bits:,} mask bits compared with acceptance, in {masks:,} masks"
