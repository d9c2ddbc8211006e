"""The loop on tiny random models: texts, ends, budgets, streaming, log-probabilities, counts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Generation, Request, Sampling, generate, generate_batch  # noqa: E402
from grammarspec.decoding.proposers import (  # noqa: E402
    DraftModel,
    Eagle,
    EarlyExit,
    Forced,
    HeadProposer,
    Lookup,
    Proposer,
)
from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead  # noqa: E402
from grammarspec.decoding.proposers.head import ResidualHead  # noqa: E402

PROMPT = list(b"a prompt")
VOCABULARY = gs.Vocabulary.bytes()
PATTERNS = [
    r"[a-z]{1,20}",
    r"\d{4}-\d\d-\d\d",
    r"(yes|no|maybe)( (yes|no|maybe)){0,3}",
    r'\{"name": "[A-Zé漢]{1,8}", "age": \d{1,3}\}',
    r".{0,30}",
]
SAMPLINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 1.0, "seed": 1},
    {"temperature": 3.0, "seed": 2, "top_k": 5, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.2},
]


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(tiny_model_directory, dtype=torch.float32)


@pytest.fixture(scope="module")
def draft(model: Any) -> Any:
    """The model with its weights disturbed: it agrees often."""
    from copy import deepcopy

    other = deepcopy(model)
    torch.manual_seed(5)
    for parameter in other.parameters():
        parameter.data += 0.03 * torch.randn_like(parameter)
    return other


PROPOSERS: dict[str, Callable[[Any, Any], list[Proposer]]] = {
    "forced": lambda model, draft: [Forced()],
    "lookup": lambda model, draft: [Lookup()],
    "model": lambda model, draft: [DraftModel(draft)],
    "unmasked model": lambda model, draft: [DraftModel(draft, masked=False)],
    "early exit": lambda model, draft: [EarlyExit(model, 1)],
    "head": lambda model, draft: [HeadProposer(ResidualHead(model, 16))],
    "chain": lambda model, draft: [Forced(), Lookup(), DraftModel(draft)],
    "eagle": lambda model, draft: [Eagle(EagleHead(EagleConfig.like(model, 16)), model)],
}


def run(model: Any, pattern: str, proposers: list[Proposer] | None = None, **options: Any) -> Generation:
    constraint = gs.compile(gs.regex(pattern), VOCABULARY)
    names = ("gamma", "forced", "on_text")
    loop = {name: options.pop(name) for name in names if name in options}
    sampling = Sampling(**({"max_tokens": 200} | options))
    return generate(
        model, PROMPT, constraint.matcher(), VOCABULARY, sampling=sampling, proposers=proposers or [], **loop
    )


def first_difference(a: list[int], b: list[int]) -> int | None:
    return next((i for i, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), None)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROPOSERS)
def test_texts_do_not_depend_on_drafts(model: Any, draft: Any, name: str) -> None:
    """Greedily, and with a seed: batch 1 and ragged batches of different grammars, for several lengths of drafts."""
    proposers = PROPOSERS[name](model, draft)
    requests = []
    for number, pattern in enumerate(PATTERNS):
        constraint = gs.compile(gs.regex(pattern), VOCABULARY)
        for options in SAMPLINGS:
            prompt = PROMPT[: 2 + number] + list(f"{number}".encode())
            sampling = Sampling(max_tokens=60, **options)
            requests.append((prompt, constraint, sampling))
    requests.append((PROMPT, None, Sampling(max_tokens=12)))

    def fresh() -> list[Request]:
        return [
            Request(prompt=prompt, matcher=constraint and constraint.matcher(), sampling=sampling)
            for prompt, constraint, sampling in requests
        ]

    expected = [generate_batch(model, [request], VOCABULARY)[0][0].tokens for request in fresh()]
    for gamma in (1, 5):
        alone = [
            generate_batch(model, [request], VOCABULARY, proposers=proposers, gamma=gamma)[0][0] for request in fresh()
        ]
        together: list[Generation] = []
        for begin in range(0, len(requests), 8):
            part = fresh()[begin : begin + 8]
            together += [text for [text] in generate_batch(model, part, VOCABULARY, proposers=proposers, gamma=gamma)]
        assert [text.tokens for text in alone] == expected
        assert [text.tokens for text in together] == expected


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("temperature", [0, 1])
def test_gamma_may_be_any_number(model: Any, draft: Any, adaptive: bool, temperature: float) -> None:
    """No draft is longer than what is left of its text, and no memory is taken for longer ones."""

    def texts(gamma: int) -> list[list[int]]:
        torch.manual_seed(1)
        requests = [
            Request(prompt=PROMPT, sampling=Sampling(temperature=temperature, max_tokens=most)) for most in (3, 12)
        ]
        found = generate_batch(
            model, requests, VOCABULARY, proposers=PROPOSERS["chain"](model, draft), gamma=gamma, adaptive=adaptive
        )
        for [text], most in zip(found, (3, 12), strict=True):
            assert max(drafted for drafted, _ in text.statistics.rounds) < most
        return [text.tokens for [text] in found]

    assert texts(10**15) == texts(11)


@pytest.mark.combined
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("forced", ["sample", "feed"])
@pytest.mark.parametrize("options", SAMPLINGS)
def test_output_is_in_the_language(model: Any, draft: Any, pattern: str, forced: Any, options: dict[str, Any]) -> None:
    proposers = PROPOSERS["chain"](model, draft)
    runs = []
    for _ in range(2):
        said: list[bytes] = []
        runs.append(run(model, pattern, proposers, forced=forced, on_text=said.append, **options))
        assert b"".join(said).decode() == runs[-1].text
    result = runs[0]
    assert result.tokens == runs[1].tokens
    assert result.finish_reason == "stop"
    assert re.fullmatch(pattern, result.text)
    assert result.tokens[-1] == 256
    assert VOCABULARY.decode(result.tokens).decode() == result.text
    statistics = result.statistics
    assert (statistics.prompt_tokens, statistics.tokens) == (len(PROMPT), len(result.tokens))
    taken = sum(statistics.accepted.values())
    assert taken == sum(length * rounds for length, rounds in enumerate(statistics.accepted_lengths()))
    assert taken + statistics.bonus_tokens + statistics.fed_tokens == statistics.tokens
    assert statistics.target_passes == statistics.rounds.total()
    assert statistics.bonus_tokens <= statistics.target_passes


@pytest.mark.parametrize("pattern", PATTERNS)
def test_greedy_equals_a_loop_without_cache(model: Any, pattern: str) -> None:
    constraint = gs.compile(gs.regex(pattern), VOCABULARY)
    result = run(model, pattern)
    tokens: list[int] = []
    while not tokens or tokens[-1] != 256:
        matcher = constraint.matcher()
        assert matcher.accept_tokens(tokens) == len(tokens)
        rows = gs.allocate_bitmask(1, VOCABULARY.size)
        matcher.fill_bitmask(rows)
        with torch.inference_mode():
            logits = model(torch.tensor([PROMPT + tokens]), use_cache=False).logits[:, -1]
            gs.apply_bitmask(logits, rows)
        tokens.append(int(logits.argmax()))
    assert result.tokens == tokens


def test_unconstrained_equals_generate_of_transformers(model: Any, draft: Any) -> None:
    expected = model.generate(torch.tensor([PROMPT]), max_new_tokens=30, do_sample=False)[0, len(PROMPT) :].tolist()
    for proposers in ([], [Lookup(), DraftModel(draft)]):
        result = generate(model, PROMPT, None, VOCABULARY, sampling=Sampling(max_tokens=30), proposers=proposers)
        assert result.tokens == expected


def test_forced_text_is_fed(model: Any) -> None:
    result = run(model, r"(alpha beta|gamma delta) [0-9]", forced="feed")
    # Over single bytes only the first letter, the digit and the end are asked for.
    assert result.statistics.target_passes == 3
    assert result.statistics.fed_tokens == len(result.tokens) - 3
    result = run(model, "one text", forced="feed")
    assert (result.text, result.statistics.fed_tokens, result.statistics.target_passes) == ("one text", 8, 1)


def test_forced_text_is_drafted(model: Any) -> None:
    result = run(model, "one text", [Forced()], gamma=20)
    assert (result.text, result.statistics.target_passes) == ("one text", 1)
    assert result.statistics.accepted == {"forced": 9}
    assert result.statistics.forced_share == 1


@pytest.mark.parametrize("forced", ["sample", "feed"])
@pytest.mark.parametrize("budget", [1, 2, 5, 12])
def test_budget(model: Any, draft: Any, budget: int, forced: Any) -> None:
    for proposers in ([], [Forced(), DraftModel(draft)]):
        result = run(model, "é{20}", proposers, max_tokens=budget, forced=forced)
        assert result.finish_reason == "length"
        assert len(result.tokens) == budget
        assert result.text == "é" * (budget // 2) + "\ufffd" * (budget % 2)


def test_context(model: Any, draft: Any) -> None:
    matcher = gs.compile(gs.regex(r"[ab]{300}"), VOCABULARY).matcher()
    for proposers in ([], [Lookup(), DraftModel(draft)]):
        matcher.reset()
        result = generate(model, PROMPT, matcher, VOCABULARY, proposers=proposers)
        assert result.finish_reason == "length"
        # The whole context is read, and one more token is known from what was read.
        assert len(PROMPT) + len(result.tokens) == 256 + 1
        matcher.reset()
        tokens = generate(model, PROMPT * 31, matcher, VOCABULARY, proposers=proposers).tokens
        assert len(tokens) == 256 + 1 - 31 * len(PROMPT)
    with pytest.raises(ValueError, match="256 tokens, the model's context only 256"):
        generate(model, PROMPT * 32, matcher, VOCABULARY)


def test_refuses(model: Any) -> None:
    wide = gs.Vocabulary.from_tokens([b"a"], [256], size=265)
    with pytest.raises(ValueError, match="265 tokens, the model 264"):
        generate(model, PROMPT, gs.compile(gs.choice(["a"]), wide).matcher(), wide)
    with pytest.raises(ValueError, match="at least one token"):
        generate(model, [], gs.compile(gs.choice(["a"]), VOCABULARY).matcher(), VOCABULARY)
    with pytest.raises(ValueError, match="gamma must be at least 0, not -1"):
        run(model, "a", gamma=-1)
    with pytest.raises(ValueError, match="n must be at least 1"):
        Request(prompt=PROMPT, n=0)
    with pytest.raises(ValueError, match="forced must be 'sample' or 'feed', not 'yes'"):
        run(model, "a", forced="yes")
    for token in (-1, 264):
        with pytest.raises(ValueError, match=f"the prompt has the token {token}, the model only 264"):
            generate(model, [*PROMPT, token], None, VOCABULARY)
    matcher = gs.compile(gs.choice(["a"]), VOCABULARY).matcher()
    with pytest.raises(ValueError, match="two requests have the same matcher"):
        generate_batch(model, [Request(prompt=PROMPT, matcher=matcher)] * 2, VOCABULARY)
    generate(model, PROMPT, matcher, VOCABULARY)
    with pytest.raises(ValueError, match="at the end of a text"):
        generate(model, PROMPT, matcher, VOCABULARY)
    assert generate_batch(model, [], VOCABULARY) == []


def test_continues_where_the_matcher_stands(model: Any) -> None:
    matcher = gs.compile(gs.choice(["abc", "abd"]), VOCABULARY).matcher()
    assert matcher.accept_tokens(b"ab") == 2
    assert generate(model, PROMPT, matcher, VOCABULARY, proposers=[Forced()]).text in {"c", "d"}
    assert matcher.is_terminated


def test_several_samples(model: Any, draft: Any) -> None:
    constraint = gs.compile(gs.regex(r"[a-z]{4,12}"), VOCABULARY)
    matcher = constraint.matcher()
    sampling = Sampling(temperature=1.0, seed=9)
    requests = [
        Request(prompt=PROMPT, matcher=matcher, sampling=sampling, n=5),
        Request(prompt=PROMPT[:1], matcher=matcher.fork(), sampling=sampling, n=2),
        Request(prompt=PROMPT, matcher=matcher.fork(), sampling=sampling),
    ]
    plain = generate_batch(model, requests[:2], VOCABULARY)
    results = generate_batch(model, requests, VOCABULARY, proposers=[Lookup(), DraftModel(draft)])
    assert [len(texts) for texts in results] == [5, 2, 1]
    assert [[text.tokens for text in texts] for texts in plain] == [
        [text.tokens for text in texts] for texts in results[:2]
    ]
    assert len({text.text for text in results[0]}) == 5
    # One sample is the first of several, and the matcher given for several stays where it was.
    assert results[2][0].tokens == results[0][0].tokens
    assert matcher.state == constraint.start


def test_stop_texts(model: Any, draft: Any) -> None:
    whole = run(model, r"[a-z]{20}").text
    for stop in ([whole[7:9]], [whole[3:4]], ["never", whole[5:12]], [whole[-1:]], ["0"]):
        found = [(at, text) for text in stop if (at := whole.find(text)) >= 0]
        for proposers in ([], [Lookup(), DraftModel(draft)]):
            said: list[bytes] = []
            result = run(model, r"[a-z]{20}", proposers, stop=stop, on_text=said.append)
            expected = whole[: min(found)[0]] if found else whole
            assert (result.text, result.stop) == (expected, min(found)[1] if found else None)
            assert b"".join(said).decode() == expected
            assert result.finish_reason == "stop"
            tokens = VOCABULARY.decode(result.tokens).decode()
            assert tokens == (expected + result.stop if result.stop else whole)


def test_logprobs(model: Any, draft: Any) -> None:
    pattern = r"\d{4}-[a-f]{2}"
    for proposers in ([], [Forced(), DraftModel(draft)]):
        for forced in ("sample", "feed"):
            result = run(
                model, pattern, proposers, forced=forced, logprobs=True, top_logprobs=3, repetition_penalty=1.3
            )
            assert result.logprobs is not None and len(result.logprobs) == len(result.tokens)
            constraint = gs.compile(gs.regex(pattern), VOCABULARY)
            matcher = constraint.matcher()
            for place, (token, given) in enumerate(zip(result.tokens, result.logprobs, strict=True)):
                text = PROMPT + result.tokens[:place]
                with torch.no_grad():
                    logits = model(torch.tensor([text]), use_cache=False).logits[0, -1]
                raw = float(logits.log_softmax(-1)[token])
                best = logits.log_softmax(-1)[: VOCABULARY.size].topk(3)
                for seen in set(text):
                    logits[seen] = logits[seen] / 1.3 if logits[seen] > 0 else logits[seen] * 1.3
                rows = gs.allocate_bitmask(1, VOCABULARY.size)
                matcher.fill_bitmask(rows)
                gs.apply_bitmask(logits, rows[0])
                if math.isnan(given.raw):
                    assert forced == "feed" and math.isnan(given.masked)
                else:
                    assert given.raw == pytest.approx(raw, abs=1e-4)
                    assert [token for token, _ in given.top] == best.indices.tolist()
                    assert [value for _, value in given.top] == pytest.approx(best.values.tolist(), abs=1e-4)
                    assert given.masked == pytest.approx(float(logits.log_softmax(-1)[token]), abs=1e-4)
                matcher.accept_token(token)
            if forced == "sample":
                assert not any(math.isnan(given.raw) for given in result.logprobs)
    assert run(model, pattern).logprobs is None


def test_unseeded_draws_follow_the_global_generator(model: Any, draft: Any) -> None:
    def draw() -> list[int]:
        return run(model, r"[a-z]{10,20}", [DraftModel(draft)], temperature=1.5).tokens

    torch.manual_seed(3)
    first, second = draw(), draw()
    torch.manual_seed(3)
    assert [draw(), draw()] == [first, second]
    assert first != second


@pytest.mark.slow
def test_proposers_serve_one_batch_after_another(model: Any, draft: Any) -> None:
    proposers = PROPOSERS["chain"](model, draft)
    for pattern in PATTERNS:
        expected = run(model, pattern).tokens
        assert run(model, pattern, proposers).tokens == expected


def test_statistics_of_passes_and_times(model: Any, draft: Any) -> None:
    result = run(model, r"[a-z]{20}", [DraftModel(draft)], gamma=4)
    statistics = result.statistics
    assert statistics.tokens_per_pass > 1.2
    assert statistics.tokens_per_pass == statistics.tokens / statistics.target_passes
    # Each round but the last asks the draft up to four times.
    assert statistics.draft_passes == sum(drafted * rounds for (drafted, _), rounds in statistics.rounds.items())
    assert set(statistics.phase_seconds) == {"draft", "mask", "target", "verify", "commit"}
    total = statistics.prefill_seconds + statistics.decode_seconds
    assert 0 < sum(statistics.phase_seconds.values()) <= total
    assert sum(tokens for _, tokens in statistics.latencies) < statistics.tokens
    assert statistics.refused == 0
    assert run(model, r"\d{20}", [DraftModel(draft, masked=False)]).statistics.refused > 0


class Failing:
    """A matcher that hits a limit some way into the text."""

    def __init__(self, matcher: gs.Matcher, method: str) -> None:
        self._matcher, self._method, self._calls = matcher, method, 0

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._calls += 1
            if self._calls > 12:
                raise gs.LimitExceeded("more than 7 states")
        return getattr(self._matcher, name)


@pytest.mark.combined
@pytest.mark.parametrize("name", ["none", "forced", "lookup", "model", "chain"])
@pytest.mark.parametrize(
    "method", ["accept_token", "fill_bitmask", "fill_draft_bitmasks", "validate_tokens", "forced_bytes"]
)
def test_a_failing_constraint_harms_no_other(model: Any, draft: Any, name: str, method: str) -> None:
    proposers = PROPOSERS[name](model, draft) if name != "none" else []
    pattern = "([a-z]{10} hello ){2}"
    constraint = gs.compile(gs.regex(pattern), VOCABULARY)
    expected = run(model, pattern)

    def start(matcher: Any) -> Request:
        return Request(prompt=PROMPT, matcher=matcher)

    failing = Failing(constraint.matcher(), method)
    requests = [start(constraint.matcher()), start(failing), start(constraint.matcher())]
    [[first], [failed], [third]] = generate_batch(model, requests, VOCABULARY, proposers=proposers)
    assert first.tokens == third.tokens == expected.tokens
    if failing._calls <= 12:
        assert failed.tokens == expected.tokens and failed.error is None
        return
    assert failed.finish_reason == "error" and isinstance(failed.error, gs.LimitExceeded)
    assert len(failed.tokens) < len(expected.tokens) and expected.text.startswith(failed.text)
    with pytest.raises(gs.LimitExceeded, match="more than 7 states"):
        generate(model, PROMPT, Failing(constraint.matcher(), method), VOCABULARY, proposers=proposers)


def test_vocabularies_are_told_apart(model: Any) -> None:
    constraint = gs.compile(gs.choice(["ab"]), gs.Vocabulary.bytes())
    # As good as the same: built anew of the same tokens.
    assert generate(model, PROMPT, constraint.matcher(), gs.Vocabulary.bytes()).text == "ab"
    other = gs.Vocabulary.from_tokens([bytes([255 - value]) for value in range(256)], [256])
    with pytest.raises(ValueError, match="compiled for another vocabulary"):
        generate(model, PROMPT, constraint.matcher(), other)
