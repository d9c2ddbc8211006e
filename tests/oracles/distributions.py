"""The distribution of the next token in plain Python, and how far counts are from a distribution."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import torch

from grammarspec.decoding import Sampling

Key = TypeVar("Key", bound=Hashable)


def naive_distribution(
    logits: Sequence[float],
    allowed: set[int],
    prompt: Sequence[int],
    text: Sequence[int],
    sampling: Sampling,
    *,
    clear: Callable[[bool], object] = bool,
) -> list[float]:
    """The documented order of operations on one row, token by token.

    Args:
        clear: told of each comparison with a threshold whether it is far enough from it for rounding not to decide.
    """
    scores = dict(enumerate(logits))
    for token in {*prompt, *text}:
        penalty = sampling.repetition_penalty
        scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
    for token in set(text):
        scores[token] -= sampling.presence_penalty + sampling.frequency_penalty * list(text).count(token)
    for token, bias in sampling.logit_bias.items():
        scores[token] += bias
    ranked = sorted((token for token in scores if token in allowed), key=lambda token: (-scores[token], token))
    if sampling.temperature == 0:
        return [float(token == ranked[0]) for token in scores]
    best = scores[ranked[0]]
    weights = {token: math.exp((scores[token] - best) / sampling.temperature) for token in ranked[: sampling.top_k]}
    if sampling.top_p is not None:
        kept, reached, total = {}, 0.0, sum(weights.values())
        for token, weight in weights.items():
            clear(sampling.top_p == 1 or abs(reached / total - sampling.top_p) > 1e-5)
            if reached / total < sampling.top_p:
                kept[token] = weight
            reached += weight
        weights = kept
    if sampling.min_p is not None:
        clear(all(weight == 1 or abs(weight - sampling.min_p) > 1e-5 * sampling.min_p for weight in weights.values()))
        weights = {token: weight for token, weight in weights.items() if weight >= sampling.min_p}
    total = sum(weights.values())
    return [weights.get(token, 0.0) / total for token in scores]


def chi_square(counts: Sequence[int], distribution: Sequence[float]) -> float:
    """Pearson's statistic; what is impossible must not have come up."""
    total = sum(counts)
    assert all(count == 0 for count, share in zip(counts, distribution, strict=True) if share == 0)
    return sum(
        (c - total * share) ** 2 / (total * share) for c, share in zip(counts, distribution, strict=True) if share > 0
    )


def cells(distribution: dict[tuple[int, ...], float], total: int) -> list[list[tuple[int, ...]]]:
    """The texts, pooled so that of ``total`` samples 10 are expected in each cell. A single cell tells nothing."""
    pooled: list[list[tuple[int, ...]]] = [[]]
    expected = 0.0
    for text, probability in sorted(distribution.items(), key=lambda item: item[1]):
        if expected >= 10:
            pooled.append([])
            expected = 0.0
        pooled[-1].append(text)
        expected += probability * total
    if len(pooled) > 1 and expected < 10:
        pooled[-2:] = [pooled[-2] + pooled[-1]]
    return pooled


def p_value(seen: Counter[tuple[int, ...]], distribution: dict[tuple[int, ...], float]) -> float:
    """Pearson's chi-square test, of cells as :func:`cells` pools them; 0 if something impossible was seen."""
    if set(seen) - set(distribution):
        return 0.0
    total = sum(seen.values())
    pooled = cells(distribution, total)
    if len(pooled) == 1:
        return 1.0
    observed = [sum(seen[text] for text in cell) for cell in pooled]
    expected = [total * sum(distribution[text] for text in cell) for cell in pooled]
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    freedom = torch.tensor((len(pooled) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(freedom, torch.tensor(statistic / 2, dtype=torch.float64)))


def total_variation(one: Mapping[Key, float], other: Mapping[Key, float]) -> float:
    """Half the sum of the differences between two distributions."""
    return sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in {*one, *other}) / 2
