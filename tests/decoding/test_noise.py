"""Random numbers: Philox by its published answers, and what is made of its words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding.noise import Purpose, gumbel, philox, uniform  # noqa: E402

WORDS = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1])
EULER = 0.577_215_664_901_532_9


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_known_answers(counter: str, key: str, answer: str) -> None:
    """Those that Random123 publishes for philox4x32 of ten rounds."""
    words, keys, expected = ([int(word, 16) for word in text.split()] for text in (counter, key, answer))
    assert philox(torch.tensor(words), torch.tensor(keys)).tolist() == expected


def plain_philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    c, k = list(counter), list(key)
    for _ in range(10):
        left, right = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(right >> 32) ^ c[1] ^ k[0], right % 2**32, (left >> 32) ^ c[3] ^ k[1], left % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


@given(
    rows=st.lists(
        st.tuples(st.lists(WORDS, min_size=4, max_size=4), st.lists(WORDS, min_size=2, max_size=2)),
        min_size=1,
        max_size=8,
    )
)
def test_equals_plain_python(rows: list[tuple[list[int], list[int]]]) -> None:
    counters, keys = zip(*rows, strict=True)
    together = philox(torch.tensor(counters), torch.tensor(keys)).tolist()
    assert together == [plain_philox(*row) for row in rows]
    # One key for several counters.
    assert philox(torch.tensor(counters), torch.tensor(keys[0])).tolist() == [
        plain_philox(counter, keys[0]) for counter in counters
    ]


def numbers(
    purpose: Purpose = Purpose.ACCEPT, *, seed: int = 5, sample: int = 0, first: int = 0, turn: int = 0, n: int = 10_000
) -> torch.Tensor:
    stream = torch.tensor([[seed & 0xFFFF_FFFF, seed >> 32, sample]])
    return uniform(stream, torch.arange(first, first + n)[None], purpose, torch.tensor([turn]))[0]


def test_uniform_is_strictly_inside() -> None:
    values = numbers(n=200_000)
    assert values.dtype == torch.float64
    assert 0 < values.min() < 1e-4
    assert 1 - 1e-4 < values.max() < 1
    # Odd multiples of 2**-33.
    assert torch.equal(values * 2.0**33 % 2, torch.ones_like(values))


@pytest.mark.parametrize(
    ("purpose", "place", "block", "position"),
    [
        (Purpose.ACCEPT, 19_350_407, 0, 0),
        (Purpose.CHOOSE, 35_716_841, 0, 0),
        (Purpose.SHARED, 5_150_801, 0, 0),
        (Purpose.SHARED, 8_459_372, 0, 3),
    ],
)
def test_highest_words(purpose: Purpose, place: int, block: int, position: int) -> None:
    """Words so high that in float32 the number would be 1, and the noise infinite."""
    assert plain_philox([block, place, 0, purpose << 28], [0, 0])[position] >= 2**32 - 128
    stream, places = torch.tensor([[0, 0, 0]]), torch.tensor([[place]])
    if purpose == Purpose.SHARED:
        noise = gumbel(stream, places, 4)[0, 0]
        assert noise.isfinite().all()
        assert noise[position] > 17
    else:
        assert 1 - 2**-25 < uniform(stream, places, purpose, torch.tensor([0])) < 1


def test_uniform_is_the_first_word() -> None:
    for purpose in Purpose:
        [[value]] = uniform(torch.tensor([[1, 2, 3]]), torch.tensor([[4]]), purpose, torch.tensor([6])).tolist()
        assert value == (plain_philox([0, 4, 3, purpose * 2**28 + 6], [1, 2])[0] + 0.5) / 2**32


@pytest.mark.parametrize("purpose", list(Purpose))
def test_uniform_is_even(purpose: Purpose) -> None:
    counts = torch.histc(numbers(purpose, n=40_000), 100, 0, 1)
    # The 0.9999 quantile of chi-square with 99 degrees of freedom.
    assert ((counts - 400) ** 2 / 400).sum() < 161


OTHERS: dict[str, dict[str, Any]] = {
    "purpose": {"purpose": Purpose.CHOOSE},
    "draft": {"purpose": Purpose.DRAFT},
    "shared": {"purpose": Purpose.SHARED},
    "again": {"purpose": Purpose.AGAIN},
    "seed": {"seed": 6},
    "high word": {"seed": 5 + (1 << 32)},
    "top bit": {"seed": 5 + (1 << 63)},
    "sample": {"sample": 1},
    "next place": {"first": 1},
    "places": {"first": 10_000},
    "round": {"turn": 1},
    "late round": {"turn": 2**28 - 1},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_uncorrelated(other: dict[str, Any]) -> None:
    one, two = numbers(), numbers(**other)
    assert not torch.equal(one, two)
    assert (one == two).sum() == 0
    correlation = torch.corrcoef(torch.stack((one, two)))[0, 1]
    assert abs(correlation) < 4 / math.sqrt(len(one))
    # Also where a dependence is not linear: squares of a grid are equally full.
    squares = torch.bincount((one * 8).long() * 8 + (two * 8).long(), minlength=64)
    expected = len(one) / 64
    assert ((squares - expected) ** 2 / expected).sum() < 113, "the 0.9999 quantile with 63 degrees of freedom is 113"


def test_every_use_has_its_own_number() -> None:
    seeds = [0, 1, 2**32, 2**64 - 1]
    turns = [0, 1, 31, 2**28 - 1]
    found = set()
    uses = itertools.product(Purpose, seeds, (0, 1, 2), turns)
    for purpose, seed, sample, turn in uses:
        found |= set(numbers(purpose, seed=seed, sample=sample, turn=turn, n=8).tolist())
    assert len(found) == len(Purpose) * len(seeds) * 3 * len(turns) * 8


@given(data=st.data())
def test_independent_of_the_batch(data: st.DataObject) -> None:
    rows, n, width = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    streams = torch.tensor([data.draw(st.lists(WORDS, min_size=3, max_size=3)) for _ in range(rows)])
    places = torch.tensor([data.draw(st.lists(WORDS, min_size=n, max_size=n)) for _ in range(rows)])
    turns = torch.tensor(data.draw(st.lists(st.integers(0, 2**28 - 1), min_size=rows, max_size=rows)))
    purpose = data.draw(st.sampled_from(Purpose))
    values, noise = uniform(streams, places, purpose, turns), gumbel(streams, places, width)
    assert values.shape == (rows, n)
    assert noise.shape == (rows, n, width)
    assert ((values > 0) & (values < 1)).all()
    for row, position in itertools.product(range(rows), range(n)):
        stream, place = streams[row : row + 1], places[row : row + 1, position : position + 1]
        assert uniform(stream, place, purpose, turns[row : row + 1]).item() == values[row, position]
        # A token's noise does not depend on how many tokens there are.
        assert torch.equal(gumbel(stream, place, width + 3)[0, 0, :width], noise[row, position])


def test_gumbel_is_made_of_all_words() -> None:
    [[values]] = gumbel(torch.tensor([[7, 8, 9]]), torch.tensor([[10]]), 7).tolist()
    words = plain_philox([0, 10, 9, 0], [7, 8]) + plain_philox([1, 10, 9, 0], [7, 8])
    assert values == pytest.approx([-math.log(-math.log((word + 0.5) / 2**32)) for word in words[:7]], rel=1e-12)


def test_gumbel_has_its_mean_and_variance() -> None:
    noise = gumbel(torch.tensor([[1, 0, 0]]), torch.arange(4_000)[None], 50)[0]
    assert noise.dtype == torch.float64
    assert noise.isfinite().all()
    count = noise.numel()
    variance = math.pi**2 / 6
    assert noise.mean() == pytest.approx(EULER, abs=4 * math.sqrt(variance / count))
    # The kurtosis of the distribution is 5.4.
    assert noise.var() == pytest.approx(variance, abs=4 * variance * math.sqrt(4.4 / count))
    # Neither tokens of a place nor places of a token are correlated.
    for columns in (noise[:, :8].T, noise[:8, :]):
        correlations = torch.corrcoef(columns) - torch.eye(len(columns), dtype=torch.float64)
        assert correlations.abs().max() < 4.5 / math.sqrt(columns.shape[1])


def test_argmax_follows_the_distribution() -> None:
    distribution = torch.tensor([0.5, 0.0, 0.3, 0.15, 0.05], dtype=torch.float64)
    chosen = (distribution.log() + gumbel(torch.tensor([[3, 1, 4]]), torch.arange(20_000)[None], 5)[0]).argmax(-1)
    counts = torch.bincount(chosen, minlength=5)
    assert counts[1] == 0
    expected = distribution * len(chosen)
    statistic = ((counts - expected) ** 2 / expected)[distribution > 0].sum()
    assert statistic < 21.1, "the 0.9999 quantile of chi-square with three degrees of freedom"
