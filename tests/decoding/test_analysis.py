"""The model of speculative decoding against worked examples and against sums over every outcome of a round."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammarspec.decoding.analysis import (
    acceptance_from_tau,
    acceptance_of_distributions,
    accepted_share,
    best_gamma,
    expected_accepted,
    expected_tokens,
    expected_tokens_at,
    speedup,
)

PROBABILITIES = st.floats(0, 1) | st.sampled_from([0.0, 1e-300, 1e-9, 1 - 1e-9, math.nextafter(1, 0), 1.0])
GAMMAS = st.integers(0, 24)
COSTS = st.floats(0, 4) | st.sampled_from([0.0, 0.05, 0.1])
VERIFY_COSTS = st.floats(0.1, 4) | st.just(1.0)


def enumerated(rates: list[float]) -> Fraction:
    """The mean of tokens per pass, exactly: every number of accepted tokens times its probability, plus the bonus."""
    mean, reached = Fraction(0), Fraction(1)
    for accepted, rate in enumerate(rates):
        mean += reached * (1 - Fraction(rate)) * (accepted + 1)
        reached *= Fraction(rate)
    return mean + reached * (len(rates) + 1)


def distributions(tokens: int) -> st.SearchStrategy[list[float]]:
    weights = st.lists(st.integers(0, 20), min_size=tokens, max_size=tokens).filter(any)
    return weights.map(lambda row: [weight / sum(row) for weight in row])


# Worked examples.


def test_tokens_per_pass() -> None:
    assert expected_tokens(0.8, 5) == pytest.approx(3.689, abs=5e-4)
    # Often quoted as the answer for five drafted tokens: it is that for four.
    assert expected_tokens(0.8, 4) == pytest.approx(3.362, abs=5e-4)
    assert expected_tokens(0.75, 4) == pytest.approx(3.051, abs=5e-4)


def test_speedups() -> None:
    assert speedup(0.75, 4, 0.05) == pytest.approx(2.54, abs=5e-3)
    # Often quoted as three times as fast, which no draft length reaches at this cost.
    assert speedup(0.7, 4, 0.1) == pytest.approx(1.98, abs=5e-3)
    assert max(speedup(0.7, gamma, 0.1) for gamma in range(65)) < 2


def test_share_is_not_acceptance() -> None:
    # Counting accepted among drafted tokens gives .59 where the acceptance is .8.
    assert accepted_share(0.8, 4) == pytest.approx(0.59, abs=5e-3)
    assert accepted_share(0.8, 1) == 0.8
    assert acceptance_from_tau(1 + 4 * 0.5904, 4) == pytest.approx(0.8)


@pytest.mark.parametrize(("draft_cost", "gamma", "gain"), [(0.165, 4, 2.03), (0.05, 8, 3.09)])
def test_best_draft_length(draft_cost: float, gamma: int, gain: float) -> None:
    assert best_gamma(0.8, draft_cost) == gamma
    assert speedup(0.8, gamma, draft_cost) == pytest.approx(gain, abs=5e-3)


def test_round_in_milliseconds() -> None:
    # A pass of 10 ms, and a draft of four tokens in 1 ms (all four, not each), of which 2.5 are accepted: 11 ms for
    # 3.5 tokens, as the pass that checks them gives one more.
    target, draft, gamma, accepted = 10.0, 1.0, 4, 2.5
    acceptance = acceptance_from_tau(accepted + 1, gamma)
    assert expected_accepted(acceptance, gamma) == pytest.approx(accepted)
    assert (target + draft) / expected_tokens(acceptance, gamma) == pytest.approx(3.14, abs=5e-3)
    gain = speedup(acceptance, gamma, draft / gamma / target)
    assert gain == pytest.approx(3.18, abs=5e-3)
    # What a draft costs may as well be given as a cost of the round.
    assert speedup(acceptance, gamma, 0, overhead=draft / target) == pytest.approx(gain)


# Tokens per pass.


@given(rates=st.lists(PROBABILITIES, max_size=12))
def test_tokens_equal_enumeration(rates: list[float]) -> None:
    assert expected_tokens_at(rates) == pytest.approx(float(enumerated(rates)), rel=1e-14)


@given(acceptance=PROBABILITIES, gamma=GAMMAS)
def test_equal_rates(acceptance: float, gamma: int) -> None:
    tokens = expected_tokens(acceptance, gamma)
    assert tokens == pytest.approx(float(enumerated([acceptance] * gamma)), rel=1e-14)
    assert tokens == expected_tokens_at([acceptance] * gamma) == 1 + expected_accepted(acceptance, gamma)
    if acceptance < 1:
        closed = (1 - Fraction(acceptance) ** (gamma + 1)) / (1 - Fraction(acceptance))
        assert tokens == pytest.approx(float(closed), rel=1e-14)


@given(gamma=GAMMAS)
def test_tokens_at_the_ends(gamma: int) -> None:
    assert expected_tokens(0, gamma) == 1
    assert expected_tokens(1, gamma) == gamma + 1
    # The slope at 1 is gamma * (gamma + 1) / 2: where the closed form in floats has lost every digit of it.
    loss = gamma + 1 - expected_tokens(1 - 1e-12, gamma)
    assert loss == pytest.approx(gamma * (gamma + 1) / 2 * 1e-12, rel=1e-2, abs=2e-14)


def test_tiny_acceptance() -> None:
    assert expected_accepted(1e-20, 3) == 1e-20


@given(pair=st.tuples(PROBABILITIES, PROBABILITIES).map(sorted), gamma=GAMMAS)
def test_monotone(pair: list[float], gamma: int) -> None:
    less, more = pair
    assert expected_tokens(less, gamma) <= expected_tokens(more, gamma)
    assert expected_tokens(more, gamma) <= expected_tokens(more, gamma + 1)
    if gamma and more - less > 1e-9:
        assert expected_tokens(less, gamma) < expected_tokens(more, gamma)


@given(rates=st.lists(PROBABILITIES, max_size=8))
def test_early_positions_weigh_most(rates: list[float]) -> None:
    falling = sorted(rates, reverse=True)
    highest, tokens, lowest = map(expected_tokens_at, (falling, rates, falling[::-1]))
    assert lowest * (1 - 1e-14) <= tokens <= highest * (1 + 1e-14)


def test_position_matters() -> None:
    assert expected_tokens_at([0.9, 0.1]) == pytest.approx(1 + 0.9 + 0.09)
    assert expected_tokens_at([0.1, 0.9]) == pytest.approx(1 + 0.1 + 0.09)
    assert expected_tokens_at([]) == 1


@given(acceptance=PROBABILITIES, gamma=st.integers(1, 24))
def test_share(acceptance: float, gamma: int) -> None:
    share = accepted_share(acceptance, gamma)
    assert share * gamma == pytest.approx(expected_accepted(acceptance, gamma))
    assert share <= acceptance * (1 + 1e-14)
    if gamma > 1 and 1e-6 < acceptance < 1 - 1e-6:
        assert share < acceptance


@given(acceptance=PROBABILITIES, gamma=st.integers(1, 24))
def test_inverse(acceptance: float, gamma: int) -> None:
    assert acceptance_from_tau(expected_tokens(acceptance, gamma), gamma) == pytest.approx(acceptance, abs=1e-14)


@given(gamma=st.integers(1, 24), share=st.floats(0, 1))
def test_inverse_the_other_way(gamma: int, share: float) -> None:
    tau = 1 + share * gamma
    assert expected_tokens(acceptance_from_tau(tau, gamma), gamma) == pytest.approx(tau, rel=1e-14)
    assert acceptance_from_tau(1, gamma) == 0
    assert acceptance_from_tau(gamma + 1, gamma) == 1


# Distributions.


@given(data=st.data(), tokens=st.integers(1, 8))
def test_distributions(data: st.DataObject, tokens: int) -> None:
    p, q = data.draw(distributions(tokens)), data.draw(distributions(tokens))
    acceptance = acceptance_of_distributions(p, q)
    # What the rule of the papers accepts: a token x drafted from q with probability min(1, p(x) / q(x)).
    accepted = math.fsum(b * min(1, a / b) for a, b in zip(p, q, strict=True) if b)
    assert acceptance == pytest.approx(accepted)
    assert acceptance == pytest.approx(1 - math.fsum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    assert acceptance == acceptance_of_distributions(q, p)
    assert acceptance_of_distributions(p, p) == pytest.approx(1)


def test_distributions_at_the_ends() -> None:
    assert acceptance_of_distributions([1, 0], [0, 1]) == 0
    assert acceptance_of_distributions([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]) == pytest.approx(0.7)
    # Rounded distributions may sum to more than 1, an acceptance may not.
    assert acceptance_of_distributions([0.5002, 0.5002], [0.5002, 0.5002]) == 1


# Speedup.


@given(acceptance=PROBABILITIES, gamma=GAMMAS, draft_cost=COSTS, overhead=COSTS, verify_cost=VERIFY_COSTS)
def test_speedup(acceptance: float, gamma: int, draft_cost: float, overhead: float, verify_cost: float) -> None:
    gain = speedup(acceptance, gamma, draft_cost, overhead, verify_cost)
    cost = verify_cost + sum([draft_cost] * gamma) + overhead
    assert gain * cost == pytest.approx(expected_tokens(acceptance, gamma))
    assert speedup(acceptance, 0, draft_cost, overhead, verify_cost) == 1 / (verify_cost + overhead)
    assert speedup(acceptance, 0, draft_cost) == 1
    assert speedup(acceptance, gamma, draft_cost) == speedup(acceptance, gamma, draft_cost, 0, 1)


@st.composite
def verify_costs(draw: st.DrawFn) -> float | Callable[[int], float] | None:
    steps = draw(st.lists(st.integers(0, 3), min_size=24, max_size=24))
    return draw(st.none() | VERIFY_COSTS | st.just(lambda gamma: 1 + sum(steps[:gamma]) / 8))


@given(acceptance=PROBABILITIES, draft_cost=COSTS, overhead=COSTS, verify_cost=verify_costs(), most=GAMMAS)
def test_best_gamma_equals_brute_force(
    acceptance: float, draft_cost: float, overhead: float, verify_cost: Any, most: int
) -> None:
    best, highest = 0, 1.0
    for gamma in range(1, most + 1):
        cost = verify_cost(gamma) if callable(verify_cost) else verify_cost or 1.0
        gain = speedup(acceptance, gamma, draft_cost, overhead, cost)
        if gain > highest:
            best, highest = gamma, gain
    assert best_gamma(acceptance, draft_cost, overhead, verify_cost, most) == best


@given(acceptance=st.floats(0, 0.99), excess=st.floats(0, 2))
def test_not_worth_a_draft(acceptance: float, excess: float) -> None:
    # Leviathan et al., Corollary 3.9: drafts pay if the acceptance is above their cost.
    assert best_gamma(acceptance, acceptance + excess) == 0
    assert best_gamma(acceptance + 0.01, acceptance) > 0


def test_best_gamma_of_equal_gains() -> None:
    assert best_gamma(0, 0) == 0
    assert best_gamma(1, 0, verify_cost=lambda gamma: gamma + 1) == 0
    # Two tokens for 1, three for 1.5, four for 2.
    assert best_gamma(1, 0, verify_cost=lambda gamma: (gamma + 1) / 2) == 1


def test_best_gamma_at_its_limits() -> None:
    assert best_gamma(1, 0, most=7) == 7
    assert best_gamma(0.9, 0.01, most=0) == 0
    # An overhead that eats the gain is one that plain decoding does not have.
    assert best_gamma(0.9, 0.05, overhead=10) == 0
    # A pass whose cost doubles beyond eight tokens, the bonus token's included.
    assert best_gamma(0.8, 0.01, verify_cost=lambda gamma: 1 if gamma < 8 else 2) == 7


# Refusals.

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("argument", "values", "call"),
    [
        ("acceptance", [-0.1, 1.1, NAN], lambda value: expected_tokens(value, 3)),
        ("acceptance", [-0.1, 1.1, NAN], lambda value: expected_tokens(value, 0)),
        ("acceptance", [-0.1, 1.1, NAN], lambda value: expected_accepted(value, 3)),
        ("acceptance", [-0.1, 1.1, NAN], lambda value: accepted_share(value, 3)),
        ("acceptance", [-0.1, 1.1, NAN], lambda value: speedup(value, 3, 0.1)),
        ("acceptance", [-0.1, 1.1, NAN], lambda value: best_gamma(value, 0.1)),
        ("acceptance", [-0.1, 1.1, NAN], lambda value: best_gamma(value, 0.1, most=0)),
        ("rates", [-0.1, 1.1, NAN], lambda value: expected_tokens_at([0.5, value, 0.5])),
        ("gamma", [-1, NAN], lambda value: expected_tokens(0.5, value)),
        ("gamma", [-1, NAN], lambda value: expected_accepted(0.5, value)),
        ("gamma", [-1, NAN], lambda value: speedup(0.5, value, 0.1)),
        ("gamma", [-1, 0, NAN], lambda value: accepted_share(0.5, value)),
        ("gamma", [-1, 0, NAN], lambda value: acceptance_from_tau(1, value)),
        ("tau", [0.9, 4.1, NAN], lambda value: acceptance_from_tau(value, 3)),
        ("draft_cost", [-0.1, INF, NAN], lambda value: speedup(0.5, 3, value)),
        ("draft_cost", [-0.1, INF, NAN], lambda value: best_gamma(0.5, value)),
        ("overhead", [-0.1, INF, NAN], lambda value: speedup(0.5, 3, 0.1, value)),
        ("overhead", [-0.1, INF, NAN], lambda value: best_gamma(0.5, 0.1, value)),
        ("verify_cost", [-0.1, 0, INF, NAN], lambda value: speedup(0.5, 3, 0.1, 0, value)),
        ("verify_cost", [-0.1, 0, INF, NAN], lambda value: best_gamma(0.5, 0.1, 0, value)),
        ("verify_cost", [-0.1, 0, INF, NAN], lambda value: best_gamma(0.5, 0.1, 0, lambda gamma: value)),
        ("most", [-1, NAN], lambda value: best_gamma(0.5, 0.1, most=value)),
        ("p", [-0.5, INF, NAN], lambda value: acceptance_of_distributions([value, 1.0], [0.5, 0.5])),
        ("q", [-0.5, INF, NAN], lambda value: acceptance_of_distributions([0.5, 0.5], [value, 1.0])),
    ],
)
def test_refusals(argument: str, values: list[float], call: Callable[[Any], object]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=rf"^{argument} must be .*, not {value}$"):
            call(value)


def test_refused_distributions() -> None:
    with pytest.raises(ValueError, match=r"^p must be .* sums to 1, not 0\.75$"):
        acceptance_of_distributions([0.5, 0.25], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"^q must be .* sums to 1, not 0\.0$"):
        acceptance_of_distributions([1.0], [])
    with pytest.raises(ValueError, match=r"^q must be of the 2 tokens of p, not 3$"):
        acceptance_of_distributions([0.5, 0.5], [0.5, 0.25, 0.25])
