"""On the CPU, row by row, the same tokens are chosen as by whole batches of tensors."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from grammarspec.decoding import Sampling, batch  # noqa: E402
from grammarspec.decoding.choosers import TensorChooser, Verdict, aligned_left  # noqa: E402
from grammarspec.decoding.draft import Draft, MaskRows  # noqa: E402
from grammarspec.decoding.host_chooser import HostChooser  # noqa: E402
from grammarspec.decoding.noise import Purpose, gumbel, gumbel_of, uniform, uniform_of  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from tests import tiers  # noqa: E402

CPU = torch.device("cpu")
WIDTH, MASKED, GAMMA = 1100, 1090, 4
CASES = tiers.draws(300, least=40)


@dataclass
class Row:
    """As much of a sequence as a draft needs."""

    tokens: list[int]
    length: int
    matcher: None = None
    ends: set[int] = field(default_factory=set)

    def is_end(self, token: int) -> bool:
        return token in self.ends


def options(choose: random.Random) -> Sampling:
    return Sampling(
        temperature=choose.choice([0, 0, 0.7, 1.0, 3.0]),
        top_k=choose.choice([None, None, 1, 7, 300, 5000]),
        top_p=choose.choice([None, None, 0.1, 0.9, 1.0]),
        min_p=choose.choice([None, None, 0.0, 0.05]),
        repetition_penalty=choose.choice([1.0, 1.0, 1.4]),
        presence_penalty=choose.choice([0.0, 0.0, 0.5]),
        frequency_penalty=choose.choice([0.0, 0.0, -0.25]),
        logit_bias=choose.choice([{}, {}, {3: 2.0, 40: -1.0}]),
        seed=choose.choice([None, None, choose.randrange(2**64)]),
    )


def mask(choose: random.Random, tokens: list[int]) -> np.ndarray:
    """A mask that allows these tokens, and others: few, many, or all."""
    allowed = np.zeros((MASKED + 31) // 32 * 32, dtype=bool)
    share = choose.choice([0.0, 0.01, 0.1, 0.6, 0.99, 1.0])
    allowed[np.random.default_rng(choose.randrange(2**32)).random(len(allowed)) < share] = True
    allowed[tokens] = True
    return np.packbits(allowed, bitorder="little").view(np.int32)


def case(choose: random.Random) -> tuple[Processing, Draft, Any]:
    """Rows with drafts of any lengths, some drawn, under masks; and logits for them."""
    wanted = [options(choose) for _ in range(choose.randint(1, 4))]
    prompts = [[choose.randrange(MASKED) for _ in range(3)] for _ in wanted]
    process = Processing(wanted, list(range(len(wanted))), prompts, WIDTH, CPU)
    rows: Any = [Row(prompt, choose.randrange(200), ends={7}) for prompt in prompts]
    for row in range(len(rows)):
        process.count(row, choose.choices(range(50), k=5))
    draft = Draft(rows, [GAMMA] * len(rows), MaskRows(len(rows), GAMMA, MASKED), CPU, WIDTH)
    generator = torch.Generator().manual_seed(choose.randrange(2**32))
    logits = 3 * torch.randn(len(rows), GAMMA + 1, WIDTH, generator=generator)
    logits[:, :, :50] += 3
    if choose.random() < 0.3:
        logits = logits.round()  # ties
    for row in range(len(rows)):
        for position in range(choose.randint(0, GAMMA)):
            likely = int(logits[row, position, :MASKED].argmax())
            token = choose.choice([likely, likely, choose.randrange(MASKED)])
            distribution = None
            if process.draws_row(row) and choose.random() < 0.5:
                distribution = torch.rand(WIDTH, generator=generator).square()
                distribution[token] += choose.choice([0.1, 50.0])
                distribution /= distribution.sum()
            draft.add(row, token, "x", distribution)
    for row, tokens in enumerate(draft.tokens):
        following = choose.randrange(MASKED)
        for rows_of_masks, token in zip(draft.mask_rows(row), [*tokens, following], strict=True):
            rows_of_masks[:] = mask(choose, [token] * (choose.random() < 0.9) or [following])
    logits = torch.stack(
        [logits[row].roll(draft.gamma - len(tokens), 0) for row, tokens in enumerate(draft.tokens)]
    )  # padded on the left
    return process, draft, logits[:, : draft.gamma + 1]


def agree(one: Verdict, other: Verdict, draft: Draft, row: int) -> bool:
    """Behind an end of text that was accepted, nothing is chosen."""
    ended = draft.sequences[row].is_end(draft.tokens[row][one.accepted - 1]) if one.accepted else False
    return (one.accepted, one.following) == (other.accepted, other.following) or (
        ended and other.accepted >= one.accepted
    )


@pytest.mark.property
def test_the_same_tokens_are_accepted_and_chosen() -> None:
    choose = random.Random(tiers.seed(3))
    chosen = accepted = 0
    for turn in range(CASES):
        process, draft, logits = case(choose)
        tensors, host = (kind(process).verify(logits, draft, turn) for kind in (TensorChooser, HostChooser))
        for row, (one, other) in enumerate(zip(host, tensors, strict=True)):
            assert agree(one, other, draft, row), (process.samplings[row], draft.tokens[row], one, other)
            assert one.highest == pytest.approx(other.highest[: len(one.highest)])
            chosen, accepted = chosen + 1, accepted + one.accepted
    assert accepted > chosen / 5, "drafts that are never accepted say little"


@pytest.mark.property
def test_the_same_tokens_are_proposed() -> None:
    choose = random.Random(tiers.seed(4))
    for turn in range(CASES):
        process, draft, logits = case(choose)
        rows = list(range(len(draft.tokens)))
        for masked in (True, False):
            one, other = (
                kind(process).propose(logits[:, -1], draft, rows, turn, masked=masked, confidence=True)
                for kind in (HostChooser, TensorChooser)
            )
            for ours, theirs in zip(one, other, strict=True):
                assert ours is not None
                assert theirs is not None
                assert ours.token == theirs.token
                assert ours.confidence == pytest.approx(theirs.confidence, rel=1e-4)
                assert (ours.distribution is None) == (theirs.distribution is None)
                if ours.distribution is not None and theirs.distribution is not None:
                    assert torch.allclose(ours.distribution, theirs.distribution, rtol=1e-4, atol=1e-7)


@pytest.mark.property
def test_the_same_tensors_come_out() -> None:
    """The methods that both have, which the loop on the device calls."""
    choose = random.Random(tiers.seed(6))
    for turn in range(CASES):
        process, draft, logits = case(choose)
        logits = aligned_left(logits, draft)
        count, width = len(draft.tokens), draft.gamma + 1
        masks = torch.full((count, width, MASKED // 32 + 1), -1, dtype=torch.int32)
        drawn = torch.zeros(count, draft.gamma, dtype=torch.bool)
        for row, tokens in enumerate(draft.tokens):
            masks[row, : len(tokens) + 1] = torch.from_numpy(np.stack(draft.mask_rows(row)))
            drawn[row, : len(tokens)] = torch.tensor(draft.drawn[row], dtype=torch.bool)
        positions = torch.tensor([[each.length] for each in draft.sequences]) + torch.arange(width)
        turns = torch.full((count,), turn)
        distributions = None if draft.distributions is None else draft.distributions[:, : draft.gamma]
        verdicts = [
            kind.verify_logits(logits, masks, draft.padded(), draft.lengths(), distributions, drawn, positions, turns)
            for kind in (process, HostChooser(process))
        ]
        for one, other in zip(*verdicts, strict=True):
            assert one.shape == other.shape
        (accepted, following, highest), (count_, next_, best) = verdicts
        assert (accepted.tolist(), following.tolist()) == (count_.tolist(), next_.tolist())
        for row, place in enumerate(accepted.tolist()):
            assert best[row, : place + 1].tolist() == pytest.approx(highest[row, : place + 1].tolist())
        wanted = torch.rand(count) < 0.7
        given = masks[:, 0] if choose.random() < 0.5 else None
        ours, theirs = (
            kind.propose_logits(
                logits[:, 0], given, draft.padded()[:, :0], positions[:, 0], turns, wanted, confidence=True
            )
            for kind in (process, HostChooser(process))
        )
        for row in wanted.nonzero()[:, 0].tolist():
            assert ours.tokens[row] == theirs.tokens[row] and ours.possible[row] == theirs.possible[row]
            assert float(ours.confidence[row]) == pytest.approx(float(theirs.confidence[row]), rel=1e-4)
            if process.draws_row(row):
                assert torch.allclose(ours.distributions[row], theirs.distributions[row], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(("value", "token", "broken"), [(float("nan"), 5, True), (float("nan"), 6, False)])
def test_broken_logits_are_seen_where_they_matter(temperature: float, value: float, token: int, broken: bool) -> None:
    process = Processing([Sampling(temperature=temperature)], [0], [[0]], WIDTH, CPU)
    rows: Any = [Row([0], 0)]
    for few in (True, False):
        draft = Draft(rows, [0], MaskRows(1, 0, MASKED), CPU, WIDTH)
        draft.fill_masks()
        [row] = draft.mask_rows(0)
        row[:] = 0 if few else -1
        row[0] = 0b101000 if few else ~(1 << 6)
        logits = torch.zeros(1, 1, WIDTH)
        logits[0, 0, token] = value
        [verdict] = HostChooser(process).verify(logits, draft, 0)
        assert np.isfinite(verdict.highest).all() != broken


@pytest.mark.property
def test_numbers_equal_those_of_tensors() -> None:
    choose = random.Random(tiers.seed(5))
    for _ in range(50):
        stream = (choose.randrange(2**32), choose.randrange(2**32), choose.randrange(9))
        position, turn = choose.randrange(10_000), choose.randrange(1000)
        streams, positions = torch.tensor([stream]), torch.tensor([[position]])
        for purpose in Purpose:
            expected = uniform(streams, positions, purpose, torch.tensor([turn])).item()
            assert uniform_of(stream, position, purpose, turn) == expected
        tokens = np.array(sorted(choose.sample(range(WIDTH), choose.choice([1, 3, 40, 900]))))
        noise = gumbel(streams, positions, WIDTH)[0, 0].numpy()[tokens]
        assert gumbel_of(stream, position, tokens) == pytest.approx(noise, rel=1e-12)


def test_the_cpu_is_chosen_for_wide_rows() -> None:
    wide, narrow = (Processing([Sampling()], [0], [[0]], width, CPU) for width in (WIDTH, 10))
    assert isinstance(batch.chooser_for(wide, CPU), HostChooser)  # all of them, in these tests
    assert isinstance(batch.chooser_for(narrow, torch.device("meta")), TensorChooser)
