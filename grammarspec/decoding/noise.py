"""Random numbers as a pure function of where they are used: the same on every device, in every batch, for every draft.

A seed, a sample number, a position in the text and a purpose go in; uniform numbers or Gumbel noise come out. No state
is kept between calls.

The generator is Philox4x32-10, the counter-based generator of Salmon et al. 2011 ("Parallel random numbers: as easy as
1, 2, 3"), which CUDA and Triton use as well.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from grammarspec.kernels.dispatch import operator

__all__ = ["Purpose", "Stream", "above", "gumbel", "gumbel_of", "philox", "uniform", "uniform_of"]

Stream = tuple[int, int, int]
"""What the random numbers of a row depend on: the lower and the upper word of a seed, and the number of the sample."""

_WORD = 0xFFFF_FFFF
_MULTIPLIERS = (0xD251_1F53, 0xCD9E_8D57)
_WEYL = (0x9E37_79B9, 0xBB67_AE85)

_Words = TypeVar("_Words", int, NDArray[np.int64], torch.Tensor)


class Purpose(IntEnum):
    """What a random number is for. Numbers for different purposes are independent.

    Attributes:
        SHARED: the noise by which draft and target choose the same token (rows with a seed).
        DRAFT: drawing a draft token.
        ACCEPT: accepting or rejecting a draft token.
        CHOOSE: drawing the token behind the accepted ones.
        AGAIN: drawing another token in place of one after which no ending fits the budget.
        RESAMPLE: choosing among particles (:mod:`~grammarspec.decoding.conditional`).
    """

    SHARED = 0
    DRAFT = 1
    ACCEPT = 2
    CHOOSE = 3
    AGAIN = 4
    RESAMPLE = 5


def philox(counter: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Four random words for each counter (Philox4x32-10).

    Args:
        counter: ``int64[..., 4]``, words of 32 bits.
        key: ``int64[..., 2]``, words of 32 bits; its leading dimensions broadcast with those of the counter.

    Returns:
        ``int64[..., 4]``, words of 32 bits.
    """
    return torch.stack(_rounds(*counter.unbind(-1), *key.unbind(-1)), -1)


def _rounds(
    c0: _Words, c1: _Words, c2: _Words, c3: _Words, k0: _Words, k1: _Words
) -> tuple[_Words, _Words, _Words, _Words]:
    """The ten rounds of the generator, on numbers, arrays or tensors: four words of a counter and two of a key."""
    for _ in range(10):
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        # The product may be taken modulo 2**64; of an arithmetic shift only the lower 32 bits are kept.
        c0, c1, c2, c3 = (right >> 32 & _WORD) ^ c1 ^ k0, right & _WORD, (left >> 32 & _WORD) ^ c3 ^ k1, left & _WORD
        k0, k1 = k0 + _WEYL[0] & _WORD, k1 + _WEYL[1] & _WORD
    return c0, c1, c2, c3


def _words(
    streams: torch.Tensor, positions: torch.Tensor, purpose: int, rounds: torch.Tensor, blocks: int
) -> torch.Tensor:
    """Random words of 32 bits: ``int64[rows, positions, 4 * blocks]``."""
    shape = (*positions.shape, blocks)
    block = torch.arange(blocks, device=positions.device)
    use = int(purpose) << 28 | rounds
    counter = (block, positions[..., None], streams[:, 2, None, None], use[:, None, None])
    key = streams[:, None, None, :2]
    return philox(torch.stack([part.expand(shape) for part in counter], -1), key).flatten(-2)


def _fraction(words: torch.Tensor) -> torch.Tensor:
    """Words of 32 bits as ``float64`` numbers strictly between 0 and 1; float32 would round the largest to 1."""
    return (words.double() + 0.5) / 2.0**32


@operator(
    "uniform(Tensor streams, Tensor positions, int purpose, Tensor rounds) -> Tensor",
    "noise:uniform",
)
def uniform(streams: torch.Tensor, positions: torch.Tensor, purpose: int, rounds: torch.Tensor) -> torch.Tensor:
    """Random numbers strictly between 0 and 1.

    Args:
        streams: ``int64[rows, 3]``: the lower and the upper word of a seed, and the number of the sample.
        positions: ``int64[rows, n]``, in the text, from 0 to 2**32 - 1.
        purpose: what the numbers are for, of :class:`Purpose`.
        rounds: ``int64[rows]``, below 2**28: tells apart the numbers that are drawn for one position in several rounds.

    Returns:
        ``float64[rows, n]``, multiples of 2**-33.
    """
    return _fraction(_words(streams, positions, purpose, rounds, 1)[..., 0])


def gumbel(streams: torch.Tensor, positions: torch.Tensor, width: int) -> torch.Tensor:
    """Gumbel noise for each token at each position.

    The argmax of log-probabilities plus Gumbel noise is a draw from their distribution (the Gumbel-max trick; Gumbel
    1954, Maddison et al. 2014). The noise depends on the seed, the sample, the position and the token alone, not on
    what was drafted.

    Args:
        streams: ``int64[rows, 3]``, as for :func:`uniform`.
        positions: ``int64[rows, n]``, in the text, from 0 to 2**32 - 1.
        width: the number of tokens.

    Returns:
        ``float64[rows, n, width]``.
    """
    words = _words(streams, positions, Purpose.SHARED, torch.zeros_like(streams[:, 0]), (width + 3) // 4)
    return -torch.log(-torch.log(_fraction(words[..., :width])))


def uniform_of(stream: Stream, position: int, purpose: Purpose, turn: int) -> float:
    """The number that :func:`uniform` gives for one position of one row, on the CPU.

    Args:
        stream: the row's.
        position, purpose: as for :func:`uniform`.
        turn: the number of the round.
    """
    low, high, sample = stream
    word, *_ = _rounds(0, position, sample, int(purpose) << 28 | turn, low, high)
    return (word + 0.5) / 2.0**32


def gumbel_of(stream: Stream, position: int, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """The noise that :func:`gumbel` gives for some tokens at one position of one row, on the CPU.

    Args:
        stream: the row's.
        position: as for :func:`gumbel`.
        tokens: ``int64[n]``.

    Returns:
        ``float64[n]``.
    """
    words = np.stack(_words_of(stream, position, tokens >> 2))[tokens & 3, np.arange(len(tokens))]
    noise: NDArray[np.float64] = -np.log(-np.log((words + 0.5) / 2.0**32))
    return noise


def above(stream: Stream, position: int, width: int, least: float) -> NDArray[np.int64]:
    """The tokens whose noise at one position of one row is at least a number, and maybe a few more, on the CPU.

    Args:
        stream, position: as for :func:`gumbel_of`.
        width: the number of tokens.
        least: the number.

    Returns:
        ``int64[n]``, ascending.
    """
    words = np.stack(_words_of(stream, position, np.arange((width + 3) // 4)), axis=1).ravel()
    return np.flatnonzero(words[:width] >= math.floor(math.exp(-math.exp(-least)) * 2.0**32) - 1)


def _words_of(stream: Stream, position: int, blocks: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """The random words of shared noise for some blocks of four tokens."""
    low, high, sample = stream
    constants: Any = (position, sample, int(Purpose.SHARED) << 28, low, high)  # numbers go with arrays
    return _rounds(blocks, *constants)
