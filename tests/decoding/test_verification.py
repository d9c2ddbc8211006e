"""Speculative sampling: what a round gives is distributed as the target's distribution, by sums over every outcome."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Sampling  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from grammarspec.decoding.verification import accepted_drafts, draw, residual_distribution  # noqa: E402
from tests.oracles.distributions import chi_square  # noqa: E402

CPU = torch.device("cpu")
NEXT_TO_ONE = math.nextafter(1, 0)


def tensor(values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def distribution_of_a_round(p: torch.Tensor, q: torch.Tensor | None, drafts: Sequence[int]) -> torch.Tensor:
    """The distribution of a round's first token, for a draft of one token drawn from ``q`` (``None``: it is certain).

    The random number of the acceptance is integrated over: the outcome changes once, at ``p / q``, which is tried from
    both sides.
    """
    rows = len(drafts)
    distribution = p.expand(rows, 2, -1)
    tokens = torch.tensor(drafts)[:, None]
    inside = torch.ones(rows, 1, dtype=torch.bool)
    lengths = torch.ones(rows, dtype=torch.int64)
    drawn = torch.full((rows, 1), q is not None)
    distributions = None if q is None else q.expand(rows, 1, -1)
    weight = torch.ones(rows, dtype=torch.float64) if q is None else q[tokens[:, 0]]
    target = p[tokens[:, 0]]
    chance = torch.where(weight > 0, target / weight, (target > 0).double()).clamp(max=1)
    # Of subnormal products, and where the quotient is rounded to 1, the side cannot be told from the quotient.
    clear = (target == 0) | ((weight * chance > 1e-290) & ((chance < 1) | (target >= weight)))
    for u in (chance * (1 - 1e-12), chance * (1 + 1e-12), tensor(2.0**-33), tensor(1 - 2.0**-33)):
        uniforms = u.expand(rows).clamp(min=5e-324, max=NEXT_TO_ONE)
        accepted = accepted_drafts(distribution, tokens, inside, distributions, drawn, uniforms[:, None]) == 1
        assert torch.equal(accepted & clear, (uniforms < chance) & clear)
    refused = residual_distribution(
        distribution, tokens, torch.zeros(rows, dtype=torch.int64), lengths, distributions, drawn
    )
    refused = refused / refused.sum(-1, keepdim=True)
    first = torch.zeros_like(p)
    for row, token in enumerate(drafts):
        first[token] += weight[row] * chance[row]
        first += weight[row] * (1 - chance[row]) * refused[row]
    return first


def random_distribution(generator: np.random.Generator, allowed: np.ndarray) -> np.ndarray:
    """One of many shapes: even, peaked, with entries near zero, with a single token."""
    width = len(allowed)
    weights = generator.random(width)
    shape = generator.integers(6)
    if shape == 1:
        weights **= generator.integers(2, 30)
    elif shape == 2:
        weights = np.ones(width)
    elif shape == 3:
        weights[generator.random(width) < 0.5] *= generator.choice([1e-8, 1e-16, 1e-17, 1e-60, 1e-320])
    elif shape == 4:
        weights[generator.random(width) < 0.5] = 0
    elif shape == 5:
        weights = np.where(np.arange(width) == generator.choice(np.flatnonzero(allowed)), 1.0, 0.0)
    weights[~allowed] = 0
    if not weights.any():
        weights[allowed] = 1
    return weights / weights.sum()


KINDS = ["masked", "unmasked", "equal", "disjoint", "certain", "nearly equal", "unlikely"]


@pytest.mark.parametrize("kind", KINDS)
def test_first_token_has_the_distribution_of_the_target(kind: str) -> None:
    """1,001 triples of distributions and masks, of 2 to 12 tokens."""
    generator = np.random.default_rng(KINDS.index(kind))
    for _ in range(143):
        width = int(generator.integers(2, 13))
        allowed = generator.random(width) < generator.choice([0.3, 0.7, 1.0])
        allowed[generator.choice(width, 1 + (kind == "disjoint"), replace=False)] = True
        p = random_distribution(generator, allowed)
        q: np.ndarray | None = random_distribution(
            generator, allowed if kind == "masked" else np.ones(width, dtype=bool)
        )
        drafts = list(range(width))
        if kind in ("equal", "nearly equal"):
            q = p.copy()
            if kind == "nearly equal":
                q[generator.integers(width)] += generator.choice([1e-16, 1e-14, 1e-9])
                q /= q.sum()
        elif kind == "disjoint":
            mine = np.isin(np.arange(width), generator.choice(np.flatnonzero(allowed)))
            p, q = random_distribution(generator, allowed & mine), random_distribution(generator, ~mine)
        elif kind == "certain":
            q, drafts = None, [int(generator.integers(width))]
        elif kind == "unlikely":
            # What the draft has almost no chance of is what the target has every chance of.
            q = np.where(p > 0, p * 1e-15, 1.0)
            q /= q.sum()
        first = distribution_of_a_round(tensor(p), None if q is None else tensor(q), drafts)
        assert (first - tensor(p)).abs().max() < 1e-12, (kind, p, q)


def test_a_certain_token_may_also_be_a_distribution() -> None:
    """Drafts that are certain are drafts from a distribution with a single 1."""
    generator = np.random.default_rng(8)
    for _ in range(20):
        p = tensor(random_distribution(generator, np.ones(6, dtype=bool)))
        token = int(generator.integers(6))
        single = torch.zeros(6, dtype=torch.float64)
        single[token] = 1
        assert torch.equal(distribution_of_a_round(p, None, [token]), distribution_of_a_round(p, single, [token]))


def test_texts_of_a_round_have_the_distribution_of_the_target() -> None:
    """All outcomes of drafts of two tokens whose distributions depend on the token before: one to three tokens come."""
    generator = np.random.default_rng(5)
    width = 3
    every = np.ones(width, dtype=bool)
    for _ in range(20):
        # By the text before: none, one token, two tokens.
        p = {text: tensor(random_distribution(generator, every)) for text in texts(width, 2)}
        q = {text: tensor(random_distribution(generator, every)) for text in texts(width, 1)}
        outcomes: dict[tuple[int, ...], float] = {}

        def happens(text: tuple[int, ...], probability: float, outcomes: dict[tuple[int, ...], float]) -> None:
            outcomes[text] = outcomes.get(text, 0.0) + probability

        for x in range(width):
            for y in range(width):
                drafted = float(q[()][x] * q[(x,)][y])
                distribution = torch.stack((p[()], p[(x,)], p[(x, y)]))[None]
                tokens, distributions = torch.tensor([[x, y]]), torch.stack((q[()], q[(x,)]))[None]
                drawn, lengths = torch.ones(1, 2, dtype=torch.bool), torch.tensor([2])
                accept = [min(1.0, float(p[()][x] / q[()][x])) if q[()][x] > 0 else 0.0]
                accept.append(min(1.0, float(p[(x,)][y] / q[(x,)][y])) if q[(x,)][y] > 0 else 0.0)
                chances = (1 - accept[0], accept[0] * (1 - accept[1]), accept[0] * accept[1])
                for count, chance in enumerate(chances):
                    following = residual_distribution(
                        distribution, tokens, torch.tensor([count]), lengths, distributions, drawn
                    )[0]
                    following = following / following.sum()
                    for token in range(width):
                        happens((*(x, y)[:count], token), drafted * chance * float(following[token]), outcomes)
        # Texts are compared at the length that a round gave; those cut shorter go on by the target's distribution.
        for text in [text for text in texts(width, 3) if len(text) == 3]:
            probability = sum(
                outcomes.get(text[:length], 0.0)
                * math.prod(float(p[text[:place]][text[place]]) for place in range(length, 3))
                for length in (1, 2, 3)
            )
            expected = math.prod(float(p[text[:place]][text[place]]) for place in range(3))
            assert probability == pytest.approx(expected, abs=1e-12)


def texts(width: int, longest: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for text in found:
        if len(text) < longest:
            found += [(*text, token) for token in range(width)]
    return found


def test_acceptance_is_strict() -> None:
    """Accepted is ``u * q < p``: what the target does not give is not accepted, however small ``u * q`` is."""
    cases = [
        (0.0, 1.0, 5e-324, 0),
        (0.0, 5e-324, 0.1, 0),  # the product is rounded to 0
        (0.0, 0.0, 0.5, 0),
        (0.25, 0.5, 0.5, 0),
        (0.25, 0.5, math.nextafter(0.5, 0), 1),
        (0.25, 0.5, math.nextafter(0.5, 1), 0),
        (0.5, 0.5, NEXT_TO_ONE, 1),
        (0.5, 0.25, NEXT_TO_ONE, 1),
        (5e-324, 1.0, 5e-324, 0),
        (1.0, 1.0, NEXT_TO_ONE, 1),
        (0.5, 0.0, 0.5, 1),
    ]
    p, q, u, expected = zip(*cases, strict=True)
    rows = len(cases)
    distribution = torch.zeros(rows, 2, 2, dtype=torch.float64)
    distributions = torch.zeros(rows, 1, 2, dtype=torch.float64)
    distribution[:, 0, 1], distributions[:, 0, 1] = tensor(p), tensor(q)
    inside = drawn = torch.ones(rows, 1, dtype=torch.bool)
    tokens = torch.ones(rows, 1, dtype=torch.int64)
    accepted = accepted_drafts(distribution, tokens, inside, distributions, drawn, tensor(u)[:, None])
    assert accepted.tolist() == list(expected)
    # Distributions in float32 are compared as they are.
    small = accepted_drafts(distribution.float(), tokens, inside, distributions.float(), drawn, tensor(u)[:, None])
    assert small[:3].tolist() == [0, 0, 0]


@given(data=st.data())
def test_leading_acceptances_are_counted(data: st.DataObject) -> None:
    rows, drafts, width = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 5)), 3
    eighths = st.integers(0, 8).map(lambda value: value / 8)
    shape = (rows, drafts)

    def numbers(values: st.SearchStrategy[float], count: int) -> list[float]:
        return data.draw(st.lists(values, min_size=count, max_size=count))

    distribution = tensor(numbers(eighths, rows * (drafts + 1) * width)).view(rows, drafts + 1, width)
    distributions = tensor(numbers(eighths, rows * drafts * width)).view(*shape, width)
    tokens = torch.tensor(numbers(st.integers(0, width - 1), rows * drafts), dtype=torch.int64).view(shape)
    drawn = torch.tensor(numbers(st.booleans(), rows * drafts), dtype=torch.bool).view(shape)
    uniforms = tensor(numbers(eighths.filter(lambda u: 0 < u < 1), rows * drafts)).view(shape)
    lengths = torch.tensor(numbers(st.integers(0, drafts), rows), dtype=torch.int64)
    inside = torch.arange(drafts) < lengths[:, None]
    some = None if not drawn.any() and data.draw(st.booleans()) else distributions
    accepted = accepted_drafts(distribution, tokens, inside, some, drawn, uniforms)
    residual = residual_distribution(distribution, tokens, accepted, lengths, some, drawn)
    for row in range(rows):
        count = 0
        while count < lengths[row]:
            token = tokens[row, count]
            q = distributions[row, count, token] if drawn[row, count] else 1.0
            if uniforms[row, count] * q >= distribution[row, count, token]:
                break
            count += 1
        assert accepted[row] == count
        expected = distribution[row, count].tolist()
        if count < lengths[row]:
            token = int(tokens[row, count])
            q = distributions[row, count].tolist() if drawn[row, count] else [float(x == token) for x in range(width)]
            left = [max(mine - theirs, 0) for mine, theirs in zip(expected, q, strict=True)]
            expected = left if any(left) else expected
        assert residual[row].tolist() == expected


def test_nothing_left_of_the_difference() -> None:
    """Rounding may refuse a token though nothing is left but the target's own distribution."""
    p = tensor([0.25, 0.75])
    arguments = (torch.tensor([[0]]), torch.tensor([0]), torch.tensor([1]))
    drawn = torch.tensor([[True]])
    for q in (p, tensor([0.5, 0.75])):
        assert torch.equal(residual_distribution(p.expand(1, 2, 2), *arguments, q.expand(1, 1, 2), drawn)[0], p)
    certain = tensor([1.0, 0.0])
    assert torch.equal(residual_distribution(certain.expand(1, 2, 2), *arguments, None, ~drawn)[0], certain)


# Draws.


@given(data=st.data())
def test_draw_inverts_the_cumulative_weights(data: st.DataObject) -> None:
    """By fractions: the first token whose cumulative weight exceeds the number."""
    weights = data.draw(st.lists(st.integers(0, 16), min_size=1, max_size=8).filter(any))
    places = [*range(sum(weights))]
    for place in places:
        for inside in (0.0, 0.5):
            if place + inside == 0:
                continue
            expected = next(token for token in range(len(weights)) if sum(weights[: token + 1]) > place + inside)
            # The total of the weights is a power of two, so that no product is rounded.
            padded = [*weights, 128 - sum(weights)] if sum(weights) < 128 else weights
            u = (place + inside) / sum(padded)
            assert draw(tensor([padded]), tensor([u])).item() == expected


@given(data=st.data(), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_draw_gives_no_token_of_weight_zero(data: st.DataObject, dtype: torch.dtype) -> None:
    tiny = [0.0, 1e-45, 1e-30, 1e-17, 1e-8, 0.1, 1 / 3, 1.0, 3.0]
    weights = data.draw(st.lists(st.sampled_from(tiny), min_size=1, max_size=40))
    row = torch.tensor(weights, dtype=dtype)
    if not row.any():
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.sampled_from(tiny[1:]))
    number = st.floats(0, 1, exclude_min=True, exclude_max=True)
    near = [5e-324, 1e-310, 2.0**-53, 2.0**-33, 1 - 2.0**-33, 1 - 2.0**-52, NEXT_TO_ONE]
    uniforms = near + data.draw(st.lists(number, max_size=20))
    tokens = draw(row.expand(len(uniforms), -1), tensor(uniforms))
    assert (row[tokens] > 0).all()
    # The ends of the text of all tokens: the first and the last that have a weight worth the name.
    assert tokens[0] == row.nonzero()[0]


@pytest.mark.parametrize("width", [1_000, 152_064])
def test_draw_of_long_tails(width: int) -> None:
    """Distributions as of a model's softmax, with zeros between, at the ends, and where the sum no longer grows."""
    generator = torch.Generator().manual_seed(width)
    logits = torch.randn(6, width, generator=generator) * torch.tensor([[1.0], [5.0], [20.0], [60.0], [1.0], [5.0]])
    masked = torch.rand(6, width, generator=generator) < torch.tensor([[0.5], [0.1], [0.9], [0.5], [0.999], [0.5]])
    masked[:, -50:] = True
    masked[:, 7] = False
    distribution = logits.masked_fill(masked, -torch.inf).softmax(-1)
    distribution[4:] = distribution[4:].sort(descending=True)[0]
    for u in (5e-324, 2.0**-33, 0.5, 1 - 2.0**-20, 1 - 2.0**-33, NEXT_TO_ONE):
        tokens = draw(distribution, torch.full((6,), u, dtype=torch.float64))
        assert (distribution.gather(1, tokens[:, None]) > 0).all()


def test_draw_of_many_tokens() -> None:
    """Down to a thousandth of a token's weight; sums of so many weights in float32 would be off by more."""
    width = 152_064
    wanted = torch.arange(17, width, 9_973)
    weights = torch.full((len(wanted), width), 1 / width)
    for inside in (0.001, 0.999):
        assert torch.equal(draw(weights, (wanted.double() + inside) / width), wanted)


P = [0.3, 0.05, 0.0, 0.35, 0.2, 0.1]
# The 0.9999 quantile of chi-square with four degrees of freedom.
BOUND = 23.51


def test_draws_follow_the_distribution() -> None:
    generator = torch.Generator().manual_seed(7)
    uniforms = torch.rand(20_000, generator=generator, dtype=torch.float64).clamp(min=1e-300)
    # Not normalised.
    tokens = draw(torch.tensor(P).expand(20_000, -1) * 0.25, uniforms)
    assert chi_square(torch.bincount(tokens, minlength=len(P)).tolist(), P) < BOUND


# The whole of a round, from its own random numbers.


@pytest.mark.parametrize("masked", [True, False])
def test_rounds_follow_the_distribution(masked: bool) -> None:
    """Drafts of two tokens, drawn, accepted and replaced by the numbers of a seed for each row."""
    torch.manual_seed(3)
    rows, width = 20_000, len(P)
    process = Processing([Sampling(temperature=1.0)] * rows, [0] * rows, [[0]] * rows, width, CPU)
    first = torch.tensor(P)
    # The second token's distribution depends on the first; both drafts differ from the target.
    second = torch.stack([first.roll(token) for token in range(width)])
    draft = torch.tensor([0.1, 0.3, 0.0, 0.2, 0.1, 0.3] if masked else [0.1, 0.3, 0.2, 0.1, 0.1, 0.2])
    turns = torch.full((rows,), 5)
    tokens, distributions = [], []
    for place, distribution in enumerate((draft, draft.flip(0))):
        token, proposed = process.propose(
            distribution.log().expand(rows, -1).contiguous(), torch.full((rows,), place), turns
        )
        assert proposed is not None
        tokens.append(token)
        distributions.append(proposed)
    drafted = torch.stack(tokens, 1)
    lengths = torch.full((rows,), 2)
    lengths[: rows // 4] = 1
    target = torch.stack((first.expand(rows, -1), second[drafted[:, 0]], torch.ones(rows, width) / width), 1)
    accepted, following, distribution = process.verify(
        target.log(),
        drafted,
        lengths,
        torch.stack(distributions, 1),
        torch.ones(rows, 2, dtype=torch.bool),
        torch.arange(3).expand(rows, 3),
        turns,
    )
    assert torch.allclose(distribution, target)
    assert (accepted <= lengths).all()
    came = torch.where(accepted > 0, drafted[:, 0], following)
    assert chi_square(torch.bincount(came, minlength=width).tolist(), P) < BOUND
    # Whether a draft was accepted must say nothing about the token behind it.
    behind = torch.where(accepted > 1, drafted[:, 1], following)
    for token in range(width):
        among = behind[(came == token) & (accepted > 0)]
        if len(among) > 500:
            assert chi_square(torch.bincount(among, minlength=width).tolist(), second[token].tolist()) < BOUND
    share = torch.minimum(first, draft / draft.sum()).sum()
    assert (accepted > 0).float().mean() == pytest.approx(float(share), abs=0.02)


@given(data=st.data())
def test_chosen_rows_accept_what_is_chosen(data: st.DataObject) -> None:
    """Greedily and by shared noise: as long as the draft has the token that would have been chosen without it."""
    rows, drafts, width = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 4)), 6
    kinds = [Sampling(), Sampling(temperature=1.0, seed=3), Sampling(temperature=1.0)]
    wanted = data.draw(st.lists(st.sampled_from(kinds), min_size=rows, max_size=rows))
    process = Processing(wanted, list(range(rows)), [[0]] * rows, width, CPU)
    scores = torch.randn(rows, drafts + 1, width, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 9))))
    places = torch.arange(drafts + 1).expand(rows, -1) + 10
    chosen = process.choices(process.distribution(scores), places)
    lengths = torch.tensor(data.draw(st.lists(st.integers(0, drafts), min_size=rows, max_size=rows)))
    agreeing = data.draw(st.lists(st.integers(0, drafts), min_size=rows, max_size=rows))
    tokens = chosen[:, :-1].clone()
    for row, count in enumerate(agreeing):
        if count < drafts:
            tokens[row, count] = (tokens[row, count] + 1) % width
    drawn = torch.zeros(rows, drafts, dtype=torch.bool)
    accepted, following, _ = process.verify(scores, tokens, lengths, None, drawn, places, torch.zeros(rows).long())
    for row, sampling in enumerate(wanted):
        if sampling.temperature == 0 or sampling.seed is not None:
            count = min(agreeing[row], int(lengths[row]))
            assert (accepted[row], following[row]) == (count, chosen[row, count])
        else:
            assert accepted[row] <= lengths[row]
