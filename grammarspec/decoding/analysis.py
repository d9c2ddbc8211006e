"""What speculative decoding gains: tokens per pass of the target model, and the speedup that they buy.

One round drafts ``gamma`` tokens and verifies them in one pass of the target model. The round keeps the draft tokens
before the first that is rejected, and the pass gives one more, the bonus token: in place of the rejected token, or
after the last one. The *acceptance* (alpha in the papers) is the probability that a draft token is accepted, given that
those before it were. The analysis assumes that it is the same at every position and independent of the others.

After Leviathan et al. 2023 (arXiv:2211.17192, section 3) and Chen et al. 2023 (arXiv:2302.01318). Probabilities are
from 0 to 1, and costs are in units of one pass of the target model over one token, which is what plain decoding pays
per token. Nothing else imports this module: it explains and predicts the figures of
:mod:`grammarspec.decoding.metrics`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

__all__ = [
    "acceptance_from_tau",
    "acceptance_of_distributions",
    "accepted_share",
    "best_gamma",
    "expected_accepted",
    "expected_tokens",
    "expected_tokens_at",
    "speedup",
]


def expected_tokens(acceptance: float, gamma: int) -> float:
    """Tokens per pass of the target model, the bonus token included: tau = (1 - a^(gamma + 1)) / (1 - a).

    Equation 1 of Leviathan et al.; ``gamma + 1`` at acceptance 1.

    Raises:
        ValueError: as :func:`expected_accepted`.
    """
    return 1 + expected_accepted(acceptance, gamma)


def expected_accepted(acceptance: float, gamma: int) -> float:
    """Draft tokens accepted per pass of the target model: :func:`expected_tokens` without the bonus token.

    Raises:
        ValueError: ``acceptance`` is not from 0 to 1, or ``gamma`` is below 0.
    """
    _require(0 <= acceptance <= 1, "acceptance", "from 0 to 1", acceptance)
    _require(gamma >= 0, "gamma", "at least 0", gamma)
    return _accepted([acceptance] * gamma)


def expected_tokens_at(rates: Sequence[float]) -> float:
    """:func:`expected_tokens` where acceptance depends on the position.

    Args:
        rates: of each position of a draft, the share of tokens accepted among the rounds that accepted all positions
            before it. The share among all rounds would be wrong here: it counts earlier rejections once more.

    Raises:
        ValueError: a rate is not from 0 to 1.
    """
    for rate in rates:
        _require(0 <= rate <= 1, "rates", "from 0 to 1", rate)
    return 1 + _accepted(rates)


def accepted_share(acceptance: float, gamma: int) -> float:
    """The share of all draft tokens that are accepted: (tau - 1) / gamma, for ``gamma`` of at least 1.

    For ``gamma`` above 1 it is below the acceptance (unless that is 0 or 1), as all tokens behind a rejected one are
    lost.

    Raises:
        ValueError: ``acceptance`` is not from 0 to 1, or ``gamma`` is below 1.
    """
    _require(gamma >= 1, "gamma", "at least 1", gamma)
    return expected_accepted(acceptance, gamma) / gamma


def acceptance_from_tau(tau: float, gamma: int) -> float:
    """The acceptance that gives ``tau`` tokens per pass: the inverse of :func:`expected_tokens`.

    It estimates the acceptance from a run of which only the tokens, the passes and ``gamma`` (at least 1) are known.
    The quotient of accepted and draft tokens, (tau - 1) / gamma, is not the acceptance but :func:`accepted_share`.

    Args:
        tau: from 1 to ``gamma + 1``, the bonus token included.

    Raises:
        ValueError: ``gamma`` is below 1, or ``tau`` is not from 1 to ``gamma + 1``.
    """
    _require(gamma >= 1, "gamma", "at least 1", gamma)
    _require(1 <= tau <= gamma + 1, "tau", f"from 1 to {gamma + 1}", tau)
    low, high = 0.0, 1.0
    # Bisection, until no float lies between low and high: then their middle rounds to one of the two.
    while low < (middle := (low + high) / 2) < high:
        if expected_accepted(middle, gamma) < tau - 1:
            low = middle
        else:
            high = middle
    return middle


def acceptance_of_distributions(p: Sequence[float], q: Sequence[float]) -> float:
    """The acceptance of a token drafted from ``q`` where the target model's distribution is ``p``: sum(min(p, q)).

    That is 1 minus their total variation distance (Theorem 3.5 of Leviathan et al.); the acceptance of a model is its
    mean over contexts (Corollary 3.6).

    Args:
        p: one probability per token, summing to 1 within 0.001, as after a softmax of low precision.
        q: the same, for the same tokens.

    Raises:
        ValueError: ``p`` or ``q`` is no distribution, or they are of different lengths.
    """
    for name, values in (("p", p), ("q", q)):
        for probability in values:
            _require(0 <= probability < math.inf, name, "probabilities", probability)
        _require(abs(math.fsum(values) - 1) <= 1e-3, name, "a distribution that sums to 1", math.fsum(values))
    _require(len(p) == len(q), "q", f"of the {len(p)} tokens of p", len(q))
    return min(math.fsum(map(min, p, q)), 1.0)


def speedup(acceptance: float, gamma: int, draft_cost: float, overhead: float = 0.0, verify_cost: float = 1.0) -> float:
    """How many times as fast as plain decoding: tau / (verify_cost + draft_cost * gamma + overhead).

    Theorem 3.8 of Leviathan et al., whose rounds cost nothing besides the drafts and a pass of cost 1.

    Args:
        draft_cost: of drafting one token (c in the papers).
        overhead: all other costs of a round.
        verify_cost: of one pass of the target model over ``gamma + 1`` tokens, above 0. It is 1 as long as reading the
            weights takes all of a pass's time.

    Raises:
        ValueError: an argument is not in its range: costs are finite and not negative.
    """
    _require(0 <= draft_cost < math.inf, "draft_cost", "at least 0 and finite", draft_cost)
    _require(0 <= overhead < math.inf, "overhead", "at least 0 and finite", overhead)
    _require(0 < verify_cost < math.inf, "verify_cost", "above 0 and finite", verify_cost)
    return expected_tokens(acceptance, gamma) / (verify_cost + draft_cost * gamma + overhead)


def best_gamma(
    acceptance: float,
    draft_cost: float,
    overhead: float = 0.0,
    verify_cost: float | Callable[[int], float] | None = None,
    most: int = 64,
) -> int:
    """The draft length, at most ``most``, of the highest :func:`speedup`; of equal ones the smallest.

    0 stands for plain decoding, whose speedup is 1: without rounds there is no overhead.

    Args:
        verify_cost: one number for every ``gamma``, or a function of ``gamma`` (from 1 to ``most``); ``None`` is 1.

    Raises:
        ValueError: ``most`` is below 0, or as :func:`speedup`.
    """
    _require(most >= 0, "most", "at least 0", most)

    def gain(gamma: int) -> float:
        cost = verify_cost(gamma) if callable(verify_cost) else verify_cost
        return speedup(acceptance, gamma, draft_cost, overhead, 1.0 if cost is None else cost)

    gains = [speedup(acceptance, 0, draft_cost), *map(gain, range(1, most + 1))]
    return gains.index(max(gains))


def _accepted(rates: Sequence[float]) -> float:
    """The sum r1 + r1 r2 + r1 r2 r3 + ..., evaluated from its end (Horner's method).

    It is as exact near rates of 1 as elsewhere; the closed form would divide 0 by 0 there.
    """
    accepted = 0.0
    for rate in reversed(rates):
        accepted = rate * (1 + accepted)
    return accepted


def _require(holds: bool, name: str, wanted: str, value: float) -> None:
    if not holds:
        raise ValueError(f"{name} must be {wanted}, not {value}")
