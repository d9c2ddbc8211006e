"""Random numbers as a pure function of where they are used: the same on every device, in every batch, for every draft.

A seed, a sample number, a position in the text and a purpose go in; uniform numbers or Gumbel noise come out. No state
is kept between calls.

The generator is Philox4x32-10, the counter-based generator of Salmon et al. 2011 ("Parallel random numbers: as easy as
1, 2, 3"), which CUDA and Triton use as well.
"""

from __future__ import annotations

from enum import IntEnum

import torch

__all__ = ["Purpose", "gumbel", "philox", "uniform"]

_WORD = 0xFFFF_FFFF
_MULTIPLIERS = (0xD251_1F53, 0xCD9E_8D57)
_WEYL = (0x9E37_79B9, 0xBB67_AE85)


class Purpose(IntEnum):
    """What a random number is for. Numbers for different purposes are independent.

    Attributes:
        SHARED: the noise by which draft and target choose the same token (rows with a seed).
        DRAFT: drawing a draft token.
        ACCEPT: accepting or rejecting a draft token.
        CHOOSE: drawing the token behind the accepted ones.
        AGAIN: drawing another token in place of one after which no ending fits the budget.
    """

    SHARED = 0
    DRAFT = 1
    ACCEPT = 2
    CHOOSE = 3
    AGAIN = 4


def philox(counter: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Four random words for each counter (Philox4x32-10).

    Args:
        counter: ``int64[..., 4]``, words of 32 bits.
        key: ``int64[..., 2]``, words of 32 bits; its leading dimensions broadcast with those of the counter.

    Returns:
        ``int64[..., 4]``, words of 32 bits.
    """
    c0, c1, c2, c3 = counter.unbind(-1)
    k0, k1 = key.unbind(-1)
    for _ in range(10):
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        # The product is taken modulo 2**64; of an arithmetic shift only the lower 32 bits are kept.
        c0, c1, c2, c3 = (right >> 32 & _WORD) ^ c1 ^ k0, right & _WORD, (left >> 32 & _WORD) ^ c3 ^ k1, left & _WORD
        k0, k1 = k0 + _WEYL[0] & _WORD, k1 + _WEYL[1] & _WORD
    return torch.stack((c0, c1, c2, c3), -1)


def _words(
    streams: torch.Tensor, positions: torch.Tensor, purpose: Purpose, rounds: torch.Tensor, blocks: int
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


def uniform(streams: torch.Tensor, positions: torch.Tensor, purpose: Purpose, rounds: torch.Tensor) -> torch.Tensor:
    """Random numbers strictly between 0 and 1.

    Args:
        streams: ``int64[rows, 3]``: the lower and the upper word of a seed, and the number of the sample.
        positions: ``int64[rows, n]``, in the text, from 0 to 2**32 - 1.
        purpose: what the numbers are for.
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
