"""Generated texts have the target's own masked distribution: by statistics, which wrong loops fail."""

from __future__ import annotations

import inspect
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import (  # noqa: E402
    Request,
    Sampling,
    Statistics,
    adaptive,
    distributions,
    generate_batch,
    host_chooser,
    processing,
)
from grammarspec.decoding.draft import Draft  # noqa: E402
from grammarspec.decoding.host_chooser import HostChooser  # noqa: E402
from grammarspec.decoding.noise import Purpose, uniform_of  # noqa: E402
from grammarspec.decoding.proposers import (  # noqa: E402
    DraftModel,
    EarlyExit,
    Forced,
    HeadProposer,
    Lookup,
    Proposer,
)
from grammarspec.decoding.verification import draw, draw_one  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.distributions import cells, p_value  # noqa: E402
from tests.oracles.tables import (  # noqa: E402
    PROMPT,
    VOCABULARY,
    TableHead,
    TableModel,
    exact_distribution,
    language,
    tables,
)

SAMPLES = tiers.draws(1200, most=1200)
LANGUAGES = tiers.draws(6, least=2)
ROWS = 1024

Make = Callable[[TableModel, TableModel, Any, bool], list[Proposer]]
PROPOSERS: dict[str, Make] = {
    "none": lambda target, draft, head, masked: [],
    "model": lambda target, draft, head, masked: [DraftModel(draft, masked=masked)],
    "hesitant model": lambda target, draft, head, masked: [DraftModel(draft, masked=masked, confidence=0.5)],
    "early exit": lambda target, draft, head, masked: [EarlyExit(target, 1, masked=masked)],
    "head": lambda target, draft, head, masked: [HeadProposer(head, masked=masked)],
    "lookup": lambda target, draft, head, masked: [Lookup()],
    "forced": lambda target, draft, head, masked: [Forced()],
    "chain": lambda target, draft, head, masked: [
        Forced(),
        Lookup(longest=2),
        HeadProposer(head, masked=masked),
        DraftModel(draft, masked=masked),
    ],
}
SAMPLINGS: list[dict[str, Any]] = [
    {"temperature": 1.0},
    {"temperature": 1.4, "top_k": 3},
    {"temperature": 1.2, "top_p": 0.8},
    {"temperature": 1.1, "min_p": 0.1},
    {"temperature": 0.8, "top_k": 4, "top_p": 0.95, "min_p": 0.02},
    {
        "temperature": 1.3,
        "repetition_penalty": 1.3,
        "presence_penalty": 0.4,
        "frequency_penalty": 0.3,
        "logit_bias": {1: 0.7},
    },
]


def sample(
    case: int, make: Make, masked: bool, what: Sampling, samples: int, gamma: int
) -> tuple[Counter[tuple[int, ...]], Any, Any]:
    """Texts that the loop generates on one language, what is to be expected of them, and its statistics."""
    _, constraint = language(case)
    layers = tables(case, 2.0 + case % 3 / 2)
    target, draft, head = TableModel(layers[:2]), TableModel(layers[2:]), TableHead(layers[2])
    proposers = make(target, draft, head, masked)
    seen: Counter[tuple[int, ...]] = Counter()
    statistics = Statistics()
    for begin in range(0, samples, ROWS):
        # Samples are told apart by their number; batches of one seed would repeat each other.
        seed = None if what.seed is None else what.seed + begin
        options = {name: getattr(what, name) for name in what.__dataclass_fields__} | {"seed": seed}
        request = Request(
            prompt=PROMPT, matcher=constraint.matcher(), sampling=Sampling(**options), n=min(ROWS, samples - begin)
        )
        [texts] = generate_batch(target, [request], VOCABULARY, proposers=proposers, gamma=gamma)
        seen.update(tuple(text.tokens) for text in texts)
        for text in texts[:64]:
            statistics.add(text.statistics)
    both = (layers[0] + layers[1]).tolist()
    return seen, exact_distribution(lambda row: both[row], constraint, what), statistics


def kolmogorov(values: Sequence[float]) -> float:
    """The p-value of values that should be uniform on [0, 1] (asymptotic; Stephens 1970)."""
    n = len(values)
    ordered = sorted(values)
    distance = max(max((i + 1) / n - value, value - i / n) for i, value in enumerate(ordered))
    scaled = (n**0.5 + 0.12 + 0.11 / n**0.5) * distance
    return min(
        1.0, 2 * sum((-1) ** (k - 1) * 2.718281828459045 ** (-2 * k * k * scaled * scaled) for k in range(1, 100))
    )


def test_the_tests_own_statistics() -> None:
    distribution = {(0,): 0.5, (1,): 0.3, (2,): 0.2}
    assert p_value(Counter({(0,): 500, (1,): 300, (2,): 200}), distribution) == pytest.approx(1.0)
    # Chi-square 2 * 50**2 / 500 = 10 and 0: of two degrees of freedom exp(-4.17).
    assert p_value(Counter({(0,): 450, (1,): 350, (2,): 200}), distribution) == pytest.approx(
        2.718281828 ** (-(5 + 50**2 / 300) / 2), rel=1e-6
    )
    assert p_value(Counter({(3,): 1}), distribution) == 0
    assert kolmogorov([(i + 0.5) / 50 for i in range(50)]) > 0.99
    assert kolmogorov([(i / 50) ** 2 for i in range(50)]) < 0.01


@pytest.mark.parametrize(("on_host", "adapts"), [tiers.slow(True, True), (True, False), tiers.slow(False, False)])
@pytest.mark.property
def test_distribution(on_host: bool, adapts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU and by tensors; with drafts as long as they can be, and as long as costs and acceptance say."""
    monkeypatch.setattr("grammarspec.decoding.host_chooser.HOST_WIDTH", 0 if on_host else 4096)
    if adapts:
        costs = random.Random(tiers.seed(1))
        monkeypatch.setattr(adaptive.Costs, "seconds", lambda self, rows, tokens: tokens * 2 ** costs.uniform(-1, 1))
        monkeypatch.setattr(adaptive, "_least_of", lambda count: 0.3)  # what others save counts, but not as much
    values, told = [], []
    for case in range(LANGUAGES):
        for number, (name, make) in enumerate(PROPOSERS.items()):
            # Over the languages every proposer meets every sampling, masked and not, with both couplings.
            options = SAMPLINGS[(case + number) % len(SAMPLINGS)]
            masked = (case // 2 + number) % 2 == 0
            torch.manual_seed(tiers.seed(100 * case + number))
            seed = 1_000_000 * (100 * case + number) if (case + case // 4 + number) % 2 else None
            what = Sampling(**options, seed=seed)
            seen, distribution, statistics = sample(case, make, masked, what, SAMPLES, gamma=1 + (case + number) % 4)
            value = p_value(seen, distribution)
            line = f"{case:2} {name:15} masked {masked} seed {seed} {options} {len(distribution)} texts: p {value:.4f},"
            rate = statistics.acceptance_rate
            print(f"{line} acceptance {rate:.2f}, tau {statistics.tokens_per_pass:.2f}", flush=True)
            values.append((value, case, name))
            told += [value] if len(cells(distribution, SAMPLES)) > 1 else []
    uniform = kolmogorov(told)
    print(f"{len(values)} cases of {SAMPLES} samples: least p {min(values)}, Kolmogorov-Smirnov p {uniform:.4f}")
    assert min(values)[0] > 0.001 / len(values)
    assert uniform > 0.001


def _truncate_refused(patch: pytest.MonkeyPatch) -> None:
    """A drafted token that the constraint refuses is dropped, and the draft ends before it."""
    add = Draft.add

    def wrong(self: Draft, row: int, token: int, source: str, distribution: Any = None) -> None:
        matcher = self.sequences[row].matcher
        assert matcher is not None
        if matcher.validate_tokens([token]):
            add(self, row, token, source, distribution)
        else:
            self.finish(row)

    patch.setattr(Draft, "add", wrong)


def _raw_ratio(patch: pytest.MonkeyPatch) -> None:
    """Drafts are accepted by the ratio to the target's distribution without the mask."""
    verify, raw = processing.verify, []

    def remember(logits: Any, masks: Any, mask_rows: Any, *rest: Any) -> Any:
        temperature, top_k, top_p, min_p, kinds = rest[:5]
        raw.append(distributions.distribution(logits.float(), temperature, top_k, top_p, min_p, kinds))
        return verify(logits, masks, mask_rows, *rest)

    def wrong(distribution: Any, *rest: Any) -> Any:
        return accepted(raw[-1], *rest)

    accepted = distributions.accepted_drafts
    patch.setattr(processing, "verify", remember)
    patch.setattr(distributions, "accepted_drafts", wrong)


def _bonus_from_draft(patch: pytest.MonkeyPatch) -> None:
    """Behind a draft that is accepted as a whole, the next token is drawn from the draft's distribution at its end."""
    verify = inspect.signature(processing.verify)

    def wrong(*args: Any) -> Any:
        given = verify.bind(*args)
        given.arguments["whole"] = True  # the distributions are wanted
        accepted, following, highest, target = right(*given.args)
        draft, lengths = given.arguments["draft"], given.arguments["lengths"]
        if draft is None:
            return accepted, following, highest, target
        # The draft's last distribution, among the tokens that the target may choose.
        rows = torch.arange(len(lengths))
        allowed = target[rows, accepted]
        last = draft[rows, (lengths - 1).clamp(min=0)] * (allowed > 0)
        whole = (accepted == lengths) & (lengths > 0) & (last.sum(-1) > 0)
        other = draw(torch.where(whole[:, None], last, allowed), torch.rand(len(rows), dtype=torch.float64))
        return accepted, torch.where(whole, other, following), highest, target

    right = processing.verify
    patch.setattr(processing, "verify", wrong)


def _row_off_by_one(patch: pytest.MonkeyPatch) -> None:
    """Behind a rejected token, the next one is drawn from the distribution of the position before (if there is one)."""
    residual = distributions.residual_distribution

    def wrong(distribution: Any, tokens: Any, accepted: Any, lengths: Any, distributions: Any, drawn: Any) -> Any:
        right = residual(distribution, tokens, accepted, lengths, distributions, drawn)
        before = distribution[torch.arange(len(distribution)), (accepted - 1).clamp(min=0)] * (right > 0)
        return torch.where((before.sum(-1) > 0)[:, None], before, right)

    patch.setattr(distributions, "residual_distribution", wrong)


def _top_p_before_mask(patch: pytest.MonkeyPatch) -> None:
    """The nucleus is taken of the distribution without the mask."""
    verify = processing.verify

    def wrong(logits: Any, masks: Any, mask_rows: Any, *rest: Any) -> Any:
        masked = distributions.masked_scores(logits.flatten(0, 1), masks.flatten(0, 1), mask_rows).view_as(logits)
        nucleus = distributions.distribution(logits.float(), *rest[:5]) > 0
        left = masked.masked_fill(~nucleus, -torch.inf)
        left = torch.where((left > -torch.inf).any(-1, keepdim=True), left, masked)
        return verify(left, None, None, *rest)

    patch.setattr(processing, "verify", wrong)


def _unrenormalised(patch: pytest.MonkeyPatch) -> None:
    """The draft's distribution is kept without being normalised over what the mask allows."""
    add = Draft.add

    def wrong(self: Draft, row: int, token: int, source: str, distribution: Any = None) -> None:
        add(self, row, token, source, distribution if distribution is None else 0.6 * distribution)

    patch.setattr(Draft, "add", wrong)


def _discard_unsure(patch: pytest.MonkeyPatch) -> None:
    """Tokens that the draft's distribution gave a low probability are taken out of the draft again."""
    add = Draft.add

    def wrong(self: Draft, row: int, token: int, source: str, distribution: Any = None) -> None:
        if distribution is not None and distribution[token] < 0.4:
            self.finish(row)
        else:
            add(self, row, token, source, distribution)

    patch.setattr(Draft, "add", wrong)


def _stale_row(patch: pytest.MonkeyPatch) -> None:
    """The mask of a position is that of the position before, where that allows the token that follows."""
    every = Draft.all_masks

    def wrong(self: Draft) -> Any:
        masks = every(self)
        masks[:, 1:] &= masks[:, :1]
        masks[:, 1:][(masks[:, 1:] == 0).all(-1)] = -1
        return masks

    patch.setattr(Draft, "all_masks", wrong)


def _raw_ratio_on_host(patch: pytest.MonkeyPatch) -> None:
    """As :func:`_raw_ratio`."""
    scores, draw, raw = HostChooser._scores, HostChooser._draw, []

    def remember(self: HostChooser, row: int, logits: Any, mask: Any, prefix: Any, *, best: bool) -> Any:
        raw.append(scores(self, row, logits, None, prefix, best=best))
        return scores(self, row, logits, mask, prefix, best=best)

    def wrong(self: HostChooser, row: int, masked: Any, best: int, proposed: int | None, *rest: Any) -> int | None:
        distribution = self._distribution(row, raw[-1], int(raw[-1].values.argmax()))
        p = 0.0 if proposed is None else distribution.of(proposed)
        patch.setattr(host_chooser, "accepts", lambda _, q, uniform: uniform * q < p)
        return draw(self, row, masked, best, proposed, *rest)

    patch.setattr(HostChooser, "_scores", remember)
    patch.setattr(HostChooser, "_draw", wrong)


def _bonus_from_draft_on_host(patch: pytest.MonkeyPatch) -> None:
    """As :func:`_bonus_from_draft`."""
    draw = HostChooser._draw

    def wrong(
        self: HostChooser,
        row: int,
        scores: Any,
        best: int,
        proposed: int | None,
        draft: Any,
        position: int,
        turn: int,
    ) -> int | None:
        right = draw(self, row, scores, best, proposed, draft, position, turn)
        if proposed is not None or position == 0 or draft.distributions is None:
            return right
        weights = draft.distributions[position - 1].numpy().copy()
        allowed = self._distribution(row, scores, best)
        weights[[token for token in range(len(weights)) if not allowed.of(token)]] = 0
        return _drawn_by(weights, right, self, row, draft, position, turn)

    patch.setattr(HostChooser, "_draw", wrong)


def _drawn_by(
    weights: Any, otherwise: int | None, chooser: HostChooser, row: int, draft: Any, position: int, turn: int
) -> int | None:
    """A token that is drawn by these weights at a position of a row's draft; another one if all of them are 0."""
    place = draft.place + position
    uniform = uniform_of(chooser._processing.streams[row], place, Purpose.CHOOSE, turn)
    return draw_one(weights, uniform) if weights.any() else otherwise


def _row_off_by_one_on_host(patch: pytest.MonkeyPatch) -> None:
    """As :func:`_row_off_by_one`."""
    draw, before = HostChooser._draw, {}

    def wrong(
        self: HostChooser,
        row: int,
        scores: Any,
        best: int,
        proposed: int | None,
        draft: Any,
        position: int,
        turn: int,
    ) -> int | None:
        right, here = (
            draw(self, row, scores, best, proposed, draft, position, turn),
            self._distribution(row, scores, best),
        )
        last = before.get((row, position - 1, turn))
        before[row, position, turn] = here
        if right is None or last is None:
            return right
        weights = np.array([last.of(token) * (here.of(token) > 0) for token in range(self._processing.width)])
        return _drawn_by(weights, right, self, row, draft, position, turn)

    patch.setattr(HostChooser, "_draw", wrong)


def _top_p_before_mask_on_host(patch: pytest.MonkeyPatch) -> None:
    """As :func:`_top_p_before_mask`."""
    scores = HostChooser._scores

    def wrong(self: HostChooser, row: int, logits: Any, mask: Any, prefix: Any, *, best: bool) -> Any:
        masked, unmasked = (scores(self, row, logits, each, prefix, best=False) for each in (mask, None))
        nucleus = self._distribution(row, unmasked, int(unmasked.values.argmax()))
        inside = [index for index in range(len(masked.values)) if nucleus.of(masked.token(index))]
        inside = [index for index in inside if masked.values[index] > -np.inf]
        return masked.among(np.array(inside)) if inside else masked

    patch.setattr(HostChooser, "_scores", wrong)


def _stale_row_on_host(patch: pytest.MonkeyPatch) -> None:
    """As :func:`_stale_row`."""
    every = Draft.mask_rows

    def wrong(self: Draft, row: int) -> Any:
        masks = every(self, row).copy()
        masks[1:] &= masks[:-1].copy()
        masks[1:][(masks[1:] == 0).all(-1)] = -1
        return masks

    patch.setattr(Draft, "mask_rows", wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutate", "masked", "gamma", "options"),
    tiers.some(
        [
            (_truncate_refused, False, 3, {}),
            (_raw_ratio, True, 3, {}),
            (_raw_ratio_on_host, True, 3, {}),
            (_bonus_from_draft, True, 1, {}),
            (_bonus_from_draft_on_host, True, 1, {}),
            (_row_off_by_one, False, 3, {}),
            (_row_off_by_one_on_host, False, 3, {}),
            (_top_p_before_mask, True, 3, {"temperature": 2.0, "top_p": 0.7}),
            (_top_p_before_mask_on_host, True, 3, {"temperature": 2.0, "top_p": 0.7}),
            (_unrenormalised, True, 3, {}),
            (_discard_unsure, True, 3, {}),
            (_stale_row, True, 3, {}),
            (_stale_row_on_host, True, 3, {}),
        ],
        least=2,
    ),
)
def test_wrong_loops_are_caught(
    mutate: Any, masked: bool, gamma: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some of them are of the code for tensors, which is then what runs.
    of_tensors = mutate in (_raw_ratio, _bonus_from_draft, _row_off_by_one, _top_p_before_mask, _stale_row)
    monkeypatch.setattr("grammarspec.decoding.host_chooser.HOST_WIDTH", 4096 if of_tensors else 0)

    assert _least_without_mutation(of_tensors, masked, gamma, tuple(options.items())) > 1e-4
    mutate(monkeypatch)
    assert any(value < 1e-6 for value in _p_values(masked, gamma, options))


def _p_values(masked: bool, gamma: int, options: dict[str, Any]) -> Iterator[float]:
    """The p-values of four languages, as the loop is now."""
    torch.manual_seed(0)
    what = Sampling(**({"temperature": 1.0} | options))
    for case in range(4):
        try:
            seen, distribution, _ = sample(case, PROPOSERS["model"], masked, what, 4000, gamma)
        except RuntimeError:  # a token came out that the constraint refuses
            yield 0.0
        else:
            yield p_value(seen, distribution)


@cache  # several mutations are of one loop
def _least_without_mutation(of_tensors: bool, masked: bool, gamma: int, options: tuple[tuple[str, Any], ...]) -> float:
    """The least of the p-values of the loop as it should be; ``of_tensors``: which loop that is, as set before."""
    return min(_p_values(masked, gamma, dict(options)))
