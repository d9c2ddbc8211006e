"""Verification by kernels, against the reference: the same accepted tokens and next tokens for the same noise."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("transformers")

from grammarspec.decoding import Sampling  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from grammarspec.kernels.dispatch import using  # noqa: E402
from tests import tiers  # noqa: E402
from tests.kernels.running import DEVICE, MODE, close, generator, packed  # noqa: E402

KINDS: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 0.9, "seed": 11},
    {"temperature": 1.1},
    {"temperature": 1.0, "top_k": 5},
    {"temperature": 0.8, "top_p": 0.7, "seed": 1 << 63},
    {"temperature": 1.0, "min_p": 0.1},
]


class Round:
    """The inputs of a round, at random: some drafts are of the target's liking, some rows have none."""

    def __init__(self, rows: int, n: int, width: int, seed: int, dtype: torch.dtype = torch.bfloat16) -> None:
        random = generator(seed)
        self.logits = (torch.randn(rows, n, width, generator=random) * 3).to(dtype)
        self.pool = packed(torch.rand(rows * n + 3, width, generator=random) < 0.4)
        self.mask_rows = torch.randint(-1, rows * n + 3, (rows, n), generator=random)
        self.masks = self.pool[self.mask_rows.clamp(min=0)] | -(self.mask_rows < 0).to(torch.int32)[..., None]
        self.lengths = torch.randint(0, n, (rows,), generator=random)
        self.draft = (torch.randn(rows, n + 1, width, generator=random) * 2).softmax(-1)[:, : n - 1]
        self.drawn = torch.rand(rows, n - 1, generator=random) < 0.6
        tokens = torch.randint(0, width, (rows, n - 1), generator=random)
        liked = self.logits[:, :-1].argmax(-1)
        self.tokens = torch.where(torch.rand(rows, n - 1, generator=random) < 0.5, liked, tokens)
        self.tokens[torch.arange(n - 1) >= self.lengths[:, None]] = -1
        self.positions = torch.randint(0, 1000, (rows, 1), generator=random) + torch.arange(n)
        self.rounds = torch.full((rows,), seed % 1000)


def outcome(
    samplings: list[dict[str, Any]], case: Round, *, pool: bool, compiled: bool, wide: bool = False
) -> list[torch.Tensor]:
    """What the kernels, or else the reference, make of a round; of large ones not all."""
    device = DEVICE if compiled else torch.device("cpu")
    torch.manual_seed(7)  # rows without a seed get one
    rows, width = len(samplings), case.logits.shape[-1]
    process = Processing([Sampling(**o) for o in samplings], [3] * rows, [[0]] * rows, width, device)
    there = {name: value.to(device) for name, value in vars(case).items()}
    draft = there["draft"] if process.draws else None
    rest = (there["lengths"], draft, there["drawn"] & process.draws, there["positions"], there["rounds"])
    masks = there["pool" if pool else "masks"]
    with using(MODE if compiled else "reference"):
        indices = there["mask_rows"] if pool else None
        logits = process.verify_logits(there["logits"], masks, there["tokens"], *rest, mask_rows=indices)
        if wide:
            return [each.cpu() for each in logits]
        scores = process.scores(there["logits"], there["masks"], there["tokens"])
        whole = process.verify(scores, there["tokens"].clamp(min=0), *rest)
        proposed = process.propose(scores[:, 0], there["positions"][:, 0], there["rounds"])
    given = [*logits, *whole, proposed[0], *([] if proposed[1] is None else [proposed[1]])]
    return [each.cpu() for each in given]


def check(samplings: list[dict[str, Any]], case: Round, *, pool: bool = False, wide: bool = False) -> torch.Tensor:
    """Compare the two, and return how many draft tokens were accepted."""
    mine = outcome(samplings, case, pool=pool, compiled=True, wide=wide)
    theirs = outcome(samplings, case, pool=pool, compiled=False, wide=wide)
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert close(one, other) if one.is_floating_point() else torch.equal(one, other)
    assert wide or (torch.equal(mine[0], mine[3]) and torch.equal(mine[1], mine[4]))
    return mine[0]


@pytest.mark.property
@pytest.mark.parametrize("dtype", [torch.bfloat16, tiers.slow(torch.float16), tiers.slow(torch.float32)])
def test_mixed_batches(dtype: torch.dtype) -> None:
    """Rows of all kinds beside each other; masks in rows of their own and in a pool."""
    for number in range(tiers.draws(1)):
        few = KINDS if dtype == torch.bfloat16 else KINDS[:3]
        case = Round(len(few), 2, 37 + 13 * (number % 3), tiers.seed(10 + number), dtype)
        check(few, case, pool=dtype != torch.float16, wide=dtype != torch.bfloat16)


@pytest.mark.parametrize("options", KINDS, ids=str)
@pytest.mark.combined
def test_batches_of_one_kind(options: dict[str, Any]) -> None:
    """Kernels leave out what no row needs."""
    check([options], Round(1, 3, 45, 5), pool=True)


@pytest.mark.parametrize("n", [1, 2])
def test_short_drafts(n: int) -> None:
    check(KINDS[:3], Round(3, n, 40, 6))


@pytest.mark.slow
def test_a_batch_of_64() -> None:
    accepted = check([KINDS[row % 3] for row in range(64)], Round(64, 2, 20, 9), pool=True, wide=True)
    assert len(accepted.unique()) == 2  # some are accepted, some are not


@pytest.mark.slow
@pytest.mark.parametrize(("width", "options"), [(49_152, KINDS[2]), (128_256, KINDS[1]), (151_937, KINDS[0])])
def test_real_widths(width: int, options: dict[str, Any], whole_rows: None) -> None:
    check([options], Round(1, 2, width, 8), pool=True, wide=True)


def test_broken_rows_are_told_by_their_highest_score() -> None:
    """Rows without an allowed token and with NaN: the highest score says so, and no other row minds."""
    case = Round(3, 2, 50, 3, torch.float32)
    case.masks[0] = 0
    case.logits[1, :, 5] = torch.nan
    case.masks[1] = -1
    samplings = [{"temperature": 1.0, "seed": 4}] * 3
    mine, theirs = (outcome(samplings, case, pool=False, compiled=compiled) for compiled in (True, False))
    assert close(mine[2], theirs[2])
    assert mine[2][0].tolist() == [-float("inf")] * 2 and mine[2][1].isnan().all() and mine[2][2].isfinite().all()
    assert torch.equal(mine[1][2], theirs[1][2])
    assert ((mine[1] >= 0) & (mine[1] < 50)).all()


@pytest.mark.slow
def test_penalties_and_bias() -> None:
    """They are applied by torch; the rest by kernels."""
    samplings = [
        {"temperature": 1.0, "seed": 1, "repetition_penalty": 1.3, "logit_bias": {3: 2.0}},
        {"temperature": 0, "frequency_penalty": 0.5},
    ]
    check(samplings, Round(2, 3, 40, 12, torch.float32))
    check(samplings, Round(2, 3, 40, 13, torch.float32), pool=True)


def test_what_a_draft_holds_beyond_its_end_does_not_matter() -> None:
    """Padding that is no token is not read: not even as an address."""
    case = Round(3, 3, 30, 20)
    before = outcome(KINDS[:3], case, pool=False, compiled=True, wide=True)
    beyond = torch.arange(2) >= case.lengths[:, None]
    case.draft[beyond] = torch.nan
    case.drawn[beyond] = True
    after = outcome(KINDS[:3], case, pool=False, compiled=True, wide=True)
    assert all(torch.equal(one, other) for one, other in zip(before[:2], after[:2], strict=True))
