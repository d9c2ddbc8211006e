"""The distribution of the next token against a plain-Python one, row by row, and the tokens that are chosen by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


from grammarspec.decoding import Sampling  # noqa: E402
from grammarspec.decoding.noise import gumbel  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from grammarspec.decoding.sampling import COLDEST  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.distributions import chi_square, naive_distribution  # noqa: E402

CPU = torch.device("cpu")
WIDTH = 40


def pack(allowed: set[int], words: int = 2) -> np.ndarray:
    row = np.zeros(words, dtype=np.uint32)
    for token in allowed:
        row[token // 32] |= np.uint32(1 << token % 32)
    return row.view(np.int32)


def processing(
    samplings: Sequence[Sampling], prompts: Sequence[Sequence[int]] | None = None, *, width: int = WIDTH
) -> Processing:
    return Processing(samplings, [0] * len(samplings), prompts or [[0]] * len(samplings), width, CPU)


def no_masks(rows: int, n: int, width: int = WIDTH) -> torch.Tensor:
    return torch.full((rows, n, (width + 31) // 32), -1, dtype=torch.int32)


def no_draft(rows: int, n: int = 1) -> torch.Tensor:
    return torch.full((rows, n - 1), -1)


TOKENS = st.integers(0, WIDTH - 1)

# Penalties and biases are sums of powers of two: of numbers this short every score is exact, and ties are ties.
samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0, 0.1, 0.7, 1, 1.0, 3.0]),
    top_k=st.none() | st.integers(1, 50),
    top_p=st.none() | st.sampled_from([0.0103, 0.307, 0.503, 0.907, 1.0]),
    min_p=st.none() | st.sampled_from([0, 0.0107, 0.203, 0.507, 1]),
    repetition_penalty=st.sampled_from([1.0, 2.0, 0.5, 4]),
    presence_penalty=st.sampled_from([0.0, 1, 0.25, -0.5]),
    frequency_penalty=st.sampled_from([0.0, 1, 0.125, -0.25]),
    logit_bias=st.dictionaries(TOKENS, st.sampled_from([-8.0, -0.5, 0.25, 1, 8.0]), max_size=4),
    seed=st.none() | st.integers(0, 2**64 - 1),
)
plain_samplings = samplings.map(
    lambda s: replace(s, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0, logit_bias={})
)


@given(data=st.data(), dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64]))
def test_distribution_equals_naive(data: st.DataObject, dtype: Any) -> None:
    rows, n = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    m = n - 1 + data.draw(st.integers(0, 2))
    wanted = data.draw(st.lists(data.draw(st.sampled_from([samplings, plain_samplings])), min_size=rows, max_size=rows))
    prompts = [data.draw(st.lists(TOKENS, min_size=1, max_size=6)) for _ in range(rows)]
    texts = [data.draw(st.lists(TOKENS, max_size=6)) for _ in range(rows)]
    drafts = [data.draw(st.lists(TOKENS, max_size=m)) for _ in range(rows)]
    some = st.sets(TOKENS, min_size=1) | st.just(set(range(WIDTH)))
    allowed = [[data.draw(some) for _ in range(n)] for _ in range(rows)]
    # Of 12 levels, so that ties occur and no sum comes close to a threshold.
    levels = st.lists(st.integers(-6, 6), min_size=WIDTH, max_size=WIDTH)
    logits = torch.tensor([[data.draw(levels) for _ in range(n)] for _ in range(rows)], dtype=dtype) / 2
    masks = torch.from_numpy(np.stack([[pack(tokens) for tokens in row] for row in allowed]))
    prefix = torch.tensor([draft + [-1] * (m - len(draft)) for draft in drafts], dtype=torch.int64).reshape(rows, m)
    inputs = (logits, masks, prefix)
    before = [tensor.clone() for tensor in inputs]

    process = processing(wanted, prompts)
    for row, text in enumerate(texts):
        split = data.draw(st.integers(0, len(text)))
        process.count(row, text[:split])
        process.count(row, text[split:])
    scores = process.scores(*inputs)
    kept = scores.clone()
    result = process.distribution(scores)

    assert all(torch.equal(tensor, copy) for tensor, copy in zip((*inputs, scores), (*before, kept), strict=True))
    assert result.dtype == scores.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert process.greedy == all(sampling.temperature == 0 for sampling in wanted)
    for row in range(rows):
        for position in range(n):
            # The last position stands behind all m tokens of the draft, those before behind one less each.
            text = texts[row] + drafts[row][: m - n + 1 + position]
            given_logits = logits[row, position].tolist()
            expected = naive_distribution(
                given_logits, allowed[row][position], prompts[row], text, wanted[row], clear=assume
            )
            np.testing.assert_allclose(result[row, position].tolist(), expected, atol=2e-6)
            assert ((scores[row, position] > -torch.inf).nonzero()[:, 0].tolist()) == sorted(allowed[row][position])


@given(data=st.data())
def test_select(data: st.DataObject) -> None:
    """Rows that go on keep their settings, seeds and counts."""
    rows = data.draw(st.integers(1, 5))
    wanted = data.draw(st.lists(samplings, min_size=rows, max_size=rows))
    prompts = [data.draw(st.lists(TOKENS, min_size=1, max_size=4)) for _ in range(rows)]
    numbers = data.draw(st.lists(st.integers(0, 9), min_size=rows, max_size=rows))
    process = Processing(wanted, numbers, prompts, WIDTH, CPU)
    for row in range(rows):
        process.count(row, data.draw(st.lists(TOKENS, max_size=4)))
    logits = torch.randn(rows, 2, WIDTH, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99))))
    prefix = torch.randint(0, WIDTH, (rows, 1), generator=torch.Generator().manual_seed(0))
    places = torch.arange(rows * 2).view(rows, 2)
    turns = torch.full((rows,), 3)
    tokens = torch.randint(0, WIDTH, (rows, 1), generator=torch.Generator().manual_seed(1))
    lengths, drawn = torch.ones(rows, dtype=torch.int64), torch.zeros(rows, 1, dtype=torch.bool)

    def outcome(rows: list[int]) -> tuple[torch.Tensor, ...]:
        scores = process.scores(logits[rows], no_masks(len(rows), 2), prefix[rows])
        proposed, _ = process.propose(scores[:, 0], places[rows, 0], turns[rows])
        verified = process.verify(scores, tokens[rows], lengths[rows], None, drawn[rows], places[rows], turns[rows])
        return (scores, proposed, process.choices(verified[2], places[rows]), *verified)

    every = outcome(list(range(rows)))
    draws = [process.draws_row(row) for row in range(rows)]
    assert draws == [sampling.temperature > 0 and sampling.seed is None for sampling in wanted]
    kept = data.draw(st.permutations(range(rows)))[: data.draw(st.integers(1, rows))]
    process.select(kept)
    # A second time, by numbers of the rows that are left.
    again = data.draw(st.permutations(range(len(kept))))[: data.draw(st.integers(1, len(kept)))]
    process.select(again)
    kept = [kept[row] for row in again]
    for mine, theirs in zip(outcome(kept), every, strict=True):
        assert torch.equal(mine, theirs[kept])
    assert [process.draws_row(row) for row in range(len(kept))] == [draws[row] for row in kept]
    assert process.greedy == all(wanted[row].temperature == 0 for row in kept)
    assert process.draws == any(draws[row] for row in kept)


def test_tokens_are_counted_for_their_row() -> None:
    wanted = [Sampling(frequency_penalty=1.0), Sampling(frequency_penalty=2.0), Sampling()]
    process = processing(wanted, [[3], [3], [3]])
    process.count(0, [5, 5, 7])
    process.count(1, [])
    process.count(1, [5])
    process.count(2, [5])
    scores = process.scores(torch.zeros(3, 1, WIDTH), no_masks(3, 1), no_draft(3))[:, 0]
    expected = torch.zeros(3, WIDTH)
    expected[0, 5], expected[0, 7], expected[1, 5] = -2, -1, -2
    assert torch.equal(scores, expected)
    process.select([1, 0])
    process.count(1, [5])
    assert process.scores(torch.zeros(2, 1, WIDTH), no_masks(2, 1), no_draft(2))[:, 0, 5].tolist() == [-2, -3]


def test_a_draft_is_not_counted() -> None:
    """What a place sees of a draft is gone in the next round."""
    process = processing([Sampling(presence_penalty=1.0)])
    drafted = process.scores(torch.zeros(1, 3, WIDTH), no_masks(1, 3), torch.tensor([[4, 4]]))
    assert drafted[0, :, 4].tolist() == [0, -1, -1]
    assert not process.scores(torch.zeros(1, 1, WIDTH), no_masks(1, 1), no_draft(1)).any()


def test_padding_of_drafts_is_no_token() -> None:
    process = processing([Sampling(presence_penalty=1.0, frequency_penalty=0.5)] * 3)
    prefix = torch.tensor([[4, 4, -1], [-1, -1, -1], [0, 4, 0]])
    scores = process.scores(torch.zeros(3, 4, WIDTH), no_masks(3, 4), prefix)
    assert scores[:, :, 4].tolist() == [[0, -1.5, -2, -2], [0] * 4, [0, 0, -1.5, -1.5]]
    assert scores[:, :, 0].tolist() == [[0] * 4, [0] * 4, [0, -1.5, -1.5, -2]]


def test_token_beyond_the_mask_is_forbidden() -> None:
    scores = processing([Sampling()], width=70).scores(torch.zeros(1, 1, 70), no_masks(1, 1, 64), no_draft(1))
    assert (scores[0, 0] == 0).tolist() == [True] * 64 + [False] * 6


def test_top_p_of_one_keeps_all_tokens() -> None:
    """The mass before the last ones is 1 in float32, alone or beside rows with another ``top_p``."""
    logits = torch.full((2, 1, WIDTH), -18.0)
    logits[:, :, 0] = 0.0
    process = processing([Sampling(temperature=1.0, top_p=1.0), Sampling(temperature=1.0, top_p=0.9)])
    distribution = process.distribution(process.scores(logits, no_masks(2, 1), no_draft(2)))
    assert (distribution[:, 0] > 0).sum(-1).tolist() == [WIDTH, 1]


@pytest.mark.parametrize("temperature", [0.0, COLDEST, 1.0, 1e30])
@pytest.mark.parametrize("options", [{}, {"top_k": 2, "top_p": 1.0, "min_p": 0.0}, {"repetition_penalty": 1.5}])
def test_extreme_logits(temperature: float, options: dict[str, Any]) -> None:
    logits = torch.tensor([[[3e38, -3e38, -math.inf, 0.0]]])
    process = processing([Sampling(temperature=temperature, **options)], [[1, 3]], width=4)
    distribution = process.distribution(
        process.scores(logits, torch.from_numpy(pack({1, 2, 3}, 1))[None, None], no_draft(1))
    )[0, 0]
    assert distribution[0] == distribution[2] == 0
    assert distribution.sum() == pytest.approx(1)
    assert distribution[3] > 0
    if temperature < 1e30:
        assert distribution[1] == 0


@pytest.mark.parametrize("token", [WIDTH, 10**6])
def test_bias_of_a_token_that_is_not_there(token: int) -> None:
    with pytest.raises(ValueError, match=f"logit_bias names token {token}, but the model has only {WIDTH}"):
        processing([Sampling(), Sampling(logit_bias={3: 1.0, token: 1.0})])


# The tokens that are chosen.


def test_greedy_takes_the_lowest_of_equal_tokens() -> None:
    process = processing([Sampling(), Sampling(temperature=1.0, seed=1)])
    logits = torch.zeros(2, 3, WIDTH)
    logits[:, 1, [7, 9, 39]] = 2.0
    logits[:, 2, 8] = -1.0
    masks = no_masks(2, 3)
    masks[:, 2] = torch.from_numpy(pack({8, 20, 21}))
    distribution = process.distribution(process.scores(logits, masks, no_draft(2, 3)))
    assert process.choices(distribution, torch.zeros(2, 3, dtype=torch.int64))[0].tolist() == [0, 7, 20]
    assert distribution[0].nonzero().tolist() == [[0, 0], [1, 7], [2, 20]]
    alone = processing([Sampling()])
    scores = alone.scores(logits[:1], masks[:1], no_draft(1, 3))
    assert alone.choices(alone.distribution(scores), torch.zeros(1, 3, dtype=torch.int64))[0].tolist() == [0, 7, 20]
    assert alone.propose(scores[:, 1], torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))[1] is None


@given(data=st.data())
def test_shared_noise_is_of_seed_sample_and_place(data: st.DataObject) -> None:
    """Whatever else is in the batch, and however many places are looked at together."""
    row = st.tuples(
        st.sampled_from([Sampling(temperature=1.0, seed=5), Sampling(temperature=1.0), Sampling(seed=5)])
        | st.builds(Sampling, temperature=st.just(1.0), seed=st.integers(0, 2**64 - 1)),
        st.integers(0, 3),
    )
    batch = data.draw(st.lists(row, max_size=4))
    at = data.draw(st.integers(0, len(batch)))
    mine = (Sampling(temperature=1.0, seed=data.draw(st.integers(0, 2**64 - 1))), data.draw(st.integers(0, 3)))
    batch.insert(at, mine)
    n = data.draw(st.integers(1, 4))
    first = data.draw(st.integers(0, 1000))
    distributions = torch.rand(len(batch), n, 7, generator=torch.Generator().manual_seed(3))
    places = torch.randint(0, 1000, (len(batch), n), generator=torch.Generator().manual_seed(4))
    places[at] = torch.arange(first, first + n)
    wanted, numbers = zip(*batch, strict=True)
    together = Processing(wanted, numbers, [[0]] * len(batch), 7, CPU).choices(distributions, places)[at]
    alone = Processing([mine[0]], [mine[1]], [[1, 2, 3]], 7, CPU)
    for position in range(n):
        here = alone.choices(
            distributions[at : at + 1, position : position + 1], places[at : at + 1, position : position + 1]
        )
        assert here.item() == together[position]


@pytest.mark.parametrize("change", ["seed", "high word of the seed", "sample", "place"])
def test_other_noise_elsewhere(change: str) -> None:
    def choose(seed: int = 11, sample: int = 0, first: int = 0) -> torch.Tensor:
        process = Processing([Sampling(temperature=1.0, seed=seed)], [sample], [[0]], 16, CPU)
        return process.choices(torch.full((1, 400, 16), 1 / 16), torch.arange(first, first + 400)[None])[0]

    changed = {"seed": {"seed": 12}, "sample": {"sample": 1}, "place": {"first": 400}}
    other = choose(**changed.get(change, {"seed": 11 + (1 << 32)}))
    assert torch.equal(choose(), choose())
    # 25 of 400 agree by chance.
    assert (choose() == other).sum() < 50


DISTRIBUTION = [0.4, 0.0, 0.25, 0.2, 0.1, 0.04, 0.01]
# The 0.9999 quantile of chi-square with five degrees of freedom.
BOUND = 25.74


@pytest.mark.parametrize(("seed", "samples"), [(0, 1), (2**64 - 1, 1), (7, 50)])
def test_shared_choices_follow_the_distribution(seed: int, samples: int) -> None:
    places = 20_000 // samples
    process = Processing(
        [Sampling(temperature=1.0, seed=seed)] * samples, list(range(samples)), [[0]] * samples, len(DISTRIBUTION), CPU
    )
    chosen = process.choices(
        torch.tensor(DISTRIBUTION).expand(samples, places, -1), torch.arange(places).expand(samples, -1)
    )
    counts = torch.bincount(chosen.flatten(), minlength=len(DISTRIBUTION)).tolist()
    assert chi_square(counts, DISTRIBUTION) < BOUND
    # Neighbouring places are independent: so are pairs of them.
    pairs = torch.bincount(
        (chosen[:, :-1] * len(DISTRIBUTION) + chosen[:, 1:]).flatten(), minlength=len(DISTRIBUTION) ** 2
    )
    expected = (
        torch.tensor(DISTRIBUTION, dtype=torch.float64).outer(torch.tensor(DISTRIBUTION, dtype=torch.float64)).flatten()
    )
    common = expected > 0.001
    total = pairs.sum()
    statistic = ((pairs - total * expected) ** 2 / (total * expected))[common].sum()
    assert statistic < 80, "the 0.9999 quantile with 33 degrees of freedom is 73"


def test_choices_follow_a_distribution_that_is_nearly_certain() -> None:
    distribution = torch.tensor([1 - 1e-4, 1e-4], dtype=torch.float64)
    process = processing([Sampling(temperature=1.0, seed=1)], width=2)
    places = 200_000
    rare = int(process.choices(distribution.expand(1, places, 2), torch.arange(places)[None]).sum())
    assert abs(rare - 20) < 4 * math.sqrt(20)


@pytest.mark.parametrize(("seed", "place", "token"), [(1, 26, 138), (1222, 170, 244)])
def test_no_noise_makes_up_for_a_probability_of_zero(seed: int, place: int, token: int) -> None:
    """At these places a token's noise is as high as it gets; rounded to float32 it would be infinite."""
    process = processing([Sampling(temperature=1.0, seed=seed)], width=264)
    distribution = torch.full((264,), 1 / 263)
    assert process.choices(distribution[None, None], torch.tensor([[place]])) == token
    distribution[token] = 0
    assert process.choices(distribution[None, None], torch.tensor([[place]])) != token
    assert process.choose_again(0, distribution.log(), distribution, place, 0) != token
    # Nor for one that is very small.
    distribution[token] = 1e-12
    assert process.choices(distribution[None, None], torch.tensor([[place]])) != token


@pytest.mark.parametrize("mixed", [False, True])
def test_proposals_follow_the_distribution(mixed: bool) -> None:
    """Rows that are drawn, each by a seed of its own; chosen rows of the batch are chosen as ever."""
    torch.manual_seed(1)
    rows = 20_000
    wanted = [Sampling(temperature=1.0)] * rows + [Sampling(), Sampling(temperature=1.0, seed=4)] * mixed
    process = processing(wanted, width=len(DISTRIBUTION))
    scores = torch.tensor(DISTRIBUTION).log().expand(len(wanted), -1).contiguous()
    places, turns = torch.full((len(wanted),), 9), torch.full((len(wanted),), 2)
    tokens, distributions = process.propose(scores, places, turns)
    assert distributions is not None
    assert torch.allclose(distributions[:rows], torch.tensor(DISTRIBUTION).expand(rows, -1))
    counts = torch.bincount(tokens[:rows], minlength=len(DISTRIBUTION)).tolist()
    assert chi_square(counts, DISTRIBUTION) < BOUND
    assert torch.equal(tokens, process.propose(scores, places, turns)[0])
    assert (tokens != process.propose(scores, places, turns + 1)[0]).sum() > rows / 2
    if mixed:
        assert tokens[-2] == 0
        assert tokens[-1] == process.choices(distributions[:, None], places[:, None])[-1, 0]
    else:
        process.select(range(10))
        chosen_only = processing([Sampling(temperature=1.0, seed=1)], width=len(DISTRIBUTION))
        assert chosen_only.propose(scores[:1], places[:1], turns[:1])[1] is None


# DraftSampling once more, of fewer tokens.


def test_again_greedily() -> None:
    process = processing([Sampling(), Sampling()], width=4)
    scores, distribution = torch.tensor([1.0, 3.0, 3.0, 0.0]), torch.tensor([0.0, 1.0, 0.0, 0.0])
    order = []
    while (token := process.choose_again(1, scores, distribution, 0, len(order))) is not None:
        order.append(token)
        scores[token], distribution[token] = -math.inf, 0
    assert order == [1, 2, 0, 3]


def test_again_by_shared_noise() -> None:
    """In the order of the noise, of the tokens that the distribution gives."""
    process = Processing([Sampling(), Sampling(temperature=1.0, seed=6)], [0, 3], [[0]] * 2, 5, CPU)
    for place in range(30):
        distribution = torch.tensor([0.3, 0.0, 0.4, 0.1, 0.2])
        scores = distribution.log()
        scores[1] = 2.0  # the distribution leaves it out, by top-k say
        noise = (distribution.double().log() + gumbel(torch.tensor([[6, 0, 3]]), torch.tensor([[place]]), 5))[0, 0]
        order = []
        first = process.choices(distribution.expand(2, 1, 5), torch.full((2, 1), place))[1, 0]
        while (token := process.choose_again(1, scores, distribution, place, len(order))) is not None:
            order.append(token)
            scores[token], distribution[token] = -math.inf, 0
        assert order == noise.argsort(descending=True)[:4].tolist()
        assert order[0] == first


@pytest.mark.property
def test_again_by_draws() -> None:
    torch.manual_seed(2)
    process = processing([Sampling(), Sampling(temperature=1.0)], width=len(DISTRIBUTION))
    distribution = torch.tensor(DISTRIBUTION)
    distribution[0] = 0
    left = [share / 0.6 for share in [0.0, *DISTRIBUTION[1:]]]
    draws = tiers.draws(4000, least=1000)  # of the rarest token ten
    chosen = [process.choose_again(1, distribution.log(), distribution, 4, turn) for turn in range(draws)]
    assert chi_square([chosen.count(token) for token in range(len(DISTRIBUTION))], left) < BOUND
    assert chosen[:5] == [process.choose_again(1, distribution.log(), distribution, 4, turn) for turn in range(5)]
    assert process.choose_again(1, torch.zeros(len(DISTRIBUTION)), torch.zeros(len(DISTRIBUTION)), 4, 0) is None
    assert (
        process.choose_again(0, torch.full((len(DISTRIBUTION),), -math.inf), torch.zeros(len(DISTRIBUTION)), 4, 0)
        is None
    )


# What a user may ask for.


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("temperature", [-1.0, 1e-9, math.nan, math.inf]),
        ("top_k", [0, -1]),
        ("top_p", [0.0, 1.1, math.nan]),
        ("min_p", [-0.1, 1.1, math.nan]),
        ("repetition_penalty", [0.0, -1.0, math.inf, math.nan]),
        ("presence_penalty", [math.inf, -math.inf, math.nan]),
        ("frequency_penalty", [math.inf, -math.inf, math.nan]),
        ("logit_bias", [{-1: 0.0}, {0: math.inf}, {0: -math.inf}, {0: math.nan}]),
        ("seed", [-1, 2**64]),
        ("max_tokens", [0]),
        ("on_limit", ["stop", None]),
        ("stop", [[""], ["a", ""]]),
    ],
)
def test_sampling_refuses(field: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=field):
            Sampling(**{field: value})


def test_stop_is_no_text() -> None:
    with pytest.raises(TypeError, match=r"write stop=\[text\]"):
        Sampling(stop="end")


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 1e39},
        {"presence_penalty": 1e39},
        {"frequency_penalty": -1e39},
        {"repetition_penalty": 1e-50},
        {"top_p": 1e-50},
        {"logit_bias": {1: 1e39}},
    ],
)
def test_numbers_that_float32_does_not_hold_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Sampling(**options)
