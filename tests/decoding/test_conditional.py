"""Texts given that they are valid: weights, particles and their limit, against enumeration; wrong ways are noticed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.decoding import Conditional, Request, Sampling, conditional, generate_batch  # noqa: E402
from grammarspec.decoding.batch import Batch  # noqa: E402
from grammarspec.decoding.conditional import generate_conditional  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Forced, HeadProposer, Lookup, Proposer  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.distributions import p_value, total_variation  # noqa: E402
from tests.oracles.tables import (  # noqa: E402
    END,
    PROMPT,
    VOCABULARY,
    WIDTH,
    TableHead,
    TableModel,
    exact_distribution,
    language,
    tables,
    valid_texts,
)

PATTERNS = [
    "[abc]{1,3}",
    "(ab|c)*",
    "a(b|c)*a",
    "(abc)?(cc|ba){0,2}",
    "[^a]+",
    "(a|ba|cc)+b?",
    "c*(ab)+",
    "(aa|bb|cc|abab)",
    "b[ac]?b|c{2,4}",
    "(a(b(c)?)?)+",
]
LONGEST = 4  # tokens: the texts of some of the patterns have no end
LANGUAGES = [0, 1, 2, 4, 7, 8, 10, 12, 14, 15, 16, 17, 18, 20, 22, 24, 26, 27, 34, 35, 36]
"""Cases with few texts and weights that are not too unequal: with 20,000 particles each is known to about 0.01."""
PROPOSERS: dict[str, Callable[[Any, Any, Any], list[Proposer]]] = {
    "none": lambda target, draft, head: [],
    "chain": lambda target, draft, head: [Forced(), Lookup(longest=2), DraftModel(draft)],
    "unmasked model": lambda target, draft, head: [DraftModel(draft, masked=False)],
    "head": lambda target, draft, head: [HeadProposer(head), EarlyExit(target, 1)],
}


class Case:
    """A small language and a model: what is to be expected of its texts, and what is generated."""

    def __init__(self, number: int, deviation: float = 1.0, **options: Any) -> None:
        self.number = number
        self.constraint = (
            gs.compile(gs.regex(PATTERNS[number // 2 % len(PATTERNS)]), VOCABULARY)
            if number % 2
            else language(number)[1]
        )
        self.layers = tables(number, deviation)
        self.sampling = Sampling(**{"temperature": 1.0, "max_tokens": LONGEST, **options})
        both = (self.layers[0] + self.layers[1]).tolist()
        self._both = both

    @cached_property
    def valid(self) -> dict[tuple[int, ...], float]:
        """The probability of each valid text under the model without a mask."""
        return valid_texts(self._both.__getitem__, self.constraint, self.sampling)

    @property
    def mass(self) -> float:
        """p(valid)."""
        return sum(self.valid.values())

    @property
    def law(self) -> dict[tuple[int, ...], float]:
        """The distribution of the model's texts given that they are valid."""
        return {text: probability / self.mass for text, probability in self.valid.items()}

    @cached_property
    def masked(self) -> dict[tuple[int, ...], float]:
        """What the masked loop draws, of texts that end within the budget."""
        return exact_distribution(self._both.__getitem__, self.constraint, self.sampling)

    def run(self, particles: int, *, n: int = 1, drafts: str = "none", **options: Any) -> list[Conditional]:
        target, draft = TableModel(self.layers[:2]), TableModel(self.layers[2:])
        proposers = PROPOSERS[drafts](target, draft, TableHead(self.layers[2]))
        request = Request(prompt=PROMPT, matcher=self.constraint.matcher(), sampling=self.sampling, n=n)
        with torch.random.fork_rng():
            torch.manual_seed(tiers.seed(self.number))
            [found] = generate_conditional(
                target,
                [request],
                VOCABULARY,
                particles=particles,
                proposers=proposers,
                **{"gamma": 1 + self.number % 3, **options},
            )
        return found


def weighted(one: Conditional) -> dict[tuple[int, ...], float]:
    """The distribution of the particles of a text."""
    found: Counter[tuple[int, ...]] = Counter()
    for text, weight in one.population:
        found[tuple(text.tokens)] += weight  # type: ignore[assignment]
    return dict(found)


# ---------------------------------------------------------------------- the masked law
@pytest.mark.property
@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("drafts", ["none", "chain"])
def test_one_particle_is_the_masked_loop(seed: int | None, drafts: str) -> None:
    """Token for token. (Without a seed, whether tokens of a draft model are accepted depends on all rows alike.)"""
    for number in range(4):
        case = Case(number, seed=seed, max_tokens=12)
        found = case.run(1, n=20, drafts=drafts, adaptive=False)
        target, draft = TableModel(case.layers[:2]), TableModel(case.layers[2:])
        request = Request(prompt=PROMPT, matcher=case.constraint.matcher(), sampling=case.sampling, n=20)
        torch.manual_seed(tiers.seed(number))
        proposers = PROPOSERS[drafts](target, draft, None)
        [texts] = generate_batch(
            target, [request], VOCABULARY, proposers=proposers, gamma=1 + number % 3, adaptive=False
        )
        assert [one.text.tokens for one in found] == [text.tokens for text in texts]
        assert all(one.evidence.particles == 1 and not one.evidence.resamplings for one in found)


@pytest.mark.property
def test_one_particle_has_the_masked_distribution() -> None:
    least = []
    for number in tiers.some(range(0, 20, 2), least=2):  # these languages are finite
        case = Case(number, max_tokens=12)
        found = case.run(1, n=tiers.draws(1000), drafts=list(PROPOSERS)[number // 2 % 4])
        least.append(p_value(Counter(tuple(one.text.tokens) for one in found), case.masked))
        # The weight of a text is what the masked loop is wrong by.
        for one in found[:50]:
            text = tuple(one.text.tokens)
            assert one.evidence.valid == pytest.approx(case.valid[text] / case.masked[text], rel=1e-6)
    assert min(least) > 0.001 / len(least)


# ---------------------------------------------------------------------- the law given that texts are valid
def many(number: int, particles: int, runs: int) -> tuple[float, float, float, str]:
    """Of a language, on average over runs: the distance of many particles, that of the masked loop, and how far off
    p(valid) is."""
    case = Case(number)
    place = LANGUAGES.index(number)
    drafts = list(PROPOSERS)[place // 2 % len(PROPOSERS) if place % 2 else 0]  # drafts cost more, on tables
    all_found = case.run(particles, n=runs, drafts=drafts)
    laws = [weighted(one) for one in all_found]
    assert all(set(case.law) >= {text for text, weight in law.items() if weight} for law in laws)
    evidence = all_found[0].evidence
    return (
        float(np.mean([total_variation(law, case.law) for law in laws])),
        total_variation(_masked_law(case), case.law),
        float(np.mean([one.evidence.valid / case.mass - 1 for one in all_found])),
        f"{number:2} {drafts:14} {len(case.law):3} texts, p(valid) {case.mass:.5f}, ESS {evidence.effective:.0f}, "
        f"{evidence.resamplings} resamplings",
    )


def _masked_law(case: Case) -> dict[tuple[int, ...], float]:
    """What the masked loop draws within the budget, of the texts that are whole."""
    found: dict[tuple[int, ...], float] = {}
    both = torch.tensor(case._both)

    def visit(state: int, text: list[int], probability: float) -> None:
        if len(text) == case.sampling.max_tokens:
            if case.constraint.step(state, END) is not None:
                found[tuple(text)] = probability
            return
        following = {token: case.constraint.step(state, token) for token in range(WIDTH)}
        allowed = [token for token, after in following.items() if after is not None]
        row = 0
        for token in text:
            row = (row * WIDTH + token + 1) % len(both)
        each = both[row][allowed].softmax(-1).tolist()
        for token, share in zip(allowed, each, strict=True):
            after = following[token]
            if token == END:
                found[(*text, token)] = probability * share
            elif after is not None:
                visit(after, [*text, token], probability * share)

    visit(case.constraint.start, [], 1.0)
    whole = sum(found.values())
    return {text: probability / whole for text, probability in found.items()}


@pytest.mark.property
@pytest.mark.parametrize("number", tiers.some(LANGUAGES, least=4))
def test_many_particles_have_the_conditional_distribution(number: int) -> None:
    """Over all languages, proposers and kinds of ends: total variation below 0.02 with 20,000 particles (tier long).

    On average over four runs: one in a hundred is as far off by itself, where few particles bear much weight."""
    particles = tiers.draws(1000, least=1000)
    distance, of_masked, off, line = many(number, particles, 4)
    print(f"{line}: total variation {distance:.4f}, of the masked loop {of_masked:.3f}, p(valid) {off:+.2%}")
    assert distance < 0.02 * math.sqrt(20_000 / particles)
    assert of_masked > 0.1


@pytest.mark.slow
@pytest.mark.property
def test_distance_falls_as_the_root_of_the_number() -> None:
    """Sixteen times as many particles are four times as near, on average over runs."""
    runs = tiers.draws(20, least=12)
    for number in tiers.some([4, 8, 12, 17, 27], least=1):
        case = Case(number)
        means = []
        for particles in (20, 320):
            found = case.run(particles, n=runs)
            means.append(np.mean([total_variation(weighted(one), case.law) for one in found]))
        print(f"{number:2}: total variation {means[0]:.4f} with 20 particles, {means[1]:.4f} with 320")
        assert 2.5 < means[0] / means[1] < 6.5


def _deviations(case: Case, **options: Any) -> float:
    """By how many standard errors the mean of the estimates of p(valid) is off."""
    found = case.run(4, n=tiers.draws(500, least=250), threshold=1.0, **options)
    values = np.array([one.evidence.valid for one in found])
    return float((values.mean() - case.mass) / (values.std() / math.sqrt(len(values))))


@pytest.mark.slow
@pytest.mark.property
def test_estimates_of_the_valid_mass_have_no_bias() -> None:
    """Also where four particles are exchanged in each round, after drafts of different lengths."""
    for place, number in enumerate(tiers.some([1, 3, 4, 8, 12, 17], least=2)):
        drafts = list(PROPOSERS)[place % len(PROPOSERS)]
        for options in ({"drafts": drafts}, {"masses": "rejection"}):
            off = _deviations(Case(number), **options)
            print(f"{number:2} {options}: {off:+.2f} standard errors")
            assert abs(off) < 4.5


def _kept_weights(patch: pytest.MonkeyPatch) -> None:
    """Particles keep their weights when they are exchanged."""
    resample = conditional._Particles.resample

    def wrong(self: Any, threshold: float, fresh: Callable[[], int]) -> bool:
        logs = self.logs.copy()
        moved = resample(self, threshold, fresh)
        self.logs = logs if moved else self.logs
        return moved

    patch.setattr(conditional._Particles, "resample", wrong)


def _one_mass_of_a_round(patch: pytest.MonkeyPatch) -> None:
    """Only the first token of a round counts."""
    verify = conditional._ExactMasses.verify

    def wrong(self: Any, *given: Any) -> Any:
        verdicts = verify(self, *given)
        self.log_masses[:, 1:] = 0
        return verdicts

    patch.setattr(conditional._ExactMasses, "verify", wrong)


def _uncorrected_twist(patch: pytest.MonkeyPatch) -> None:
    """What particles count when they are exchanged stays in their weights."""
    patch.setattr(conditional, "log_mean", lambda logs: math.log(0.7) + float(np.log(np.exp(logs).mean())))


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [_kept_weights, _one_mass_of_a_round, _uncorrected_twist])
@pytest.mark.property
def test_wrong_weights_are_noticed(
    wrong: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(monkeypatch)
    assert abs(_deviations(Case(12), drafts="chain")) > 6


def test_copies_get_random_numbers_of_their_own() -> None:
    """Those of the place were used by the text that is dropped, further on than where its copy goes on."""
    texts: Any = [SimpleNamespace(finish_reason=None, matcher=None, name=name) for name in range(4)]
    particles = conditional._Particles(texts, [0, 1, 2, 3], (1, 2, 0))
    particles.logs = np.log([0.7, 1e-9, 0.2, 1e-9])
    assert not particles.resample(0.1, count(4).__next__)
    assert particles.resample(1.0, count(4).__next__)
    names = [text.name for text in particles.texts]  # type: ignore[attr-defined]
    assert (names[0], names[2]) == (0, 2)
    assert set(names) == {0, 2}
    assert particles.samples == [0, 4, 2, 5]
    assert np.exp(particles.logs) == pytest.approx(0.9 / 4)


@pytest.mark.parametrize("samples", [[0, 9], [0, 0]])
def test_rows_that_branch(samples: list[int]) -> None:
    """They go on differently by the numbers of their samples alone."""
    target = TableModel(tables(1, 0.5)[:2])
    matcher = gs.compile(gs.regex("[ab]{30}"), VOCABULARY).matcher()
    request = Request(prompt=PROMPT, matcher=matcher, sampling=Sampling(temperature=1.0, seed=1))
    with torch.inference_mode():
        batch = Batch(target, [request], VOCABULARY, proposers=[Lookup()], gamma=2)
        for _ in range(4):
            batch.round()
        batch.branch([0, 0], samples)
        one, other = batch.sequences
        assert one is not other
        written = one.length
        while batch.sequences:
            batch.round()
    assert one.result().whole
    assert other.result().whole
    assert one.tokens[: len(PROMPT) + written] == other.tokens[: len(PROMPT) + written]
    assert (one.tokens == other.tokens) == (samples == [0, 0])


@pytest.mark.property
def test_rejection_writes_the_same_texts() -> None:
    """With a seed, token for token what the masks choose; and the same limit."""
    for number in (1, 4, 8):
        case = Case(number, seed=11)
        pairs = zip(case.run(1, n=50), case.run(1, n=50, masses="rejection"), strict=True)
        assert all(one.text.tokens == other.text.tokens for one, other in pairs)
        particles = tiers.draws(1000)
        [one] = case.run(particles, masses="rejection")
        assert total_variation(weighted(one), case.law) < 0.06 * math.sqrt(5000 / particles)


# ---------------------------------------------------------------------- budgets, penalties, several texts
@pytest.mark.parametrize("on_limit", ["cut", "raise"])
@pytest.mark.parametrize("drafts", ["none", "chain"])
@pytest.mark.combined
@pytest.mark.property
def test_budgets(on_limit: str, drafts: str) -> None:
    """Particles that are not whole when their budget is used up have no weight; others count as the model cuts them."""
    for number in tiers.some([3, 17], least=1):
        case = Case(number, max_tokens=3, on_limit=on_limit)
        particles = tiers.draws(1000, least=1000)
        [one] = case.run(particles, drafts=drafts)
        assert total_variation(weighted(one), case.law) < 0.06 * math.sqrt(4000 / particles)
        for text, weight in one.population:
            cut = not text.whole or (on_limit == "raise" and text.finish_reason == "length")
            assert (weight == 0) == cut
        assert one.text.whole
        assert abs(_deviations(case, drafts=drafts)) < 4.5


@pytest.mark.property
def test_penalties_bias_and_temperature() -> None:
    """They are part of the model's distribution; with a draft the prefix of each place counts."""
    options: dict[str, Any] = {
        "temperature": 1.3,
        "repetition_penalty": 1.3,
        "presence_penalty": 0.4,
        "frequency_penalty": 0.3,
        "logit_bias": {1: 0.7},
    }
    for number in tiers.some([4, 9]):
        assert abs(_deviations(Case(number, **options), drafts="chain")) < 4.5


@pytest.mark.property
def test_no_valid_particle() -> None:
    """A text that no budget is enough for is cut, and said to be."""
    case = Case(0, max_tokens=1, seed=3)
    case.constraint = gs.compile(gs.regex("[abc]{30}"), VOCABULARY)
    [one] = case.run(3)
    assert (one.text.whole, one.text.finish_reason) == (False, "length")
    assert (one.evidence.valid, one.evidence.effective) == (0, 0)
    assert [weight for _, weight in one.population] == [0, 0, 0]


@pytest.mark.property
def test_several_requests_repeat_with_a_seed() -> None:
    """Requests and their texts have particles of their own, whatever else is in the batch."""
    case = Case(12, seed=5)
    target = TableModel(case.layers[:2])

    def request(n: int) -> Request:
        return Request(prompt=PROMPT, matcher=case.constraint.matcher(), sampling=case.sampling, n=n)

    together = generate_conditional(target, [request(3), request(1)], VOCABULARY, particles=6, threshold=1.0)
    assert [len(texts) for texts in together] == [3, 1]
    again = generate_conditional(target, [request(3), request(1)], VOCABULARY, particles=6, threshold=1.0)
    shown = [[(one.text.tokens, one.evidence) for one in texts] for texts in together]
    assert shown == [[(one.text.tokens, one.evidence) for one in texts] for texts in again]
    assert any(one.evidence.resamplings for one in together[0])
    assert sum(weight for _, weight in together[0][0].population) == pytest.approx(1)


def test_free_text_is_always_valid() -> None:
    """Without a constraint every mass is 1."""
    target = TableModel(tables(1, 2.0)[:2])
    request = Request(prompt=PROMPT, sampling=Sampling(temperature=1.0, seed=2, max_tokens=4))
    [[one]] = generate_conditional(target, [request], VOCABULARY, particles=5)
    assert one.evidence.valid == pytest.approx(1)
    assert one.evidence.effective == pytest.approx(5)


# ---------------------------------------------------------------------- what goes wrong
class Broken(TableModel):
    """Its logits are wrong behind two tokens of the text."""

    value = math.nan
    token = slice(None)

    def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, *given: Any, **options: Any) -> Any:
        output = super().forward(input_ids, attention_mask, position_ids, *given, **options)
        output.logits[position_ids[:, -output.logits.shape[1] :] >= len(PROMPT) + 1] = self.value
        return output


@pytest.mark.parametrize("masses", ["exact", "rejection"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_broken_logits(value: float, masses: Any) -> None:
    target = Broken(tables(1, 2.0)[:2])
    target.value = value
    constraint = gs.compile(gs.regex("[abc]{4,}"), VOCABULARY)
    request = Request(prompt=PROMPT, matcher=constraint.matcher(), sampling=Sampling(temperature=1.0, max_tokens=8))
    [[one]] = generate_conditional(target, [request], VOCABULARY, particles=3, masses=masses)
    assert one.text.finish_reason == "error"
    assert isinstance(one.text.error, gs.InvalidLogits)
    assert [weight for _, weight in one.population] == [0, 0, 0]


def test_infinite_logits_of_a_forbidden_token() -> None:
    """The masked loop does not see them; but no text has a probability then."""
    target = TableModel(tables(1, 2.0)[:2])
    target.layers[0].logits[:, 4] = math.inf
    constraint = gs.compile(gs.regex("[ab]{1,4}"), VOCABULARY)
    request = Request(prompt=PROMPT, matcher=constraint.matcher(), sampling=Sampling(temperature=1.0, max_tokens=8))
    [[one]] = generate_conditional(target, [request], VOCABULARY, particles=3)
    assert isinstance(one.text.error, gs.InvalidLogits)


def test_errors_of_constraints_end_their_text_only() -> None:
    limited = gs.compile(gs.regex("(a|b|ab)*c{1,40}"), VOCABULARY, limits=gs.Limits(max_states=3))
    fine = gs.compile(gs.regex("[ab]+"), VOCABULARY)
    target = TableModel(tables(1, 2.0)[:2])
    sampling = Sampling(temperature=1.0, max_tokens=30)
    requests = [Request(prompt=PROMPT, matcher=one.matcher(), sampling=sampling) for one in (limited, fine)]
    [[bad], [good]] = generate_conditional(target, requests, VOCABULARY, particles=4)
    assert isinstance(bad.text.error, gs.LimitExceeded)
    assert good.text.error is None


@pytest.mark.parametrize(
    ("options", "sampling", "error", "message"),
    [
        ({}, {"temperature": 0.0}, ValueError, "temperature is 0"),
        ({}, {"top_k": 3}, ValueError, "top_k cuts"),
        ({}, {"top_p": 0.9}, ValueError, "top_p cuts"),
        ({}, {"min_p": 0.1}, ValueError, "min_p cuts"),
        ({}, {"on_limit": "close"}, ValueError, "on_limit='close'"),
        ({"particles": 0}, {}, ValueError, "particles must be at least 1, not 0"),
        ({"particles": 2.5}, {}, TypeError, "particles must be a whole number, not 2.5"),
        ({"particles": True}, {}, TypeError, "particles must be a whole number, not True"),
        ({"threshold": 2}, {}, ValueError, "threshold must be from 0 to 1, not 2"),
        ({"threshold": math.nan}, {}, ValueError, "threshold must be from 0 to 1, not nan"),
        ({"masses": "guessed"}, {}, ValueError, "masses must be 'exact' or 'rejection'"),
        ({"masses": "rejection", "proposers": [Forced()]}, {}, ValueError, "makes no drafts"),
        ({"masses": "rejection"}, {"logprobs": True}, ValueError, "logprobs"),
        ({"gamma": -1}, {}, ValueError, "gamma must be at least 0"),
    ],
)
def test_wrong_options(options: Any, sampling: Any, error: type[Exception], message: str) -> None:
    target = TableModel(tables(1, 2.0)[:2])
    matcher = gs.compile(gs.regex("[ab]+"), VOCABULARY).matcher()
    request = Request(prompt=PROMPT, matcher=matcher, sampling=Sampling(**{"temperature": 1.0, **sampling}))
    with pytest.raises(error, match=message.replace("(", r"\(")):
        generate_conditional(target, [request], VOCABULARY, **options)


def test_nothing_to_do_and_stopping() -> None:
    target = TableModel(tables(1, 2.0)[:2])
    assert generate_conditional(target, [], VOCABULARY) == []

    def stop() -> None:
        raise KeyError("stop")

    request = Request(prompt=PROMPT, sampling=Sampling(temperature=1.0, max_tokens=4, top_p=1.0))
    with pytest.raises(KeyError):
        generate_conditional(target, [request], VOCABULARY, between=stop)
    assert len(generate_conditional(target, [request], VOCABULARY, proposers=[Lookup()], gamma=0)[0]) == 1


@pytest.mark.property
def test_logprobs_and_statistics() -> None:
    case = Case(12, logprobs=True)
    [one] = case.run(8, drafts="chain", threshold=1.0)
    logprobs = one.text.logprobs
    assert logprobs is not None
    assert len(logprobs) == len(one.text.tokens) == one.text.statistics.tokens
    # raw: log p of each token; of a text without its end at the budget as well
    assert sum(each.raw for each in logprobs) == pytest.approx(math.log(case.valid[tuple(one.text.tokens)]), abs=1e-4)
