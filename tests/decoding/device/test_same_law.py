"""Texts that the loop on the device draws have the target's own masked distribution: by statistics."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Sampling, distributions, generate_batch, processing  # noqa: E402
from grammarspec.decoding.device import loop as device_loop  # noqa: E402
from grammarspec.decoding.device.state import Draft  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Forced, HeadProposer, Lookup  # noqa: E402
from tests import tiers  # noqa: E402
from tests.decoding import test_exactness  # noqa: E402
from tests.decoding.test_exactness import Make, kolmogorov, sample  # noqa: E402
from tests.oracles.distributions import cells, p_value  # noqa: E402

SAMPLES = tiers.draws(1500, most=1500)
LANGUAGES = tiers.draws(2, least=1)
PROPOSERS: dict[str, Make] = {
    "none": lambda target, draft, head, masked: [],
    "forced": lambda target, draft, head, masked: [Forced()],
    "lookup": lambda target, draft, head, masked: [Lookup()],
    "model": lambda target, draft, head, masked: [DraftModel(draft, masked=masked)],
    "hesitant model": lambda target, draft, head, masked: [DraftModel(draft, masked=masked, confidence=0.5)],
    "early exit": lambda target, draft, head, masked: [EarlyExit(target, 1, masked=masked)],
    "head": lambda target, draft, head, masked: [HeadProposer(head, masked=masked)],
    "chain": lambda target, draft, head, masked: [
        Forced(),
        Lookup(longest=2),
        HeadProposer(head, masked=masked),
        DraftModel(draft, masked=masked),
    ],
}
SAMPLINGS: list[dict[str, Any]] = [
    {"temperature": 1.0},
    {"temperature": 1.2, "top_k": 4, "top_p": 0.9, "min_p": 0.02},
    {"temperature": 1.3, "repetition_penalty": 1.3, "presence_penalty": 0.4, "logit_bias": {1: 0.7}},
]


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is the loop on the device, a round late and without looking, as where there is a device."""
    late = partial(device_loop.DeviceBatch, lag=1, looks=False)
    monkeypatch.setattr("grammarspec.decoding.loop.DeviceBatch", late)
    monkeypatch.setattr(test_exactness, "generate_batch", partial(generate_batch, device_loop=True, adaptive=False))


@pytest.mark.property
def test_distribution() -> None:
    values, told = [], []
    for case in range(LANGUAGES):
        for number, (name, make) in enumerate(PROPOSERS.items()):
            options = SAMPLINGS[(case + number) % len(SAMPLINGS)]
            masked = (case + number // 2) % 2 == 0
            torch.manual_seed(tiers.seed(100 * case + number))
            seed = 1_000_000 * (100 * case + number) if (case + number) % 4 == 3 else None
            what = Sampling(**options, seed=seed)
            seen, distribution, statistics = sample(case, make, masked, what, SAMPLES, gamma=1 + (case + number) % 4)
            value = p_value(seen, distribution)
            print(
                f"{case:2} {name:15} masked {masked} seed {seed} {options} {len(distribution)} texts: p {value:.4f}, "
                f"acceptance {statistics.acceptance_rate:.2f}, tau {statistics.tokens_per_pass:.2f}",
                flush=True,
            )
            values.append((value, case, name))
            told += [value] if len(cells(distribution, SAMPLES)) > 1 else []
    uniform = kolmogorov(told)
    print(f"{len(values)} cases of {SAMPLES} samples: least p {min(values)}, Kolmogorov-Smirnov p {uniform:.4f}")
    assert min(values)[0] > 0.001 / len(values)
    assert uniform > 0.001


def _stale_state(patch: pytest.MonkeyPatch) -> None:
    """The mask of a position is that of the position before, where that leaves a token that the constraint allows."""
    append = Draft.append

    def wrong(self: Draft, *arguments: Any) -> None:
        append(self, *arguments)
        stale = self.masks[-1] & self.masks[-2]
        self.masks[-1] = torch.where((stale != 0).any(-1, keepdim=True), stale, self.masks[-1])

    patch.setattr(Draft, "append", wrong)


def _ends_dropped(patch: pytest.MonkeyPatch) -> None:
    """Drawn tokens that end the text are taken out of the draft again."""
    append = Draft.append

    def wrong(self: Draft, tokens: Any, found: Any, *rest: Any) -> None:
        append(self, tokens, found & ~(self.ends[tokens] & rest[1]), *rest)

    patch.setattr(Draft, "append", wrong)


def _no_residual(patch: pytest.MonkeyPatch) -> None:
    """In place of a rejected token, one is drawn from the target's distribution."""
    patch.setattr(distributions, "residual_distribution", lambda p, tokens, n, *_: p[torch.arange(len(p)), n])


def _late_ends(patch: pytest.MonkeyPatch) -> None:
    """The token behind the accepted ones is that of the position before."""
    verify = processing.Processing.verify_logits

    def wrong(self: Any, logits: Any, masks: Any, prefix: Any, *rest: Any) -> Any:
        accepted, _, highest = verify(self, logits, masks, prefix, *rest)
        target = self.distribution(self.scores(logits, masks, prefix))
        rows, before = torch.arange(len(accepted)), (accepted - 1).clamp(min=0)
        same, right = target[rows, before], target[rows, accepted]
        weights = torch.where(((same * (right > 0)).sum(-1) > 0)[:, None], same * (right > 0), right)
        return accepted, processing.draw(weights, torch.rand(len(accepted), dtype=torch.float64)), highest

    patch.setattr(processing.Processing, "verify_logits", wrong)


@pytest.mark.slow
@pytest.mark.parametrize("mutate", tiers.some([_stale_state, _ends_dropped, _no_residual, _late_ends], least=2))
def test_wrong_rounds_are_caught(mutate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def least() -> float:
        values = []
        torch.manual_seed(0)
        for case in range(3):
            make = PROPOSERS["model"]
            try:
                seen, distribution, _ = sample(case, make, True, Sampling(temperature=1.0), 4000, 3)
            except (RuntimeError, AssertionError):  # a token came out that the constraint refuses
                return 0.0
            values.append(p_value(seen, distribution))
        return min(values)

    assert least() > 1e-4
    mutate(monkeypatch)
    assert least() < 1e-6
