"""Random numbers, choices and draws by kernels, against the reference: the same integers, the same tokens."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytest.importorskip("transformers")

import triton.language as tl  # noqa: E402

from grammarspec.decoding.distributions import Kind, choices  # noqa: E402
from grammarspec.decoding.noise import Purpose, philox, uniform  # noqa: E402
from grammarspec.decoding.verification import draw  # noqa: E402
from grammarspec.kernels.blocks import random_words  # noqa: E402
from tests import tiers  # noqa: E402
from tests.kernels.running import DEVICE, generator, kernel  # noqa: E402


def streams(rows: int, seed: int) -> torch.Tensor:
    """Streams with words of 32 bits of all kinds."""
    found = torch.randint(0, 1 << 32, (rows, 3), generator=generator(seed))
    found[0] = torch.tensor([(1 << 32) - 1, (1 << 32) - 1, (1 << 31)])
    return found


@triton.jit
def words_kernel(counters, keys, out, BLOCK: tl.constexpr):
    index = tl.program_id(0)
    first = tl.load(counters + index * 4)
    position, sample, use = (
        tl.load(counters + index * 4 + 1),
        tl.load(counters + index * 4 + 2),
        tl.load(counters + index * 4 + 3),
    )
    low, high = tl.load(keys + index * 2), tl.load(keys + index * 2 + 1)
    block = (first + tl.arange(0, BLOCK)).to(tl.uint32)
    a, b, c, d = random_words(block, position, low, high, sample, use)
    place = out + index * BLOCK * 4 + tl.arange(0, BLOCK) * 4
    tl.store(place, a.to(tl.int64))
    tl.store(place + 1, b.to(tl.int64))
    tl.store(place + 2, c.to(tl.int64))
    tl.store(place + 3, d.to(tl.int64))


def test_random_words() -> None:
    """All four words, over counters and keys of all sizes."""
    counters = torch.randint(0, (1 << 32) - 8, (20, 4), generator=generator(1))
    counters[0], counters[1] = 0, (1 << 32) - 8
    keys = streams(20, 2)[:, :2].contiguous()
    out = torch.zeros(20, 8, 4, dtype=torch.int64, device=DEVICE)
    words_kernel[(20,)](counters.to(DEVICE), keys.to(DEVICE), out, BLOCK=8)
    every = counters[:, None].repeat(1, 8, 1)
    every[..., 0] += torch.arange(8)
    assert torch.equal(out.cpu(), philox(every, keys[:, None]))


@pytest.mark.parametrize("purpose", list(Purpose))
def test_uniform(purpose: Purpose) -> None:
    positions = torch.randint(0, 1 << 32, (7, 30), generator=generator(3))
    rounds = torch.tensor([0, 1, 2, 1000, (1 << 28) - 1, 5, 6])
    mine = kernel(uniform, streams(7, 4), positions, int(purpose), rounds)
    assert torch.equal(mine, uniform(streams(7, 4), positions, purpose, rounds))
    assert kernel(uniform, streams(1, 4)[:0], positions[:0], 1, rounds[:0]).shape == (0, 30)


@pytest.mark.property
@pytest.mark.parametrize("width", [1, 5, 70])
def test_choices(width: int) -> None:
    """Greedily and by shared noise: the tokens of the reference."""
    random = generator(tiers.seed(width))
    kinds = torch.tensor([Kind.NOISY, Kind.GREEDY, Kind.NOISY, Kind.DRAWN], dtype=torch.int32)
    for _ in range(tiers.draws(1)):
        distribution = torch.randn(4, 5, width, generator=random).mul(3).softmax(-1)
        distribution[torch.rand(4, 5, width, generator=random) < 0.5] = 0
        distribution[:, 1] = 1 / width
        distribution[:, 2] = 0
        distribution[:, 2, width // 2] = 1
        positions = torch.randint(0, 1 << 20, (4, 5), generator=random)
        given = (distribution, positions, kinds, streams(4, 5), True)
        assert torch.equal(kernel(choices, *given), choices(*given))


def test_choices_are_tokens_where_numbers_are_broken() -> None:
    distribution = torch.full((2, 1, 70), torch.nan)
    kinds = torch.tensor([Kind.NOISY, Kind.GREEDY], dtype=torch.int32)
    chosen = kernel(choices, distribution, torch.zeros(2, 1, dtype=torch.int64), kinds, streams(2, 1), True)
    assert ((chosen >= 0) & (chosen < 70)).all()
    drawn = kernel(draw, distribution[:, 0], torch.tensor([0.5, 0.1], dtype=torch.float64))
    assert ((drawn >= 0) & (drawn < 70)).all()


@pytest.mark.parametrize(("seed", "place", "token"), [(1, 26, 138), (1222, 170, 244)])
def test_no_noise_makes_up_for_a_probability_of_zero(seed: int, place: int, token: int) -> None:
    """As the test of that name in ``test_processing.py``."""
    kinds = torch.tensor([1], dtype=torch.int32)
    distribution = torch.full((1, 1, 264), 1 / 263)
    given = (torch.tensor([[place]]), kinds, torch.tensor([[seed, 0, 0]]), True)
    assert kernel(choices, distribution, *given) == token
    for small in (0.0, 1e-12):
        distribution[..., token] = small
        assert kernel(choices, distribution, *given) != token


@pytest.mark.property
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 31, 64, 150])
def test_draw(width: int, dtype: torch.dtype) -> None:
    """By inversion: also at the ends, of weights that are not normalised, and of rows of any stride."""
    random = generator(tiers.seed(width))
    for _ in range(tiers.draws(3)):
        weights = torch.rand(6, 2 * width, generator=random).pow(6)[:, :width].to(dtype) * 3
        weights[torch.rand(6, width, generator=random) < 0.6] = 0
        weights[:, width // 3] += 0.125
        uniforms = torch.rand(6, generator=random, dtype=torch.float64)
        uniforms[:2] = torch.tensor([2.0**-33, 1 - 2.0**-33], dtype=torch.float64)
        drawn = kernel(draw, weights, uniforms)
        assert torch.equal(drawn, draw(weights, uniforms))
        assert (weights.gather(1, drawn[:, None]) > 0).all()


def test_draw_in_a_real_row(whole_rows: None) -> None:
    weights = torch.rand(4, 151_937, generator=generator(1)).pow(40)
    uniforms = torch.tensor([1e-9, 0.3, 0.999, 1 - 2.0**-33], dtype=torch.float64)
    assert torch.equal(kernel(draw, weights, uniforms), draw(weights, uniforms))
