"""What the tiers draw."""

from __future__ import annotations

from itertools import product

from tests.tiers import covering


def test_covering() -> None:
    cases = [*product(range(5), "abc", [{}, {"a": 1}, None])]
    chosen = [cases[number] for number in covering(cases)]
    assert len(chosen) == 5, "as few as the values of the first place"
    for place in range(3):
        assert all(any(case[place] == other[place] for other in chosen) for case in cases)
    uses = [sum(case[1] == letter for case in chosen) for letter in "abc"]
    assert max(uses) - min(uses) <= 1, "the other values come alike often"


def test_covering_leaves_out_no_value_of_its_own() -> None:
    assert covering([(1,), (2,), (3,)]) == [0, 1, 2]
    assert covering([("a", False), ("a", True), ("b", False), ("c", False), ("c", True)]) == [0, 2, 4]
    assert covering([(1, 1), (1, 1)]) == [0]
    assert covering([]) == []
