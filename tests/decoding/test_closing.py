"""``on_limit="close"``: whole texts within any budget that allows one."""

from __future__ import annotations

import math
import random

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Generation, Request, Sampling, generate, generate_batch  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, Forced, Lookup, Proposer  # noqa: E402
from tests import tiers  # noqa: E402
from tests.decoding.test_lockstep import GRAMMARS, VOCABULARY, WIDTH, Wild  # noqa: E402
from tests.oracles.noise_model import NoiseModel  # noqa: E402
from tests.oracles.tables import PROMPT, TableModel, tables  # noqa: E402
from tests.oracles.tables import VOCABULARY as SMALL  # noqa: E402

BUDGETS = tiers.draws(300)
CLOSED = [
    *(grammar for grammar in GRAMMARS if grammar is not None),
    gs.regex(r"a{30,40}|b"),
    gs.regex(r"(\[(ab)*\]){2,}"),
    gs.json_schema({"properties": {"a": {"type": "string"}, "b": {"type": "array"}}, "required": ["a", "b"]}),
    gs.json_schema({"enum": ["ab", 12, {"a": [1, 2, {"b": "abcabcabc"}]}]}),
]


@pytest.mark.property
def test_texts_are_whole() -> None:
    choose = random.Random(tiers.seed(5))
    constraints = [gs.compile(grammar, VOCABULARY) for grammar in CLOSED]
    model = NoiseModel(WIDTH)
    torch.manual_seed(tiers.seed(3))
    refused = closed = stopped = 0
    for case in range(BUDGETS):
        constraint = choose.choice(constraints)
        sampling = Sampling(
            temperature=choose.choice([0, 1.0]),
            seed=choose.choice([None, case]),
            max_tokens=choose.randint(1, 40),
            on_limit="close",
            top_k=choose.choice([None, 2]),
        )
        proposers: list[Proposer] = choose.choice(
            [[], [Forced()], [Wild(case)], [Forced(), Lookup(), DraftModel(model)]]
        )
        forced = choose.choice(["sample", "feed"])
        least = constraint.tokens_to_end(constraint.start) + 1
        matcher = constraint.matcher()
        if least > sampling.max_tokens:
            with pytest.raises(ValueError, match="no text can be whole"):
                generate(model, [1], matcher, VOCABULARY, sampling=sampling, proposers=proposers)
            refused += 1
            continue
        result = generate(
            model,
            [1],
            matcher,
            VOCABULARY,
            sampling=sampling,
            proposers=proposers,
            gamma=choose.randint(0, 6),
            forced=forced,
        )
        assert len(result.tokens) <= sampling.max_tokens
        assert result.finish_reason in ("stop", "closed")
        replay = constraint.matcher()
        assert replay.accept_tokens(result.tokens) == len(result.tokens) and replay.is_terminated
        statistics = result.statistics
        parts = sum(statistics.accepted.values()) + statistics.bonus_tokens + statistics.fed_tokens
        assert parts + statistics.closing_tokens == statistics.tokens == len(result.tokens)
        closed += result.finish_reason == "closed"
        stopped += result.finish_reason == "stop"
    print(f"{BUDGETS} pairs: {refused} refused before starting, {stopped} ended by themselves, {closed} were steered")
    assert min(refused, stopped, closed) > BUDGETS / 50


@pytest.mark.slow
def test_what_a_budget_leaves_room_for_keeps_its_proportions() -> None:
    """Tokens that leave room for an ending are as likely as in the target's distribution, drafted or not."""
    constraint = gs.compile(gs.regex("[abc]{1,4}"), SMALL)
    layers = tables(11, 1.0)
    target, draft = TableModel(layers[:2]), TableModel(layers[2:])
    both = layers[0] + layers[1]
    # With a budget of two tokens any one token may come, and then the end.
    first = {
        token: math.exp(value)
        for token, value in enumerate(both[0].tolist())
        if constraint.step(constraint.start, token)
    }
    first = {token: value for token, value in first.items() if token != 7}
    total = sum(first.values())
    n = 3_000
    for proposers in ([], [DraftModel(draft)], [DraftModel(draft, masked=False)]):
        sampling = Sampling(temperature=1.0, max_tokens=2, on_limit="close")
        torch.manual_seed(4)
        [texts] = generate_batch(
            target,
            [Request(prompt=PROMPT, matcher=constraint.matcher(), sampling=sampling, n=n)],
            SMALL,
            proposers=proposers,
        )
        assert all(len(text.tokens) == 2 for text in texts)
        for token, weight in first.items():
            share = sum(text.tokens[0] == token for text in texts) / n
            assert share == pytest.approx(weight / total, abs=4.5 * math.sqrt(0.25 / n))


@pytest.mark.slow
def test_greedy_and_seeded_texts_do_not_depend_on_drafts() -> None:
    constraint = gs.compile(gs.regex("([abc]{2,3}cc)*"), SMALL)
    layers = tables(12, 2.0)
    target, draft = TableModel(layers[:2]), TableModel(layers[2:])
    for options in ({}, {"temperature": 1.0, "seed": 7}):
        for budget in tiers.some(range(1, 9), least=3):
            sampling = Sampling(max_tokens=budget, on_limit="close", **options)
            request = Request(prompt=PROMPT, matcher=constraint.matcher(), sampling=sampling, n=20)
            expected = None
            for proposers in ([], [DraftModel(draft)], [Forced(), DraftModel(draft, masked=False)]):
                for gamma in (1, 4):
                    [texts] = generate_batch(target, [request], SMALL, proposers=proposers, gamma=gamma)
                    tokens = [text.tokens for text in texts]
                    expected = expected or tokens
                    assert tokens == expected


def test_a_stop_text_in_an_ending_ends_it() -> None:
    constraint = gs.compile(gs.regex(r"[^;]{0,60};the end, really"), VOCABULARY)
    model = NoiseModel(WIDTH)

    def said(*stop: str) -> Generation:
        torch.manual_seed(6)  # the model's noise
        sampling = Sampling(max_tokens=30, on_limit="close", stop=stop, logprobs=True)
        pieces: list[bytes] = []
        result = generate(model, [1], constraint.matcher(), VOCABULARY, sampling=sampling, on_text=pieces.append)
        statistics = result.statistics
        assert b"".join(pieces).decode(errors="replace") == result.text
        assert statistics.closing_tokens + statistics.bonus_tokens == statistics.tokens == len(result.tokens)
        assert result.logprobs is not None and len(result.logprobs) == len(result.tokens)
        return result

    whole = said()
    assert whole.finish_reason == "closed" and whole.text.endswith(";the end, really")
    for stop in (";", "the e", "end, ", "really"):
        result = said(stop)
        assert (result.text, result.stop, result.finish_reason) == (whole.text.partition(stop)[0], stop, "stop")
        assert whole.tokens[: len(result.tokens)] == result.tokens


def test_needs_a_constraint() -> None:
    with pytest.raises(ValueError, match="needs a constraint"):
        Request(prompt=[1], sampling=Sampling(on_limit="close"))
