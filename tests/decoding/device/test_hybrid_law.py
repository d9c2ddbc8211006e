"""Texts of a language that does not freeze have the target's own masked distribution on the device: by statistics.

The language nests, texts are cut at a few tokens, and windows are made to miss states: none is computed ahead.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Request, Sampling, Statistics  # noqa: E402
from grammarspec.decoding.device import DeviceBatch, supply  # noqa: E402
from grammarspec.decoding.device.round import Round  # noqa: E402
from tests import tiers  # noqa: E402
from tests.decoding.device.test_same_law import PROPOSERS, SAMPLINGS  # noqa: E402
from tests.decoding.test_exactness import kolmogorov, p_value  # noqa: E402
from tests.oracles.distributions import naive_distribution  # noqa: E402
from tests.oracles.tables import END, PROMPT, VOCABULARY, WIDTH, TableHead, TableModel, number, tables  # noqa: E402

LONGEST = 4  # tokens
ROWS = 256
SAMPLES = tiers.draws(1500)
LANGUAGES = {
    "nested": gs.lark('start: "a" start "b" | "c" start? | "b" start "c" "a"'),
    "twice nested": gs.lark('start: part*\npart: "a" part? "b" | "c" part "c" | "b" "a"'),
}


def exact(logits: Any, constraint: gs.Constraint, what: Sampling) -> dict[tuple[int, ...], float]:
    """The probability of each text, up to its end or its longest length, by enumeration."""
    found: dict[tuple[int, ...], float] = {}

    def visit(state: int, text: list[int], probability: float) -> None:
        if len(text) == LONGEST or text[-1:] == [END]:
            found[tuple(text)] = probability
            return
        following = {token: after for token in range(WIDTH) if (after := constraint.step(state, token)) is not None}
        each = naive_distribution(logits(number(text)), set(following), PROMPT, text, what)
        for token, after in following.items():
            if each[token] > 0:
                visit(after, [*text, token], probability * each[token])

    visit(constraint.start, [], 1.0)
    return found


def sample(case: int, name: str, what: Sampling, samples: int) -> tuple[float, Statistics]:
    """The p-value of texts that were drawn with these proposers, and their statistics."""
    layers = tables(case, 2.0 + case % 3 / 2)
    target, draft, head = TableModel(layers[:2]), TableModel(layers[2:]), TableHead(layers[2])
    both = (layers[0] + layers[1]).tolist()
    constraint = gs.compile(list(LANGUAGES.values())[case % len(LANGUAGES)], VOCABULARY)
    seen: Counter[tuple[int, ...]] = Counter()
    statistics = Statistics()
    for begin in range(0, samples, ROWS):
        seed = None if what.seed is None else what.seed + begin
        options = {each: getattr(what, each) for each in what.__dataclass_fields__} | {"seed": seed}
        request = Request(
            prompt=PROMPT, matcher=constraint.matcher(), sampling=Sampling(**options), n=min(ROWS, samples - begin)
        )
        batch = DeviceBatch(
            target,
            [request],
            VOCABULARY,
            proposers=PROPOSERS[name](target, draft, head, case % 2 == 0),
            gamma=1 + case % 4,
            adaptive=False,
            end_token=END,
            lag=1,
            looks=False,
        )
        [texts] = batch.run()
        seen.update(tuple(text.tokens) for text in texts)
        for text in texts:
            statistics.add(text.statistics)
    return p_value(seen, exact(lambda row: both[row], constraint, what)), statistics


@pytest.fixture
def unprepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No state is computed before a text is in it."""
    monkeypatch.setattr(supply, "_AHEAD", 0)


def test_the_languages_do_not_freeze() -> None:
    for grammar in LANGUAGES.values():
        with pytest.raises(gs.UnsupportedFeature, match="nests in itself"):
            gs.compile(grammar, VOCABULARY).freeze()


@pytest.mark.property
def test_distribution(unprepared: None) -> None:
    values, misses = [], 0
    for case, name in enumerate(PROPOSERS):
        torch.manual_seed(tiers.seed(case))
        seed = 1_000_000 * case if case % 4 == 3 else None
        what = Sampling(**SAMPLINGS[case % len(SAMPLINGS)], seed=seed, max_tokens=LONGEST)
        value, statistics = sample(case, name, what, SAMPLES)
        misses += statistics.misses
        print(f"{name:15} seed {seed} p {value:.4f}, {statistics.misses_per_thousand:.0f} misses per 1,000 rounds")
        values.append(value)
    assert misses > 0
    assert min(values) > 0.001 / len(values)
    assert kolmogorov(values) > 0.001


def _follows_anyway(patch: pytest.MonkeyPatch) -> None:
    """A token is chosen even where no mask is known, among all tokens."""
    patch.setattr("grammarspec.decoding.device.round.MISSING", -7)


def _draft_counts_as_refused(patch: pytest.MonkeyPatch) -> None:
    """Draft tokens to states that are missing are never accepted."""
    commit = Round._commit

    def wrong(self: Round, draft: Any, processing: Any, tokens: Any, accepted: Any, following: Any, *rest: Any) -> Any:
        last = torch.stack(draft.states, 1).gather(1, accepted[:, None])[:, 0]
        short = (last == 2) & (accepted > 0)
        return commit(self, draft, processing, tokens, accepted - short.long(), following, *rest)

    patch.setattr(Round, "_commit", wrong)


@pytest.mark.slow
@pytest.mark.parametrize("mutate", [_follows_anyway, _draft_counts_as_refused])
def test_wrong_rounds_are_caught(mutate: Any, unprepared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def least() -> float:
        torch.manual_seed(0)
        values = []
        for case in (1, 2, 3):
            try:
                values.append(sample(case, "model", Sampling(temperature=1.0, max_tokens=LONGEST), 4000)[0])
            except (RuntimeError, AssertionError):  # a token came out that the constraint refuses
                return 0.0
        return min(values)

    assert least() > 1e-4
    mutate(monkeypatch)
    assert least() < 1e-6
