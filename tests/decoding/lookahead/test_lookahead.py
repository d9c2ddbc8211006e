"""Decoding with lookaheads: what it is equal to, that masks hold, its states, and what it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Generation, Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.lookahead import Lookahead, generate_with_lookahead  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, EarlyExit, HeadProposer, Lookup  # noqa: E402
from grammarspec.decoding.proposers.head import ResidualHead  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.small_llama import disturbed, small_llama  # noqa: E402

BYTES = gs.Vocabulary.bytes()
END = 256
GRAMMAR = gs.regex("[a-z]{1,6}( [a-z]{1,6}){0,5}[.!]")
CONSTRAINT = gs.compile(GRAMMAR, BYTES)
PROMPTS = [list(text.encode()) for text in ("Say.", "a", "Write a line about", "xyz xyz", "1", "Hello!", "-" * 19, "?")]
TOKENS = 12


@cache
def models() -> tuple[Any, Any]:
    target = small_llama(3)
    return target, disturbed(target, 4)


def vowels(text: str) -> float:
    """A wish that no grammar here states."""
    return sum(text.count(vowel) for vowel in "aeiou") / max(len(text), 1)


def requests(prompts: Sequence[list[int]] = PROMPTS[:3], *, masked: bool = True, **options: Any) -> list[Request]:
    sampling = Sampling(**{"max_tokens": TOKENS, **options})
    return [
        Request(prompt=prompt, matcher=CONSTRAINT.matcher() if masked else None, sampling=sampling)
        for prompt in prompts
    ]


def generated(
    what: Sequence[Request], wish: Any = vowels, proposers: Sequence[Any] = (), **options: Any
) -> list[Generation]:
    lookahead = Lookahead(**options)
    return [
        text
        for [text] in generate_with_lookahead(
            models()[0], what, BYTES, reward=wish, lookahead=lookahead, proposers=proposers
        )
    ]


def tokens(texts: Sequence[Generation]) -> list[list[int]]:
    return [text.tokens for text in texts]


def states(texts: Sequence[Generation]) -> Counter[str]:
    return sum((text.statistics.states for text in texts), Counter())


def plain(what: Sequence[Request], proposers: Sequence[Any] = (), gamma: int = 4) -> list[Generation]:
    found = generate_batch(models()[0], what, BYTES, proposers=proposers, gamma=gamma, adaptive=False)
    return [text for [text] in found]


# ---------------------------------------------------------------------- what it is equal to
@pytest.mark.parametrize("masked", [True, False])
def test_without_thresholds_it_is_the_speculative_loop(inference: None, masked: bool) -> None:
    target, small = models()
    drafts: list[Callable[[], Any]] = [
        lambda: DraftModel(small),
        lambda: EarlyExit(target, 1),
        Lookup,
        lambda: HeadProposer(ResidualHead(target, 8)),
    ]
    for make in drafts:
        expected = plain(requests(masked=masked), [make()])
        found = generated(requests(masked=masked), lambda text: 1.0, d=4, acceptance=0, reward=0, draft=[make()])
        assert tokens(found) == tokens(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.reward == 1.0
            assert one.statistics.rounds == other.statistics.rounds
            assert one.statistics.states == {"accepted": one.statistics.rounds.total()}


@pytest.mark.parametrize("options", [{"method": "greedy"}, {"d": 0, "k": 1}, {"method": "cdlh", "d": 0, "k": 1}])
def test_without_lookahead_and_choice_it_is_greedy(inference: None, options: dict[str, Any]) -> None:
    found = generated(requests(), **options)
    assert tokens(found) == tokens(plain(requests()))
    assert [text.reward for text in found] == [vowels(text.text) for text in found]


def test_one_candidate_is_greedy_however_far_it_looks(inference: None) -> None:
    expected = tokens(plain(requests()))
    assert tokens(generated(requests(), method="cdlh", d=3, k=1)) == expected
    assert tokens(generated(requests(), d=3, k=1, acceptance=1, draft=models()[1])) == expected


def test_sampling_without_thresholds_is_the_speculative_loop(inference: None) -> None:
    what = {"temperature": 1.0, "seed": 7}
    expected = plain(requests(**what), [DraftModel(models()[1])])
    found = generated(requests(**what), d=4, acceptance=0, reward=0, verify="sampling", draft=models()[1])
    assert tokens(found) == tokens(expected)


def test_candidates_are_compared_as_said(inference: None) -> None:
    """The first token of CDLH, computed by hand: one forward pass after another, without caches."""
    target, k, d, weight = models()[0], 4, 3, 10.0

    def scores(text: list[int], matcher: Any) -> Any:
        logits = target(torch.tensor([text]), use_cache=False).logits[0, -1]
        rows = gs.allocate_bitmask(1, BYTES.size)
        matcher.fill_bitmask(rows)
        gs.apply_bitmask(logits[None], rows)
        return logits

    for prompt in PROMPTS[:4]:
        first = scores(prompt, CONSTRAINT.matcher()).log_softmax(-1)
        best = []
        for token in first.topk(k).indices.tolist():
            matcher, text = CONSTRAINT.matcher(), [token]
            assert matcher.accept_token(token)
            while len(text) <= d and text[-1] != END:
                text.append(int(scores(prompt + text, matcher).argmax()))
                assert matcher.accept_token(text[-1])
            written = bytes(each for each in text if each < 256).decode()
            best.append((float(first[token]) + weight * vowels(written), token))
        [found] = generated(requests([prompt]), method="cdlh", k=k, d=d, weight=weight)
        assert found.tokens[0] == max(best)[1]


def test_a_reward_is_followed(inference: None) -> None:
    greedy = sum(text.reward or 0 for text in generated(requests(PROMPTS), method="greedy"))
    for options in ({"method": "cdlh"}, {"reward": 0.9, "draft": models()[1]}):
        found = sum(text.reward or 0 for text in generated(requests(PROMPTS), d=3, **options))
        assert found > greedy + 1


# ---------------------------------------------------------------------- grammars and batches
WAYS: list[dict[str, Any]] = [
    {"draft": "small"},
    {"draft": 1, "acceptance": 0.9},
    {"draft": "small", "rollouts": "target", "reward": 0.9},
    {"method": "cdlh", "k": 3},
    {"method": "cdlh", "k": 3, "rollouts": "draft", "draft": "small"},
    {"method": "greedy"},
]


def way(options: dict[str, Any]) -> dict[str, Any]:
    depth = {} if options.get("method") == "greedy" else {"d": 3}
    return {**depth, **options, **({"draft": models()[1]} if options.get("draft") == "small" else {})}


@pytest.mark.parametrize("options", tiers.some(WAYS, least=2), ids=str)
def test_a_batch_gives_the_texts_that_each_gives_alone_and_masks_hold(inference: None, options: dict[str, Any]) -> None:
    together = generated(requests(PROMPTS, on_limit="close", max_tokens=20), **way(options))
    assert all(text.whole and GRAMMAR.matches(text.text) for text in together)
    alone = [generated([each], **way(options))[0] for each in requests(PROMPTS, on_limit="close", max_tokens=20)]
    assert tokens(together) == tokens(alone)
    assert [text.statistics.states for text in together] == [text.statistics.states for text in alone]


def test_sampled_texts_are_texts_of_the_grammar(inference: None) -> None:
    torch.manual_seed(1)
    what = requests(PROMPTS, temperature=1.2, top_p=0.9, on_limit="close", max_tokens=20)
    found = generated(what, d=3, verify="sampling", draft=models()[1], acceptance=0.6, reward=0.3)
    assert all(GRAMMAR.matches(text.text) for text in found)


def test_penalties_biases_and_stop_texts_count(inference: None) -> None:
    options = {"repetition_penalty": 1.5, "logit_bias": {ord("e"): -50.0}, "stop": ["i", "u"]}
    found = generated(requests(PROMPTS, **options), d=3, k=3, reward=2.0, draft=models()[1])
    assert not any(letter in text.text for letter in "eiu" for text in found)
    assert any(text.stop is not None for text in found)
    alone = [generated([each], d=3, k=3, reward=2.0, draft=models()[1])[0] for each in requests(PROMPTS, **options)]
    assert tokens(found) == tokens(alone)


def test_rewards_of_each_request(inference: None) -> None:
    rewards = [lambda text: float("q" in text), lambda text: float("z" in text), lambda text: float("k" in text)]
    found = generated(requests(PROMPTS[:3]), rewards, method="cdlh", d=2, k=26)
    assert [letter in text.text for letter, text in zip("qzk", found, strict=True)] == [True] * 3
    assert [text.reward for text in found] == [1.0] * 3


def test_several_texts_of_a_request(inference: None) -> None:
    sampling = Sampling(max_tokens=8, temperature=1.0, seed=3)
    request = Request(prompt=PROMPTS[0], matcher=CONSTRAINT.matcher(), sampling=sampling, n=3)
    lookahead = Lookahead(d=3, verify="sampling", draft=models()[1], reward=0.2, acceptance=0.3)
    [texts] = generate_with_lookahead(models()[0], [request], BYTES, reward=vowels, lookahead=lookahead)
    assert len({tuple(text.tokens) for text in texts}) > 1
    assert all(text.reward == vowels(text.text) for text in texts)


# ---------------------------------------------------------------------- states
def test_each_state_is_reached(inference: None) -> None:
    target, other = models()[0], small_llama(99)  # which agrees with the target hardly ever
    good = {"draft": DraftModel(target), "d": 3}
    bad = {"draft": DraftModel(other), "d": 3, "acceptance": 0.9}

    def one(value: float, **options: Any) -> Counter[str]:
        return states(generated(requests(masked=False), lambda text: value, **options))

    assert set(one(1.0, **good)) == {"accepted"}
    assert set(one(0.0, **good)) == {"low reward"}
    assert "low acceptance" in one(1.0, **bad)
    assert "low reward" not in one(1.0, **bad)
    assert "low acceptance and reward" in one(0.0, **bad)
    assert "accepted" not in one(0.0, **bad)


def test_what_states_cost(inference: None) -> None:
    """Passes of the target: one for each round, and d for each that looks ahead by the target."""
    good = DraftModel(models()[0])

    def cost(**options: Any) -> Any:
        never_ends = requests(PROMPTS[:1], masked=False, logit_bias={END: -100.0})
        return generated(never_ends, lambda text: 0.0, d=3, k=2, **options)[0].statistics

    looks = cost(draft=good, rollouts="target")
    rounds = looks.states.total()
    assert rounds == TOKENS
    # Near the end of the budget, continuations are shorter: 3, 3, ..., 2, 1, 0.
    assert looks.target_passes == rounds + 3 * (rounds - 3) + 2 + 1
    drafts = cost(draft=good)
    assert drafts.target_passes == rounds
    assert drafts.draft_passes > looks.draft_passes


def test_the_acceptance_score_of_a_draft_that_ends_early(inference: None) -> None:
    """A draft that ends with the text has fewer than d tokens, all of which are accepted."""
    constraint = gs.compile(gs.regex("ab"), BYTES)
    request = Request(prompt=[1, 2], matcher=constraint.matcher())
    [found] = generated([request], lambda text: 1.0, d=6, acceptance=1.0, draft=models()[1])
    assert (found.text, found.statistics.states) == ("ab", {"accepted": 1})


# ---------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "best"}, ValueError, "method must be"),
        ({"d": -1}, ValueError, "d must be at least 0"),
        ({"d": 2.5}, TypeError, "d must be a whole number"),
        ({"d": True}, TypeError, "d must be a whole number"),
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"weight": float("inf")}, ValueError, "weight must be"),
        ({"weight": "10"}, TypeError, "weight must be a number"),
        ({"acceptance": 1.5}, ValueError, "acceptance must be"),
        ({"reward": float("nan")}, ValueError, "the threshold, must be finite"),
        ({"verify": "soft"}, ValueError, "verify must be"),
        ({"rollouts": "both"}, ValueError, "rollouts must be"),
        ({"draft": "smollm2"}, TypeError, "a model that is loaded"),
        ({"method": "cdlh", "verify": "hard"}, ValueError, "verify means nothing"),
        ({"method": "cdlh", "acceptance": 0.5}, ValueError, "acceptance means nothing"),
        ({"method": "cdlh", "draft": 1}, ValueError, "rollouts='draft' only"),
        ({"method": "greedy", "d": 3}, ValueError, "d means nothing"),
    ],
)
def test_lookaheads_that_make_no_sense(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Lookahead(**options)


@pytest.mark.parametrize(
    ("options", "sampling", "message"),
    [
        ({"draft": 1, "verify": "sampling"}, {}, "needs a temperature above 0"),
        ({"draft": 1}, {"temperature": 1.0}, "verify='sampling' draws tokens"),
        ({"method": "cdlh"}, {"temperature": 1.0}, "temperature=1.0 would change nothing"),
        ({"draft": 1}, {"logprobs": True}, "logprobs"),
        ({}, {}, "there is no draft"),
        ({"method": "cdlh", "rollouts": "draft"}, {}, "there is no draft"),
        ({"draft": Lookup(), "rollouts": "draft"}, {}, "needs a draft that is a model"),
        ({"draft": 2}, {}, "layers must be from 1 to 1"),
    ],
)
def test_refusals(options: dict[str, Any], sampling: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generated(requests(**sampling), **options)


def test_wrong_rewards() -> None:
    for reward, error, message in (
        (3, TypeError, "is a function of a text"),
        (int, TypeError, "is a function of a text"),
        ("text", TypeError, "is a function of a text"),
        ([vowels], ValueError, "1 rewards are given for 3"),
        (lambda text: float("nan"), ValueError, "not finite"),
        (lambda text: "much", TypeError, "no number"),
        (lambda text: None, TypeError, "no number"),
    ):
        with pytest.raises(error, match=message):
            generated(requests(), reward, method="cdlh", d=1, k=2)
    with pytest.raises(TypeError, match="must be a Lookahead"):
        generate_with_lookahead(models()[0], requests(), BYTES, reward=vowels, lookahead=5)  # type: ignore[arg-type]
    assert generate_with_lookahead(models()[0], [], BYTES, reward=vowels, lookahead=Lookahead(d=0)) == []


def test_broken_logits_and_limits_end_one_text() -> None:
    class Broken:
        """A target whose logits are NaN behind a certain token."""

        width, context_length, device = 264, None, torch.device("cpu")

        def logits(self, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> list[Any]:
            found = []
            for text, count in zip(texts, counts, strict=True):
                row = torch.arange(264.0).repeat(count, 1)
                found.append(row * float("nan") if text[0] == 1 else row)
            return found

    what = [Request(prompt=[first, 2], sampling=Sampling(max_tokens=3)) for first in (1, 5)]
    options = Lookahead(method="cdlh", d=2, k=2)
    [[broken], [whole]] = generate_with_lookahead(Broken(), what, BYTES, reward=vowels, lookahead=options)
    assert isinstance(broken.error, gs.InvalidLogits)
    assert whole.error is None
    assert len(whole.tokens) > 0
