"""The figures of a generation, from rounds counted by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Statistics
from grammarspec.decoding.metrics import percentile


def by_hand() -> Statistics:
    """Ten rounds: of three-token drafts one each with 0 to 3 accepted, one more with 3, three of two tokens, two empty.

    Accepted are 0 + 1 + 2 + 3 + 3, 0 + 2 + 2: 13 of 21 proposed, of which 4 were text that is forced.
    """
    return Statistics(
        prompt_tokens=7,
        tokens=30,
        bonus_tokens=10,
        fed_tokens=5,
        closing_tokens=2,
        rounds=Counter({(3, 0): 1, (3, 1): 1, (3, 2): 1, (3, 3): 2, (2, 0): 1, (2, 2): 2, (0, 0): 2}),
        proposed=Counter({"forced": 4, "model": 17}),
        accepted=Counter({"forced": 4, "model": 9}),
        refused=1,
        target_passes=11,
        draft_passes=20,
        prefill_seconds=0.5,
        decode_seconds=1.0,
        phase_seconds={"draft": 0.25, "target": 1.0},
        latencies=[(0.04, 4), (0.02, 1), (0.09, 3), (0.01, 1)],
    )


def test_sums_reconcile() -> None:
    statistics = by_hand()
    rounds = statistics.rounds
    assert sum(taken * count for (_, taken), count in rounds.items()) == statistics.accepted.total() == 13
    assert sum(drafted * count for (drafted, _), count in rounds.items()) == statistics.proposed.total() == 21
    assert (
        statistics.accepted.total() + statistics.bonus_tokens + statistics.fed_tokens + statistics.closing_tokens
        == statistics.tokens
    )
    assert sum(statistics.accepted_lengths()) == rounds.total() == 10
    assert statistics.tokens_per_pass == 3.0
    assert statistics.accepted_per_pass == 1.3
    assert statistics.acceptance_rate == 13 / 21
    assert statistics.forced_share == 9 / 30
    assert statistics.tokens_per_second == 20


def test_histogram() -> None:
    assert by_hand().accepted_lengths() == [4, 1, 3, 2]
    assert Statistics(rounds=Counter({(4, 3): 2})).accepted_lengths() == [0, 0, 0, 2]


def test_acceptance_by_position() -> None:
    statistics = by_hand()
    # Drafts with a first token: 8, of which 6 had it accepted; with a second: 8, and 5; with a third: 5, and 2.
    assert statistics.acceptance_by_position() == [6 / 8, 5 / 8, 2 / 5]
    # Of those whose tokens before it were accepted: 8; 6; and 3 of the five.
    assert statistics.acceptance_by_position(conditional=True) == [6 / 8, 5 / 6, 2 / 3]
    # Positions that no draft reached with all before accepted.
    assert Statistics(rounds=Counter({(3, 0): 2})).acceptance_by_position(conditional=True) == [0, 0, 0]


@given(
    rounds=st.dictionaries(
        st.integers(0, 6).flatmap(lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted))),
        st.integers(1, 9),
    )
)
def test_positions_equal_rounds_one_by_one(rounds: dict[tuple[int, int], int]) -> None:
    statistics = Statistics(rounds=Counter(rounds))
    every = [pair for pair, count in rounds.items() for _ in range(count)]
    longest = max((drafted for drafted, _ in every), default=0)
    for conditional in (False, True):
        rates = statistics.acceptance_by_position(conditional=conditional)
        assert len(rates) == longest
        for position, rate in enumerate(rates):
            tried = [
                taken > position
                for drafted, taken in every
                if drafted > position and (taken >= position or not conditional)
            ]
            assert rate == (sum(tried) / len(tried) if tried else 0)
    lengths = statistics.accepted_lengths()
    assert lengths == [sum(taken == length for _, taken in every) for length in range(len(lengths))]
    assert sum(lengths) == len(every)
    assert not lengths or lengths[-1]


def test_percentiles() -> None:
    statistics = by_hand()
    # Nine tokens: four of 10 ms, one of 20, three of 30, one of 10.
    assert [statistics.inter_token_percentile(percent) for percent in (1, 50, 55, 60, 66, 67, 99, 100)] == (
        pytest.approx([0.01, 0.01, 0.01, 0.02, 0.02, 0.03, 0.03, 0.03])
    )
    assert [statistics.round_percentile(percent) for percent in (25, 26, 50, 75, 76)] == [0.01, 0.02, 0.02, 0.04, 0.09]


@given(
    values=st.lists(st.integers(0, 100), min_size=1, max_size=300) | st.integers(1, 1000).map(lambda n: [*range(n)]),
    percent=st.integers(0, 100),
)
def test_percentile_is_the_smallest_that_enough_are_below(values: list[int], percent: int) -> None:
    found = percentile(values, percent)
    share = Fraction(percent, 100)

    def below(bound: int) -> Fraction:
        return Fraction(sum(value <= bound for value in values), len(values))

    assert below(int(found)) >= share
    assert all(value >= found for value in values if below(value) >= share)


def test_percentile_is_a_rank() -> None:
    """As many as the share says, not one more because a product of floats is above a whole number."""
    for count in range(1, 201):
        values = range(1, count + 1)
        for percent in range(1, 101):
            assert percentile(values, percent) == math.ceil(Fraction(percent * count, 100)), (percent, count)


def test_percentile_of_nothing() -> None:
    assert percentile([], 50) == 0
    assert percentile([3.0], 0) == percentile([3.0], 100) == 3


def test_nothing_generated() -> None:
    summary = Statistics().summary()
    assert {name: value for name, value in summary.items() if value} == {}
    for name in ("tokens_per_pass", "accepted_per_pass", "acceptance_rate", "forced_share", "tokens_per_second"):
        assert getattr(Statistics(), name) == 0
    assert Statistics().accepted_lengths() == Statistics().acceptance_by_position() == []


def test_add() -> None:
    total, other = by_hand(), by_hand()
    other.rounds[5, 4] += 1
    other.proposed["lookup"] = 5
    other.accepted["lookup"] = 4
    other.phase_seconds["mask"] = 0.125
    kept = by_hand()
    total.add(other)
    assert total.tokens == 60
    assert (total.prompt_tokens, total.refused, total.target_passes, total.draft_passes) == (14, 2, 22, 40)
    assert (total.bonus_tokens, total.fed_tokens, total.closing_tokens) == (20, 10, 4)
    assert (total.prefill_seconds, total.decode_seconds) == (1.0, 2.0)
    assert total.rounds == Counter({**{pair: 2 * count for pair, count in kept.rounds.items()}, (5, 4): 1})
    assert total.proposed == {"forced": 8, "model": 34, "lookup": 5}
    assert total.accepted == {"forced": 8, "model": 18, "lookup": 4}
    assert total.phase_seconds == {"draft": 0.5, "target": 2.0, "mask": 0.125}
    assert total.latencies == kept.latencies * 2
    # What was added is left as it was, and shares nothing with the sum.
    total.latencies.append((1.0, 1))
    total.rounds[0, 0] += 1
    assert other.latencies == kept.latencies
    assert other.rounds[0, 0] == 2
    empty = Statistics()
    empty.add(kept)
    assert empty == kept == by_hand()


def test_summary() -> None:
    summary = by_hand().summary()
    assert summary == {
        "prompt_tokens": 7,
        "tokens": 30,
        "fed_tokens": 5,
        "closing_tokens": 2,
        "target_passes": 11,
        "draft_passes": 20,
        "tokens_per_pass": 3.0,
        "accepted_per_pass": 1.3,
        "acceptance_rate": 0.619,
        "acceptance_by_position": [0.75, 0.625, 0.4],
        "acceptance_given_before": [0.75, 0.833, 0.667],
        "accepted_lengths": [4, 1, 3, 2],
        "proposed": {"forced": 4, "model": 17},
        "accepted": {"forced": 4, "model": 9},
        "refused_by_grammar": 1,
        "forced_share": 0.3,
        "prefill_ms": 500.0,
        "decode_ms": 1000.0,
        "tokens_per_second": 20.0,
        "phase_ms": {"draft": 250.0, "target": 1000.0},
        "itl_p50_ms": 10.0,
        "itl_p99_ms": 30.0,
        "round_p50_ms": 20.0,
        "round_p99_ms": 90.0,
    }
    assert json.loads(json.dumps(summary)) == summary
    assert set(Statistics().summary()) == set(summary)
    assert all(math.isfinite(value) for value in summary.values() if isinstance(value, float))
