"""Mask application against a loop over single bits."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammarspec.bitmask import allocate_bitmask, apply_bitmask

torch = pytest.importorskip("torch")

TORCH_DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
NUMPY_DTYPES = [np.float32, np.float64, np.float16]


def naive(logits: Any, rows: Any, indices: list[int] | None) -> list[list[float]]:
    """What must come out, one bit at a time."""
    result = []
    for sequence, values in enumerate(logits.tolist()):
        row = sequence if indices is None else indices[sequence]
        if row < 0:
            result.append(values)
            continue
        words = [int(word) for word in rows[row]]
        result.append(
            [
                value if token // 32 < len(words) and words[token // 32] >> (token % 32) & 1 else float("-inf")
                for token, value in enumerate(values)
            ]
        )
    return result


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, list[int] | None, int, int]:
    """Logits as a larger array, rows, indices, and how to cut a strided view out of the larger array."""
    batch, width = draw(st.integers(1, 4)), draw(st.integers(0, 100))
    indices = None
    count = batch
    if draw(st.booleans()):
        count = draw(st.integers(1, 5))
        indices = draw(st.lists(st.integers(-1, count - 1), min_size=batch, max_size=batch))
    words = draw(st.integers(0, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = random.integers(-(2**31), 2**31, size=(count, words)).astype(np.int32)
    row_step, column_step = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    logits = random.standard_normal((batch * row_step + 1, width * column_step + 2)).astype(np.float16)
    return logits, rows, indices, row_step, column_step


def view(whole: Any, batch: int, row_step: int, column_step: int) -> Any:
    width = (whole.shape[1] - 2) // column_step
    return whole[1 : 1 + batch * row_step : row_step, 1 : 1 + width * column_step : column_step]


@given(case=cases(), dtype=st.sampled_from(NUMPY_DTYPES))
def test_numpy_equals_naive(case: Any, dtype: Any) -> None:
    whole, rows, indices, row_step, column_step = case
    whole = whole.astype(dtype)
    batch = (whole.shape[0] - 1) // row_step
    expected = whole.copy()
    inner = view(expected, batch, row_step, column_step)
    inner[...] = np.array(naive(inner, rows, indices), dtype=dtype).reshape(inner.shape)
    apply_bitmask(view(whole, batch, row_step, column_step), rows, indices)
    np.testing.assert_array_equal(whole, expected)


@given(case=cases(), dtype=st.sampled_from(TORCH_DTYPES), numpy_rows=st.booleans())
def test_torch_equals_naive(case: Any, dtype: Any, numpy_rows: bool) -> None:
    whole, rows, indices, row_step, column_step = case
    whole = torch.from_numpy(whole).to(dtype)
    batch = (whole.shape[0] - 1) // row_step
    expected = whole.clone()
    inner = view(expected, batch, row_step, column_step)
    inner.copy_(torch.tensor(naive(inner, rows, indices), dtype=dtype).reshape(inner.shape))
    apply_bitmask(view(whole, batch, row_step, column_step), rows if numpy_rows else torch.from_numpy(rows), indices)
    assert torch.equal(whole, expected)


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_equals_cpu(dtype: Any) -> None:
    rows = np.random.default_rng(0).integers(-(2**31), 2**31, size=(3, 1000)).astype(np.int32)
    host = torch.randn(4, 32_100).to(dtype)
    device = host.cuda()
    apply_bitmask(host, rows, [2, -1, 0, 2])
    apply_bitmask(device, rows, [2, -1, 0, 2])
    assert torch.equal(device.cpu(), host)


@pytest.mark.parametrize("rows_shape", [(2,), (1, 2)])
@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_one_dimension(make: Any, rows_shape: tuple[int, ...]) -> None:
    logits = make(40)
    rows = np.array([0b101, 0b1], dtype=np.int32).reshape(rows_shape)
    apply_bitmask(logits, rows)
    assert [token for token, value in enumerate(logits.tolist()) if value == 0] == [0, 2, 32]


def test_allocate() -> None:
    rows = allocate_bitmask(3, 65)
    assert rows.shape == (3, 3)
    assert rows.dtype == np.int32
    logits = np.zeros((3, 65), dtype=np.float32)
    apply_bitmask(logits, rows)
    assert np.isneginf(logits).all()


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_refuses_what_does_not_fit(make: Any) -> None:
    rows = allocate_bitmask(2, 64)
    with pytest.raises(ValueError, match="2 mask rows for 3 sequences"):
        apply_bitmask(make((3, 64)), rows)
    with pytest.raises(ValueError, match="1 indices for 3 sequences"):
        apply_bitmask(make((3, 64)), rows, [0])
    with pytest.raises(ValueError, match="dimensions"):
        apply_bitmask(make((3, 64, 1)), rows)
    with pytest.raises(TypeError, match="int32"):
        apply_bitmask(make((2, 64)), rows.astype(np.int64))
    with pytest.raises(IndexError):
        apply_bitmask(make((2, 64)), rows, [0, 2])


def test_refuses_integers() -> None:
    rows = allocate_bitmask(1, 64)
    with pytest.raises(TypeError, match="floating"):
        apply_bitmask(np.zeros((1, 64), dtype=np.int64), rows)
    with pytest.raises(TypeError, match="floating"):
        apply_bitmask(torch.zeros((1, 64), dtype=torch.int64), rows)


_AT_ONCE = """
import sys, threading
import torch
import grammarspec as gs

sys.setswitchinterval(1e-6)
together, right = threading.Barrier(8), []

def apply():
    logits = torch.zeros(1, 40)
    together.wait()
    gs.apply_bitmask(logits, torch.tensor([[1, 0]], dtype=torch.int32))
    right.append(bool(logits[0, 0] == 0 and (logits[0, 1:] == -torch.inf).all()))

threads = [threading.Thread(target=apply) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert right == [True] * 8, right
"""


@pytest.mark.slow
def test_first_calls_in_threads() -> None:
    """What is made at the first call is made once, whichever of many threads comes first."""
    subprocess.run([sys.executable, "-c", _AT_ONCE], check=True)
