"""Steps of an arena by a kernel, against the arena itself on the host: every state and token."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import grammarspec as gs  # noqa: E402
from grammarspec.frozen import FrozenArena  # noqa: E402
from grammarspec.frozen.stepping import step  # noqa: E402
from tests.kernels.running import kernel  # noqa: E402

ARRAYS = ("class_of", "next", "next_offset", "grammar_of")


@pytest.fixture(scope="module")
def arena() -> FrozenArena:
    vocabulary = gs.Vocabulary.bytes()
    arena = FrozenArena(vocabulary.size, width=263, grammars=4, states=60, transitions=2000, rows=40)
    for pattern in ("a+", "(yes|no)(, (yes|no))*", "[0-9]{1,4}"):
        arena.add(gs.compile(gs.regex(pattern), vocabulary).freeze())
    return arena


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_every_step(arena: FrozenArena, dtype: torch.dtype) -> None:
    held = [arena.tensors()[name] for name in ARRAYS]
    states = torch.arange(60, dtype=dtype)[:, None].expand(60, 263)
    tokens = torch.arange(263, dtype=dtype).expand(60, 263)
    expected = arena.step(states.numpy(), tokens.numpy())
    for mine in (kernel(step, states, tokens, *held), step(states, tokens, *held)):
        assert mine.dtype == torch.int32
        assert np.array_equal(mine.numpy(), expected)


def test_what_is_no_state_or_token_is_refused(arena: FrozenArena) -> None:
    held = [arena.tensors()[name] for name in ARRAYS]
    states = torch.tensor([0, 0, 0, -1, 60, 2**31 - 1, 2])
    tokens = torch.tensor([-1, 263, 5, 5, 5, 5, -(2**31)])
    for mine in (kernel(step, states, tokens, *held), step(states, tokens, *held)):
        assert mine.tolist() == [1, 1, 0, 1, 1, 1, 1]
    assert kernel(step, states[:0], tokens[:0], *held).shape == (0,)
