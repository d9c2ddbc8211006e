"""Weights of particles and adaptive rejection: by definition, and by enumeration of all that can come up."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import pytest

np: Any = pytest.importorskip("numpy")
pytest.importorskip("torch")

from grammarspec.decoding.particles import effective_size, log_mean, offspring, placed  # noqa: E402
from grammarspec.decoding.rejection import draw_taken  # noqa: E402
from tests import tiers  # noqa: E402


def test_means_and_sizes() -> None:
    logs = np.log(np.array([0.1, 0.2, 0.3]))
    assert math.exp(log_mean(logs)) == pytest.approx(0.2)
    assert log_mean(logs - 5000) == pytest.approx(math.log(0.2) - 5000)  # whose weights are 0 as numbers
    assert log_mean(np.array([-np.inf, -np.inf])) == -np.inf
    assert math.exp(log_mean(np.array([-np.inf, 0.0]))) == 0.5
    assert effective_size(np.zeros(7) - 900) == pytest.approx(7)
    assert effective_size(np.array([0.0, -np.inf, -np.inf])) == 1
    assert effective_size(np.array([-np.inf])) == 0
    assert effective_size(logs) == pytest.approx(0.36 / 0.14)


@pytest.mark.slow
@pytest.mark.property
def test_systematic_resampling() -> None:
    """Each particle is taken as often as its share says, up or down to a whole number, and on average exactly."""
    generator = np.random.default_rng(tiers.seed(1))
    for _ in range(tiers.draws(200)):
        n = int(generator.integers(1, 12))
        weights = generator.gamma(0.3, size=n) * (generator.random(n) < 0.8)
        weights[generator.integers(n)] += 0.1
        with np.errstate(divide="ignore"):
            logs = np.log(weights) - 700
        share = n * weights / weights.sum()
        total = np.zeros(n)
        for step in range(400):
            counts = offspring(logs, (step + 0.5) / 400)
            assert counts.sum() == n
            assert (counts >= np.floor(share - 1e-9)).all()
            assert (counts <= np.ceil(share + 1e-9)).all()
            assert not counts[weights == 0].any()
            total += counts
            chosen = placed(counts)
            assert (np.bincount(chosen, minlength=n) == counts).all()
            assert all(chosen[place] == place for place in range(n) if counts[place])
        assert total / 400 == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("more", [1, 2, 3, 9])
@pytest.mark.parametrize("taken", [{0}, {2, 3}, {0, 1, 4}, {0, 1, 2, 3, 4}])
def test_rejection_by_enumeration(taken: set[int], more: int) -> None:
    """Over all orders of draws: the token has the masked distribution, and the estimate for each token no bias."""
    probabilities = np.array([0.05, 0.4, 0.25, 0.2, 0.1])
    mass = sum(probabilities[token] for token in taken)
    chance, expected = np.zeros(5), np.zeros(5)
    for order in permutations(range(5)):
        of_order, left = 1.0, 1.0
        for token in order:
            of_order *= probabilities[token] / left
            left -= probabilities[token]
        noise = np.array([-float(order.index(token)) for token in range(5)]) - np.log(probabilities)
        found = draw_taken(probabilities, noise, taken.__contains__, more=more)
        assert found is not None
        assert 0 < found.mass <= 1
        assert found.checks <= 5
        chance[found.token] += of_order
        expected[found.token] += of_order * found.mass
    for token in range(5):
        assert chance[token] == pytest.approx(probabilities[token] / mass if token in taken else 0)
        if token in taken:
            assert expected[token] / chance[token] == pytest.approx(mass)


def test_rejection_at_its_ends() -> None:
    noise = np.zeros(3)
    assert draw_taken(np.array([0.5, 0.5, 0.0]), noise, lambda token: token == 2) is None
    found = draw_taken(np.array([0.0, 1.0, 0.0]), noise, lambda token: True)
    assert found is not None
    assert (found.token, found.mass, found.checks) == (1, 1.0, 1)
    with pytest.raises(ValueError, match="more must be at least 1, not 0"):
        draw_taken(np.array([1.0]), np.zeros(1), bool, more=0)
