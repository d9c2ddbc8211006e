"""Drafts are as long as pays: by costs and acceptance that are given, and by a clock that the tests set."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Request, adaptive  # noqa: E402
from grammarspec.decoding.adaptive import Acceptance, Costs, Experience, Pace, experience_with  # noqa: E402
from grammarspec.decoding.batch import Batch  # noqa: E402
from grammarspec.decoding.draft import Draft, MaskRows  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, Forced, Lookup, Proposer  # noqa: E402

SECONDS, KNOWS, LEAST_OF = Costs.seconds, Costs.knows, adaptive._least_of
WIDTH = 300
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
VOCABULARY = gs.Vocabulary.from_tokens([bytes([value]) for value in range(256)], [270], size=WIDTH)


@pytest.fixture(autouse=True)
def measured(long_drafts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs are those that are measured."""
    monkeypatch.setattr(Costs, "seconds", SECONDS)
    monkeypatch.setattr(Costs, "knows", KNOWS)
    monkeypatch.setattr(adaptive, "_least_of", LEAST_OF)


def costs(*measurements: tuple[int, int, float]) -> Costs:
    found = Costs()
    for rows, tokens, seconds in measurements:
        found.add(rows, tokens, seconds)
    return found


def test_costs_are_medians_of_the_latest() -> None:
    found = costs(*((1, 3, seconds) for seconds in [9.0] * 20 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 100.0]))
    assert found.seconds(1, 3) == 5.0


def test_a_cost_that_happens_to_be_too_high() -> None:
    """It does not keep from trying again; what is measured again and again counts as it is."""
    usual = [(1, tokens, 10.0 + tokens) for tokens in (1, 2, 4)] * 9
    once, nine = (costs(*usual, *[(1, 6, 24.0)] * times) for times in (1, 9))
    assert 16 < once.seconds(1, 6) < 19
    assert once.seconds(1, 8) < 22
    assert once.seconds(1, 1) == 11.0
    assert nine.seconds(1, 6) == 24.0


def test_more_tokens_are_not_expected_to_cost_less() -> None:
    found = costs((1, 1, 10.0), (1, 5, 6.0))
    assert found.seconds(1, 9) >= found.seconds(1, 3) == 8.0


def test_costs_are_above_zero_where_they_rise_steeply() -> None:
    found = costs(*[(1, tokens, 1.0) for tokens in (3, 4, 5, 6)] * 9, *[(1, 16, 100.0)] * 9)
    assert all(found.seconds(1, tokens) > 0 for tokens in range(1, 40))


def test_costs_between_and_beyond_what_was_measured() -> None:
    found = costs((1, 1, 10.0), (1, 5, 20.0), (4, 1, 30.0))
    assert [found.seconds(1, tokens) for tokens in (1, 2, 3, 5)] == [10.0, 12.5, 15.0, 20.0]
    assert found.seconds(1, 9) > 20.0
    assert found.seconds(4, 2) > 30.0
    assert found.seconds(2, 1) == 10.0  # that of the nearest number of rows
    assert Costs().seconds(1, 2) > Costs().seconds(1, 1)
    assert costs((1, 5, 20.0)).seconds(1, 1) < 20.0


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_acceptance_approaches_its_rate_and_follows_its_changes(rate: float) -> None:
    generator = random.Random(1)
    found = Acceptance()
    assert found.rate("forced") > found.rate("lookup of 1 among many")
    for _ in range(400):
        found.add("x", generator.random() < 1 - rate)
    for _ in range(400):
        found.add("x", generator.random() < rate)
    assert found.rate("x") == pytest.approx(rate, abs=0.16)


class Sequences:
    """As much of a batch as a draft needs."""

    def __init__(self, rows: int) -> None:
        self.rows: Any = [Row() for _ in range(rows)]


class Row:
    tokens: Sequence[int] = (1, 2, 3)
    length, room = 0, 100
    matcher = None
    finish_reason = None

    def is_end(self, token: int) -> bool:
        return False


def drafted(*kinds: str, most: int = 8) -> Draft:
    """A draft of one row whose tokens are of these kinds."""
    device = torch.device("cpu")
    draft = Draft(Sequences(1).rows, [most], MaskRows(1, most, WIDTH), device, WIDTH)
    for kind in kinds:
        draft.extend(0, [5], "x", [kind])
    return draft


def pace(rates: dict[str, float], price: Callable[[int], float], model: str | None = None) -> Pace:
    """A pace that knows acceptance and costs well."""
    experience = Experience()
    for kind, rate in rates.items():
        for turn in range(1000):
            experience.acceptance.add(kind, (turn * rate) % 1 + rate >= 1)
    for tokens in [*range(1, 10)] * 9:
        experience.costs.add(1, tokens, price(tokens))
    return Pace(experience, model)


def of_model(*rates: float) -> dict[str, float]:
    """How many of the tokens of a model are accepted, where many can follow: of its first, its second and others."""
    return {f"model {number} open": rate for number, rate in enumerate(rates)}


def flat(tokens: int) -> float:
    return 1.0 + 0.05 * tokens


def stairs(tokens: int) -> float:
    """A pass over two tokens costs two thirds more than one over one, but one over nine hardly more than that."""
    return 88.0 if tokens == 1 else 145.0 + tokens


def steep(tokens: int) -> float:
    return float(tokens)


@pytest.mark.parametrize(
    ("kinds", "price", "length"),
    [
        (["sure"] * 6, flat, 6),
        (["sure"] * 6, stairs, 6),
        (["sure"], stairs, 1),
        (["even"], stairs, 0),
        (["even"], flat, 1),
        (["never"] * 8, flat, 0),
        (["sure", "sure", "never", "sure"], flat, 2),
        (["sure", "sure", "sure", "never", "sure"], stairs, 3),
        (["never", "sure", "sure", "sure"], stairs, 0),
        (["even"] * 8, steep, 0),
        ([], flat, 0),
    ],
)
def test_lengths_that_pay(kinds: list[str], price: Callable[[int], float], length: int) -> None:
    found = pace({"sure": 0.99, "even": 0.5, "never": 0.0}, price)
    assert found.length(drafted(*kinds), 8) == length


def test_a_model_that_drafts_one_token_well_drafts_one() -> None:
    found = pace(of_model(0.9, 0.01, 0.01), flat, "model")
    found.step(0.01)
    assert found.length(drafted(), 8) == 1
    assert found.length(drafted("sure"), 8) == 2


def test_a_model_is_judged_by_how_many_tokens_can_follow() -> None:
    sequences = Sequences(2).rows
    sequences[1].matcher = gs.compile(gs.regex("(red|green)+"), VOCABULARY).matcher()
    draft = Draft(sequences, [8, 8], MaskRows(2, 8, WIDTH), torch.device("cpu"), WIDTH)
    draft.add(1, ord("r"), "other")
    kinds = [draft.model_kind(row, "model", ahead) for row in (0, 1) for ahead in (0, 1, 5)]
    assert kinds == [f"model {behind} {room}" for room in ("open", "narrow") for behind in (0, 1, 2)]


def test_a_model_goes_on_as_far_as_its_steps_pay() -> None:
    lengths = []
    for seconds in (0.001, 0.2, 1.0, 10.0):
        found = pace({"sure": 0.99, **of_model(0.8, 0.8, 0.8)}, flat, "model")
        found.step(seconds)
        lengths.append(found.length(drafted("sure", "sure"), 8))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > 5
    assert lengths[-1] == 2, "what others have drafted costs no steps"


def test_what_seems_not_to_pay_is_tried_now_and_then() -> None:
    """The draft that costs least of those that seem not to pay; where drafts do pay, the longest."""
    found = pace({"never": 0.0}, stairs)
    lengths = [found.length(drafted("never", "never"), 8) for _ in range(200)]
    assert Counter(lengths) == {0: 196, 1: 4}
    found = pace({"sure": 0.99, "never": 0.0}, flat)
    lengths = [found.length(drafted("sure", "never", "never"), 8) for _ in range(200)]
    assert Counter(lengths) == {1: 196, 3: 4}


@pytest.mark.parametrize(("rows", "idle", "length"), [(4, 0, 2), (4, 20, 0), (1, 20, 2)])
def test_rare_gains_do_not_shorten_a_batch(rows: int, idle: int, length: int) -> None:
    """Unless others take the places of texts that end: then they count as they are."""
    experience = pace({"sure": 0.99}, flat)._experience
    for tokens in [*range(1, 10)] * 9:
        experience.costs.add(rows, tokens, flat(tokens))
    lengths = []
    for together in (True, False):
        found = Pace(experience, None, together=together)
        for drafted_now in [False] * idle + [True]:
            draft = Draft(Sequences(rows).rows, [8] * rows, MaskRows(rows, 8, WIDTH), torch.device("cpu"), WIDTH)
            for row in range(-(-rows // 2) if drafted_now else 0):
                draft.extend(row, [5, 5], "x", ["sure", "sure"])
            chosen = found.length(draft, 8)
        lengths.append(chosen)
    assert lengths == [length, 2]


@pytest.mark.parametrize("rows", [2, 8, 32])
@pytest.mark.parametrize("saved", [10.0, 60.0])
def test_how_much_the_slowest_text_saves(rows: int, saved: float) -> None:
    """Of tokens that are saved at random."""
    found = Pace(Experience(), None)
    found._rounds, found._gains = 1, saved / 16
    draft = Draft(Sequences(rows).rows, [8] * rows, MaskRows(rows, 8, WIDTH), torch.device("cpu"), WIDTH)
    generator = torch.Generator().manual_seed(1)
    least = torch.poisson(torch.full((2000, rows), saved), generator=generator).min(dim=1).values.mean()
    assert found._share(draft) == pytest.approx(float(least) / saved, abs=0.08)


def test_what_no_draft_costs_is_measured() -> None:
    experience = Experience()
    found = Pace(experience, None)
    assert found.length(drafted("forced", "forced"), 8) == 2
    experience.costs.add(1, 3, 1.0)
    assert found.length(drafted("forced", "forced"), 8) == 0
    experience.costs.add(1, 1, 0.9)
    assert found.length(drafted("forced", "forced"), 8) == 2


def test_cut_tokens_are_compared_with_what_the_target_chose() -> None:
    found = pace({"guess": 0.0}, stairs)
    before = found._experience.acceptance.rate("guess")
    for chosen in (5, 5, 5, 9):
        draft = drafted("guess", "guess")
        draft.limit(found.length(draft, 8))
        assert draft.cut[0] == (5, "guess")
        assert draft.tokens == [[]]
        draft.sequences[0].tokens = [1, 2, 3, chosen]
        found.learn(draft, [0], None)
    assert found._experience.acceptance.rate("guess") > before + 0.05
    for _ in range(200):
        draft = drafted("guess")
        draft.limit(0)
        draft.sequences[0].tokens = [5]
        found.learn(draft, [0], None)
    assert found.length(drafted("guess", "guess", "guess"), 8) == 3, "drafts are made again"


def test_a_rejected_token_counts_and_those_behind_it_do_not() -> None:
    experience = Experience()
    found = Pace(experience, None)
    draft = drafted("a", "b", "c")
    found.learn(draft, [1], None)
    rates = [experience.acceptance.rate(kind) for kind in "abc"]
    assert rates[0] > rates[2] > rates[1]
    assert not experience.costs.knows(1, 4), "a round that reads a prompt says nothing about drafts"


def test_experience_is_of_a_target() -> None:
    one, other = Words(), Words()
    assert experience_with(one) is experience_with(one)
    assert experience_with(one) is not experience_with(other)
    assert experience_with("text") is not experience_with("text")


class Words:
    """A target whose logits are a function of the last three tokens."""

    width, context_length, device = WIDTH, None, torch.device("cpu")
    _table = torch.randn(97, WIDTH, generator=torch.Generator().manual_seed(1))

    def logits(self, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> list[Any]:
        return [
            torch.stack([self._table[hash(tuple(text[:end][-3:])) % 97] for end in range(len(text) + 1)[-count:]])
            for text, count in zip(texts, counts, strict=True)
        ]


class Clock:
    """A clock for the loop, on which time passes with the tokens that a target reads."""

    def __init__(self, price: Callable[[int], float]) -> None:
        self.now, self.price = 0.0, price

    def __call__(self) -> float:
        return self.now

    def reads(self, target: Any) -> Any:
        """The target, whose passes take their time."""
        read = target.read

        def slow(tokens: Sequence[Sequence[int]], keep: int) -> Any:
            self.now += self.price(max(map(len, tokens)))
            return read(tokens, keep)

        target.read = slow
        return target


def seconds_of(
    price: Callable[[int], float], proposers: Sequence[Proposer], adapts: bool, monkeypatch: Any, texts: int = 12
) -> tuple[float, list[list[int]]]:
    """What texts take, and the texts."""
    clock = Clock(price)
    monkeypatch.setattr("grammarspec.decoding.batch.perf_counter", clock)
    model, found = Words(), []
    constraint = gs.compile(gs.json_schema(SCHEMA), VOCABULARY)
    for number in range(texts):
        matcher = constraint.matcher() if number % 2 else None
        request = Request(prompt=[1, 2, number], matcher=matcher, sampling=gs.Sampling(max_tokens=40))
        with torch.inference_mode():
            batch = Batch(model, [request], VOCABULARY, proposers=proposers, gamma=8 if proposers else 0,
                          adaptive=adapts)  # fmt: skip
            clock.reads(batch.target)
            while batch.sequences:
                batch.round()
        found.append(batch.results()[0][0].tokens)
    return clock.now, found


@pytest.mark.parametrize("price", [flat, stairs, steep])
def test_drafts_never_cost_much(price: Callable[[int], float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that repeat nothing, in which only the constraint's text can be drafted."""
    plain, texts = seconds_of(price, [], False, monkeypatch)
    always, _ = seconds_of(price, [Forced(), Lookup()], False, monkeypatch)
    adapted, same = seconds_of(price, [Forced(), Lookup()], True, monkeypatch)
    assert same == texts
    assert adapted < 1.03 * plain
    assert adapted < 1.03 * always
    if price is steep:
        assert always > 1.2 * plain, "drafts would have cost much"


def test_the_best_length_by_exhaustion() -> None:
    for rate in (0.3, 0.5, 0.7, 0.9):
        for price in (flat, stairs, steep):
            found = pace({"x": rate}, price)
            known = found._experience.acceptance.rate("x")
            speeds = [sum(known**i for i in range(length + 1)) / price(length + 1) for length in range(9)]
            assert found.length(drafted(*["x"] * 8), 8) == speeds.index(max(speeds))


@pytest.mark.parametrize("gamma", [1, 3, 8])
def test_a_model_that_is_the_target_drafts_where_its_steps_are_cheap(
    gamma: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(flat)
    monkeypatch.setattr("grammarspec.decoding.batch.perf_counter", clock)
    model = Words()
    request = Request(prompt=[1, 2, 3], sampling=gs.Sampling(max_tokens=100))
    with torch.inference_mode():
        batch = Batch(model, [request], VOCABULARY, proposers=[DraftModel(model)], gamma=gamma, adaptive=True)
        clock.reads(batch.target)
        while batch.sequences:
            batch.round()
    [[text]] = batch.results()
    assert text.statistics.tokens_per_pass > 0.8 * (gamma + 1) * (0.7 if gamma == 8 else 1)


def test_limits_are_kept() -> None:
    assert adaptive.Pace(Experience(), "model").length(drafted(), 3) <= 3


def test_batches_of_several_threads_share_what_they_learn() -> None:
    experience = Experience()
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            found = Pace(experience, None)
            for turn in range(400):
                experience.costs.add(1 + turn % 40, 1 + (turn + number) % 40, 1.0 + turn % 3)
                draft = drafted("forced", f"kind {turn % 50}")
                draft.limit(found.length(draft, 8))
                found.learn(draft, [0], 1.0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
