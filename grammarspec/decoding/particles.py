"""Weights of particles: their effective sample size, and systematic resampling, as functions of arrays.

Logarithms of weights go in; numbers, and the particles to go on with, come out. Del Moral, Doucet and Jasra 2006 have
the theory ("Sequential Monte Carlo samplers"), Kitagawa 1996 and Carpenter et al. 1999 the systematic resampling.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["effective_size", "log_mean", "offspring", "placed"]

_Floats = NDArray[np.float64]


def log_mean(logs: _Floats) -> float:
    """The logarithm of the mean of weights, given by their logarithms; -inf if all weights are 0.

    Args:
        logs: ``[n]``, with ``n`` at least 1; none is NaN or inf.
    """
    highest = float(logs.max())
    return highest if highest == -np.inf else highest + float(np.log(np.exp(logs - highest).mean()))


def effective_size(logs: _Floats) -> float:
    """How many equally weighted particles are worth as much as these: ``(sum w)^2 / sum w^2`` (Kong et al. 1994).

    Args:
        logs: ``[n]``, the logarithms of the weights ``w``.

    Returns:
        a number from 1 to ``n``; 0 if all weights are 0.
    """
    highest = float(logs.max())
    if highest == -np.inf:
        return 0.0
    weights = np.exp(logs - highest)
    return float(weights.sum() ** 2 / (weights**2).sum())


def offspring(logs: _Floats, uniform: float) -> NDArray[np.int64]:
    """How often each particle is taken by systematic resampling: ``n`` times its share of the weight, up or down to
    one.

    Args:
        logs: ``[n]``, the logarithms of the weights, not all -inf.
        uniform: a random number strictly between 0 and 1.

    Returns:
        ``int64[n]``, which add up to ``n``; 0 where the weight is 0.
    """
    weights = np.exp(logs - logs.max())
    # The k-th pointer is k + uniform; particle i gets those between its cumulative shares.
    reached = weights.cumsum()
    borders = np.ceil(reached * (len(logs) / reached[-1]) - uniform).astype(np.int64)
    # The last border is n up to rounding, behind the last particle that has any weight.
    borders[np.flatnonzero(weights)[-1] :] = len(logs)
    return np.diff(borders, prepend=0)


def placed(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which particle each place goes on with: a particle that is taken at all stays where it is.

    Args:
        counts: ``int64[n]`` of :func:`offspring`.

    Returns:
        ``int64[n]``, numbers of particles.
    """
    chosen = np.arange(len(counts))
    chosen[counts == 0] = np.repeat(np.arange(len(counts)), np.maximum(counts - 1, 0))
    return chosen
