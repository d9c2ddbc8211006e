"""Drawing a token that a check takes, without asking the check about every token, and estimating how many it takes.

The adaptive rejection sampling of Lipkin et al. 2025 (arXiv:2504.05410, "Fast controlled generation from language
models with adaptive weighted rejection sampling"): tokens are drawn until one is taken, those that were refused never
again. The token has exactly the distribution that a mask gives. What the mask gives beside it, the probability of all
tokens that are taken, is not known then; the estimate of it here is unbiased, whatever the token is, and it costs one
more check: the estimator of Des Raj for draws without replacement (1956, "Some estimators in sampling with varying
probabilities without replacement").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Taken", "draw_taken"]


@dataclass(frozen=True, slots=True)
class Taken:
    """A token that was drawn among those that a check takes.

    Attributes:
        token: the token.
        mass: an unbiased estimate of the probability of all tokens that are taken: its expectation is that probability
            for whatever token was drawn. It is above 0, and at most 1.
        checks: how many tokens were checked.
    """

    token: int
    mass: float
    checks: int


def draw_taken(
    probabilities: NDArray[np.floating],
    noise: NDArray[np.float64],
    takes: Callable[[int], bool],
    *,
    more: int = 1,
) -> Taken | None:
    """Draw a token among those that a check takes.

    Descending by log-probability plus Gumbel noise, tokens come in the order of draws without replacement (Yellott
    1977; Kool et al. 2019). So the token is the one that the same noise chooses under a mask.

    Args:
        probabilities: ``[n]``, of all tokens; not changed.
        noise: ``[n]``, Gumbel noise of each token.
        takes: whether a token is taken.
        more: how many tokens are drawn behind the token for the estimate, at least 1; their estimates are averaged.

    Returns:
        the token; ``None`` if no token of a probability above 0 is taken.

    Raises:
        ValueError: ``more`` is below 1.
    """
    if more < 1:
        raise ValueError(f"more must be at least 1, not {more}")
    with np.errstate(divide="ignore"):
        order = np.log(probabilities, dtype=np.float64) + noise
    left, found, token, checks = 1.0, 0.0, None, 0
    estimates: list[float] = []
    for _ in range(len(order)):
        next_token = int(order.argmax())
        if order[next_token] == -np.inf:
            break
        order[next_token] = -np.inf
        taken, checks = takes(next_token), checks + 1
        if token is not None:
            estimates.append(found + (max(left, 0.0) if taken else 0.0))
        share = float(probabilities[next_token])
        found, left = found + (share if taken else 0.0), left - share
        token = next_token if taken and token is None else token
        if len(estimates) == more:
            break
    if token is None:
        return None
    # Where no token is left to be drawn, what has been found is all there is.
    estimates += [found] * (more - len(estimates))
    return Taken(token, min(sum(estimates) / more, 1.0), checks)
