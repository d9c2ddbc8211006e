"""Masks applied by kernels, against the reference in torch: exactly equal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("transformers")

from grammarspec.bitmask import apply_bitmask  # noqa: E402
from grammarspec.decoding.distributions import masked_scores  # noqa: E402
from grammarspec.kernels.dispatch import using  # noqa: E402
from tests import tiers  # noqa: E402
from tests.kernels.running import DEVICE, MODE, generator, kernel, packed  # noqa: E402
from tests.test_bitmask import cases, naive, view  # noqa: E402

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


@given(case=cases(), dtype=st.sampled_from(DTYPES))
@settings(max_examples=tiers.each_round(60))
def test_equals_naive(case: Any, dtype: Any) -> None:
    """Any strides; rows narrower and wider than the logits; indices that repeat and leave out; nothing else written."""
    whole, rows, indices, row_step, column_step = case
    whole = torch.from_numpy(whole).to(dtype)
    batch = (whole.shape[0] - 1) // row_step
    inner = view(whole, batch, row_step, column_step)
    expected = whole.clone()
    expected_inner = view(expected, batch, row_step, column_step)
    expected_inner.copy_(torch.tensor(naive(inner, rows, indices), dtype=dtype).reshape(inner.shape))
    there = whole.to(DEVICE)
    with using(MODE):
        apply_bitmask(view(there, batch, row_step, column_step), rows, indices)
    assert torch.equal(there.cpu(), expected)
    masked = torch.tensor(naive(inner, rows, indices), dtype=dtype).reshape(inner.shape)
    chosen = None if indices is None else torch.tensor(indices, dtype=torch.int64)
    scores = kernel(masked_scores, inner, torch.from_numpy(rows), chosen)
    assert scores.dtype == torch.float32
    assert torch.equal(scores, masked.float())


@pytest.mark.parametrize("width", [49_152, tiers.slow(128_256), tiers.slow(151_937)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.combined
def test_real_widths(width: int, dtype: Any, whole_rows: None) -> None:
    random = generator(width)
    logits = torch.randn(2, width, generator=random).to(dtype)
    logits[0, ::7] = torch.nan
    logits[1, ::5] = -torch.inf
    rows = packed(torch.rand(2, width, generator=random) < 0.3)
    for indices in (None, torch.tensor([1, -1])):
        expected = logits.clone()
        apply_bitmask(expected, rows, indices)
        there = logits.to(DEVICE)
        with using(MODE):
            apply_bitmask(there, rows, indices)
        assert torch.equal(there.cpu().nan_to_num(7), expected.nan_to_num(7))
        assert torch.equal(kernel(masked_scores, logits, rows, indices).nan_to_num(7), expected.float().nan_to_num(7))


def test_an_index_past_the_last_row_forbids_all() -> None:
    logits, rows = torch.zeros(2, 40), torch.full((2, 2), -1, dtype=torch.int32)
    scores = kernel(masked_scores, logits, rows, torch.tensor([2, 1]))
    assert scores.tolist() == [[-float("inf")] * 40, [0.0] * 40]


@pytest.mark.parametrize("shape", [(0, 40), (3, 0), (1, 1)])
def test_small_shapes(shape: tuple[int, int]) -> None:
    logits, rows = torch.zeros(shape), torch.zeros(shape[0], 2, dtype=torch.int32)
    assert torch.equal(kernel(masked_scores, logits, rows, None), torch.full(shape, -float("inf")))


def test_one_dimension_and_what_does_not_fit() -> None:
    with using(MODE):
        logits = torch.zeros(40, device=DEVICE)
        apply_bitmask(logits, torch.tensor([0b101, 0b1], dtype=torch.int32))
        assert logits.isfinite().nonzero()[:, 0].tolist() == [0, 2, 32]
        with pytest.raises(ValueError, match="2 mask rows for 3 sequences"):
            apply_bitmask(torch.zeros(3, 64, device=DEVICE), torch.zeros(2, 2, dtype=torch.int32))
