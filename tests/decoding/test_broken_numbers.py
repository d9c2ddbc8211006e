"""Logits that are NaN or infinite end their own text; drafts that do not fit the target are refused by name."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from functools import wraps
from typing import Any

import pytest

import grammarspec as gs
from grammarspec.errors import DraftMismatch, InvalidLogits

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Request, Sampling, generate, generate_batch  # noqa: E402
from grammarspec.decoding.draft import Draft  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, Forced  # noqa: E402
from tests.oracles.noise_model import NoiseModel  # noqa: E402

VOCABULARY = gs.Vocabulary.bytes()
CONSTRAINT = gs.compile(gs.regex("[ab]{6}(xyz)"), VOCABULARY)


class Broken(NoiseModel):
    """Noise, but broken logits where so many tokens have been read."""

    def __init__(self, value: float, read: int) -> None:
        super().__init__(VOCABULARY.size)
        self.value, self.read = value, read

    @wraps(NoiseModel.forward)
    def forward(self, *given: Any, position_ids: Any, **options: Any) -> Any:
        found = super().forward(*given, position_ids=position_ids, **options)
        found.logits[position_ids.amax(-1) + 1 >= self.read] = self.value
        return found


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=1.0), Sampling(temperature=1.0, seed=1, top_p=0.9)]
)
@pytest.mark.parametrize("drafting", [False, True])
def test_a_row_of_broken_logits_ends_alone(value: float, sampling: Sampling, drafting: bool) -> None:
    proposers = [Forced(), DraftModel(NoiseModel(VOCABULARY.size))] if drafting else []
    for after in (0, 3):
        requests = [
            Request(prompt=[65] * length, matcher=CONSTRAINT.matcher(), sampling=sampling) for length in (1, 100, 2)
        ]
        model = Broken(value, 100 + after)
        texts = [text for [text] in generate_batch(model, requests, VOCABULARY, proposers=proposers)]
        assert [text.finish_reason for text in texts] == ["stop", "error", "stop"]
        error = texts[1].error
        assert isinstance(error, InvalidLogits) and isinstance(error, ArithmeticError)
        assert str(value) in str(error) and not texts[1].whole
        assert error.where.startswith("token ")
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(InvalidLogits):
        generate(Broken(value, 1), [65], CONSTRAINT.matcher(), VOCABULARY, sampling=sampling, proposers=proposers)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_draft_model_of_broken_logits_drafts_nothing(value: float) -> None:
    class AllBroken(NoiseModel):
        @wraps(NoiseModel.forward)
        def forward(self, *given: Any, **options: Any) -> Any:
            found = super().forward(*given, **options)
            found.logits[:] = value
            return found

    for sampling in (Sampling(), Sampling(temperature=1.0)):
        found = generate(
            NoiseModel(VOCABULARY.size),
            [1],
            CONSTRAINT.matcher(),
            VOCABULARY,
            sampling=sampling,
            proposers=[DraftModel(AllBroken(VOCABULARY.size))],
        )
        assert found.whole and not found.statistics.proposed


class Says:
    """Drafts one token, with or without a distribution."""

    name = "says"
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, token: int, distribution: Any = None, *, drawn: bool = False) -> None:
        self.token, self.distribution, self.drawn = token, distribution, drawn

    def start(self, batch: Any) -> None: ...
    def select(self, rows: Sequence[int]) -> None: ...
    def commit(self, draft: Draft, accepted: Sequence[int]) -> None: ...

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        for row in rows:
            if self.drawn:
                draft.add(row, self.token, self.name, self.distribution)
            else:
                draft.extend(row, [self.token], self.name)


@pytest.mark.parametrize("matcher", [None, CONSTRAINT.matcher()])
@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("token", [-1, 257, 1 << 40])
def test_tokens_that_the_target_does_not_have(matcher: Any, drawn: bool, token: int) -> None:
    with pytest.raises(DraftMismatch, match=f"says drafts the token {token}, and the target has only 257"):
        generate(NoiseModel(257), [1], matcher, VOCABULARY, proposers=[Says(token, drawn=drawn)])


def test_distributions_of_another_width() -> None:
    for width in (256, 258):
        says = Says(97, torch.full((width,), 1 / width), drawn=True)
        with pytest.raises(
            DraftMismatch, match=f"says draws from a distribution over {width} tokens, the target has 257"
        ):
            generate(NoiseModel(257), [1], None, VOCABULARY, sampling=Sampling(temperature=1.0), proposers=[says])


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([*range(256), 257], "model drafts tokens from 0 to 257, and the target has only 257"),
        ([-1, *range(1, 257)], "model drafts tokens from -1 to 256"),
        (list(range(200)), "has 200 entries for 257 logits of the draft model"),
    ],
)
def test_maps_that_do_not_fit(ids: list[int], said: str) -> None:
    draft = DraftModel(NoiseModel(257), draft_to_target=torch.tensor(ids))
    with pytest.raises(DraftMismatch, match=said):
        generate(NoiseModel(257), [1], CONSTRAINT.matcher(), VOCABULARY, proposers=[draft])
