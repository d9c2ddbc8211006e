"""The law of the next token: from logits and a mask to probabilities, and a draw from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammarspec.kernels.bitmask import apply_bitmask

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

__all__ = ["Sampling", "draw", "law"]

_COLDEST = 1e-6  # below it a float32 quotient of two logits says no more than an argmax


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are chosen. The defaults choose the most probable allowed token every time.

    They apply in this order: repetition penalty, grammar mask, temperature, top-k, top-p, min-p.

    Attributes:
        temperature: divides the logits; 0 chooses the most probable token, of equal ones that with the lowest id.
        top_k: keep the ``top_k`` most probable tokens (of equal ones those with the lowest ids), or ``None``.
        top_p: keep the fewest most probable tokens whose probabilities reach ``top_p``, or ``None``
            (nucleus sampling, Holtzman et al. 2020).
        min_p: keep the tokens at least ``min_p`` times as probable as the most probable one, or ``None``
            (Nguyen et al. 2024).
        repetition_penalty: divides the positive logits, and multiplies the negative ones, of tokens that the prompt
            or the text so far holds (CTRL, Keskar et al. 2019); 1 changes nothing.
        seed: of the random draws; ``None`` draws from torch's global generator.
        max_tokens: generate at most so many tokens.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    seed: int | None = None
    max_tokens: int = 512

    def __post_init__(self) -> None:
        if self.temperature != 0 and not _COLDEST <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or at least {_COLDEST}, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must be from 0 to 1, not {self.min_p}")
        if not 0 < self.repetition_penalty < float("inf"):
            raise ValueError(f"repetition_penalty must be above 0, not {self.repetition_penalty}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")


def law(
    logits: torch.Tensor, rows: NDArray[np.int32] | torch.Tensor, history: Sequence[Sequence[int]], sampling: Sampling
) -> torch.Tensor:
    """The probabilities that the next tokens are drawn from.

    Args:
        logits: ``[batch, width]``, any floating dtype; left as they are.
        rows: ``int32[batch, words]``, the mask row of each sequence.
        history: the tokens of each sequence so far, prompt included.

    Returns:
        ``float32[batch, width]``; each row sums to 1 and is 0 on every token that the mask forbids. Greedy sampling
        gives rows with a single 1.
    """
    import torch

    scores = logits.to(torch.float32, copy=True)
    if sampling.repetition_penalty != 1:
        for row, tokens in zip(scores, history, strict=True):
            seen = torch.tensor(sorted(set(tokens)), dtype=torch.int64, device=scores.device)
            old = row[seen]
            row[seen] = torch.where(old > 0, old / sampling.repetition_penalty, old * sampling.repetition_penalty)
    apply_bitmask(scores, rows)
    if sampling.temperature == 0:
        return torch.zeros_like(scores).scatter_(-1, scores.argmax(-1, keepdim=True), 1.0)
    # Measured from the highest score, so that no quotient overflows upwards.
    scores = (scores - scores.amax(-1, keepdim=True)) / sampling.temperature
    if sampling.top_k is not None or sampling.top_p is not None:
        ordered, order = scores.sort(dim=-1, descending=True, stable=True)
        if sampling.top_k is not None:
            ordered[:, sampling.top_k :] = -torch.inf
        if sampling.top_p is not None:
            probabilities = ordered.softmax(-1)
            ordered[probabilities.cumsum(-1) - probabilities >= sampling.top_p] = -torch.inf
        scores = scores.scatter(-1, order, ordered)
    probabilities = scores.softmax(-1)
    if sampling.min_p is not None:
        probabilities[probabilities < sampling.min_p * probabilities.amax(-1, keepdim=True)] = 0
        probabilities /= probabilities.sum(-1, keepdim=True)
    return probabilities


def draw(probabilities: torch.Tensor, sampling: Sampling, generator: torch.Generator | None) -> torch.Tensor:
    """One token per row of :func:`law`: ``int64[batch]``."""
    import torch

    if sampling.temperature == 0:
        return probabilities.argmax(-1)
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)
