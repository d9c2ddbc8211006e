"""Distributions by kernels, against the reference: the same tokens are kept, the probabilities equal to 16 ulps."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("transformers")

from grammarspec.decoding.distributions import Kind, distribution  # noqa: E402
from tests import tiers  # noqa: E402
from tests.kernels.running import close, columns, generator, kernel  # noqa: E402

INF, NAN = float("inf"), float("nan")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.05},
    {"temperature": 3.0},
    {"top_k": 1},
    {"top_k": 7},
    {"top_p": 1e-9},
    {"top_p": 0.61},
    {"top_p": 1.0},
    {"min_p": 0.131},
    {"min_p": 1.0},
    {"temperature": 1.3, "top_k": 9, "top_p": 0.83},
    {"temperature": 0.7, "top_k": 30, "top_p": 0.77, "min_p": 0.07},
]


def both(scores: torch.Tensor, samplings: list[dict[str, Any]], kinds: list[Kind]) -> tuple[torch.Tensor, torch.Tensor]:
    """What the kernel and what the reference makes of scores."""
    width = scores.shape[-1]
    given = (scores, *columns(samplings, width), torch.tensor(kinds, dtype=torch.int32))
    return kernel(distribution, *given), distribution(*given)


def in_float64(scores: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
    """What the reference makes of one row in float64: torch's sums of a hundred thousand float32 weights are coarser
    (1e-5 on the CPU) than those of kernels, which sum chunk by chunk."""
    kinds = torch.tensor([Kind.DRAWN], dtype=torch.int32)
    return distribution(scores.double(), *columns([options], scores.shape[-1]), kinds).float()


def clear(scores: torch.Tensor, options: dict[str, Any]) -> bool:
    """Whether no sum is so close to top-p, and no quotient to min-p, that rounding decides."""
    ordered = (scores.double() / options.get("temperature", 1.0)).sort(descending=True).values
    ordered[options.get("top_k", len(ordered)) :] = -INF
    shares = ordered.softmax(-1)
    before = shares.cumsum(-1) - shares
    quotients = shares[shares > 0] / shares[0]
    near_p = (before[shares > 0] - options.get("top_p", INF)).abs().min() < 1e-5
    near_min = (quotients - options.get("min_p", 0.0)).abs().min() < 1e-6 if options.get("min_p", 0) < 1 else False
    return not (bool(near_p) or bool(near_min))


@pytest.mark.property
def test_equals_reference() -> None:
    """Of rows with all kinds of options, with masks of all densities; ties among rounded scores."""
    random = generator(tiers.seed(1))
    kept = 0
    for number in range(tiers.draws(4, least=2)):
        width = int(torch.randint(2, 64, (), generator=random))
        samplings = [OPTIONS[(3 * number + row) % len(OPTIONS)] for row in range(3)]
        kinds = [Kind((number + row) % 3) for row in range(3)]
        scores = torch.randn(3, 2, width, generator=random) * 4
        if number % 3 == 0:
            scores = scores.round()
        density = torch.rand((3, 2, 1), generator=random)
        allowed = torch.rand((3, 2, width), generator=random) < density
        allowed[..., :1] |= ~allowed.any(-1, keepdim=True)
        scores = scores.masked_fill(~allowed, -INF)
        mine, theirs = both(scores, samplings, kinds)
        for row in range(3):
            for n in range(2):
                if number % 3 == 0 or kinds[row] == Kind.GREEDY or clear(scores[row, n], samplings[row]):
                    kept += 1
                    same = close(mine[row, n], theirs[row, n])
                    # Of rounded scores, sums may come so close to top-p that rounding decides.
                    assert same or not clear(scores[row, n], samplings[row]), (number, row, n, samplings[row])
    assert kept >= tiers.draws(4, least=2) * 4


@pytest.mark.parametrize("options", [{}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.1}])
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.combined
def test_broken_rows(options: dict[str, Any], kind: Kind) -> None:
    """Rows without an allowed token, with NaN, with infinities: NaN where the reference has it."""
    scores = torch.randn(1, 5, 45, generator=generator(2))
    scores[0, 0] = -INF
    scores[0, 1, 37] = NAN
    scores[0, 2, 40] = INF
    scores[0, 3, :44] = -INF
    scores[0, 4, 11:13] = -NAN
    mine, theirs = both(scores, [options], [kind])
    assert close(mine, theirs)
    assert mine[0, 3].tolist() == [0.0] * 44 + [1.0]


@pytest.mark.parametrize("options", [{"top_k": 3}, {"top_p": 0.51}, {"top_k": 6, "top_p": 0.39}])
def test_of_equal_scores_the_first_are_kept(options: dict[str, Any]) -> None:
    scores = torch.zeros(1, 2, 50)
    scores[0, 0, ::2] = 1.0
    scores[0, 1] = -0.0
    scores[0, 1, 20:] = 0.0
    mine, theirs = both(scores, [options], [Kind.DRAWN])
    assert torch.equal(mine > 0, theirs > 0)
    assert close(mine, theirs)


@pytest.mark.parametrize("top_k", [1, 44, 45, 46])
def test_top_k_at_the_width(top_k: int) -> None:
    mine, theirs = both(torch.randn(1, 1, 45, generator=generator(3)), [{"top_k": top_k}], [Kind.DRAWN])
    assert close(mine, theirs)
    assert (mine > 0).sum() == min(top_k, 45)


@pytest.mark.slow
def test_scores_far_apart() -> None:
    """Weights that underflow, and scores whose quotient by a low temperature would overflow."""
    scores = torch.tensor([[[1e38, -1e38, 1e38, 0.0] * 9, [100.0, 0.0, -100.0, -300.0] * 9]])
    for options in ({"temperature": 0.01}, {"temperature": 0.01, "top_p": 0.6}, {"top_k": 20, "top_p": 0.99}):
        mine, theirs = both(scores, [options], [Kind.DRAWN])
        assert close(mine, theirs)


@pytest.mark.parametrize("width", [49_152, tiers.slow(128_256), tiers.slow(151_937)])
def test_real_widths(width: int, whole_rows: None) -> None:
    scores = torch.randn(1, 1, width, generator=generator(width)) * 5
    scores[0, 0, torch.rand(width, generator=generator(1)) < 0.5] = -INF
    mine, _ = both(scores, [{"temperature": 0.8, "min_p": 0.01}], [Kind.DRAWN])
    assert close(mine, in_float64(scores, {"temperature": 0.8, "min_p": 0.01}))


@pytest.mark.slow
def test_select_in_a_real_row(whole_rows: None) -> None:
    scores = torch.randn(1, 1, 49_153, generator=generator(5)).bfloat16().float() * 3
    options = {"top_k": 400, "top_p": 0.83}
    mine, _ = both(scores, [options], [Kind.DRAWN])
    assert close(mine, in_float64(scores, options))


@pytest.mark.parametrize("shape", [(0, 2, 10), (2, 0, 10)])
def test_nothing(shape: tuple[int, ...]) -> None:
    assert both(torch.zeros(shape), [{}] * shape[0], [Kind.DRAWN] * shape[0])[0].shape == shape
