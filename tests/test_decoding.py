"""The law of the next token against a plain-Python one, and the loop on a tiny random model."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.decoding import Sampling, Statistics, generate
from grammarspec.decoding.sampling import draw, law

torch = pytest.importorskip("torch")


def naive_law(logits: list[float], allowed: set[int], history: list[int], sampling: Sampling) -> list[float]:
    """The documented order of operations on one row, token by token."""
    scores = dict(enumerate(logits))
    for token in set(history):
        penalty = sampling.repetition_penalty
        scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
    ranked = sorted((token for token in scores if token in allowed), key=lambda token: (-scores[token], token))
    if sampling.temperature == 0:
        return [float(token == ranked[0]) for token in scores]
    best = scores[ranked[0]]
    weights = {token: math.exp((scores[token] - best) / sampling.temperature) for token in ranked[: sampling.top_k]}
    if sampling.top_p is not None:
        kept, reached, total = {}, 0.0, sum(weights.values())
        for token, weight in weights.items():
            if reached / total < sampling.top_p:
                kept[token] = weight
            reached += weight
        weights = kept
    if sampling.min_p is not None:
        weights = {token: weight for token, weight in weights.items() if weight >= sampling.min_p}
    total = sum(weights.values())
    return [weights.get(token, 0.0) / total for token in scores]


def pack(allowed: set[int], words: int) -> np.ndarray:
    row = np.zeros(words, dtype=np.uint32)
    for token in allowed:
        row[token // 32] |= np.uint32(1 << token % 32)
    return row.view(np.int32)


@st.composite
def samplings(draw: st.DrawFn) -> Sampling:
    return Sampling(
        temperature=draw(st.sampled_from([0, 0.1, 0.7, 1.0, 3.0])),
        top_k=draw(st.none() | st.integers(1, 50)),
        top_p=draw(st.none() | st.sampled_from([0.0103, 0.307, 0.503, 0.907, 1.0])),
        min_p=draw(st.none() | st.sampled_from([0, 0.0107, 0.203, 0.507])),
        repetition_penalty=draw(st.sampled_from([1.0, 1.3, 0.5])),
    )


@given(data=st.data(), sampling=samplings(), dtype=st.sampled_from([torch.float32, torch.bfloat16]))
def test_law_equals_naive(data: st.DataObject, sampling: Sampling, dtype: Any) -> None:
    width, batch = 40, data.draw(st.integers(1, 3))
    allowed = [data.draw(st.sets(st.integers(0, width - 1), min_size=1)) for _ in range(batch)]
    history = [data.draw(st.lists(st.integers(0, width - 1), max_size=8)) for _ in range(batch)]
    # Of 12 levels, so that ties occur and no sum comes close to a threshold.
    levels = st.lists(st.integers(-6, 6), min_size=width, max_size=width)
    logits = torch.tensor([data.draw(levels) for _ in range(batch)], dtype=dtype) / 2
    before = logits.clone()
    result = law(logits, np.stack([pack(tokens, 2) for tokens in allowed]), history, sampling)
    assert torch.equal(logits, before)
    assert result.dtype == torch.float32
    for row in range(batch):
        expected = naive_law(logits[row].tolist(), allowed[row], history[row], sampling)
        np.testing.assert_allclose(result[row].tolist(), expected, atol=2e-6)
    chosen = draw(result, sampling, torch.Generator().manual_seed(0)).tolist()
    assert all(result[row, token] > 0 for row, token in enumerate(chosen))


def test_law_of_extreme_logits() -> None:
    logits = torch.tensor([[3e38, -3e38, float("-inf"), 0.0]])
    for temperature in (0.0, 1e-6, 1.0, 1e30):
        result = law(logits, pack({1, 2, 3}, 1)[None], [[]], Sampling(temperature=temperature))
        assert result[0, 0] == 0
        assert result.sum() == pytest.approx(1)
        assert result[0, 3] > 0


def test_draws_follow_the_law() -> None:
    probabilities = torch.tensor([[0.5, 0.0, 0.3, 0.2]])
    generator = torch.Generator().manual_seed(7)
    many = draw(probabilities.expand(20_000, 4), Sampling(temperature=1.0), generator)
    share = torch.bincount(many, minlength=4) / len(many)
    assert share[1] == 0
    # Four standard deviations of the largest share.
    assert torch.allclose(share, probabilities[0], atol=4 * math.sqrt(0.25 / len(many)))


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("temperature", [-1.0, 1e-9, math.nan, math.inf]),
        ("top_k", [0, -1]),
        ("top_p", [0.0, 1.1, math.nan]),
        ("min_p", [-0.1, 1.1, math.nan]),
        ("repetition_penalty", [0.0, -1.0, math.inf, math.nan]),
        ("max_tokens", [0]),
    ],
)
def test_sampling_refuses(field: str, values: list[float]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=field):
            Sampling(**{field: value})


def test_statistics() -> None:
    assert Statistics().summary()["mask_p99_us"] == 0
    assert Statistics().tokens_per_second == 0
    statistics = Statistics(tokens=6, prefill_seconds=1.0, decode_seconds=2.0)
    statistics.mask_seconds = [number / 1e6 for number in range(100, 0, -1)]
    summary = statistics.summary()
    assert (summary["mask_p50_us"], summary["mask_p99_us"]) == (50, 99)
    assert summary["tokens_per_second"] == 2


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(tiny_model_directory, dtype=torch.float32)


PROMPT = list(b"a prompt")
VOCABULARY = gs.Vocabulary.bytes()
PATTERNS = [
    r"[a-z]{1,20}",
    r"\d{4}-\d\d-\d\d",
    r"(yes|no|maybe)( (yes|no|maybe)){0,3}",
    r'\{"name": "[A-Zé漢]{1,8}", "age": \d{1,3}\}',
    r".{0,30}",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("forced", ["sample", "feed"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 1.0, "seed": 1},
        {"temperature": 3.0, "seed": 2, "top_k": 5, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.2},
    ],
)
def test_output_is_in_the_language(model: Any, pattern: str, forced: Any, options: dict[str, Any]) -> None:
    constraint = gs.compile(gs.regex(pattern), VOCABULARY)
    sampling = Sampling(max_tokens=200, **options)
    runs = []
    for _ in range(2):
        said: list[bytes] = []
        runs.append(
            generate(
                model, PROMPT, constraint.matcher(), VOCABULARY, sampling=sampling, forced=forced, on_text=said.append
            )
        )
        assert b"".join(said).decode() == runs[-1].text
    result = runs[0]
    assert result.tokens == runs[1].tokens
    assert result.finish_reason == "stop"
    assert re.fullmatch(pattern, result.text)
    assert result.tokens[-1] == 256
    assert VOCABULARY.decode(result.tokens).decode() == result.text
    statistics = result.statistics
    assert (statistics.prompt_tokens, statistics.tokens) == (len(PROMPT), len(result.tokens))
    assert statistics.forward_passes == statistics.tokens - statistics.forced_tokens


@pytest.mark.parametrize("pattern", PATTERNS)
def test_greedy_equals_a_loop_without_cache(model: Any, pattern: str) -> None:
    constraint = gs.compile(gs.regex(pattern), VOCABULARY)
    result = generate(model, PROMPT, constraint.matcher(), VOCABULARY)
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


def test_forced_text_is_not_scored(model: Any) -> None:
    constraint = gs.compile(gs.regex(r"(alpha beta|gamma delta) [0-9]"), VOCABULARY)
    for forced in ("sample", "feed"):
        result = generate(model, PROMPT, constraint.matcher(), VOCABULARY, forced=forced)
        # Over single bytes only the first letter and the digit have alternatives.
        assert result.statistics.forward_passes == 2
        assert result.statistics.forced_tokens == len(result.tokens) - 2


def test_all_is_forced(model: Any) -> None:
    for forced in ("sample", "feed"):
        matcher = gs.compile(gs.choice(["one text"]), VOCABULARY).matcher()
        result = generate(model, PROMPT, matcher, VOCABULARY, forced=forced)
        assert (result.text, result.finish_reason, result.statistics.forward_passes) == ("one text", "stop", 0)


@pytest.mark.parametrize("forced", ["sample", "feed"])
@pytest.mark.parametrize("budget", [1, 2, 5, 12])
def test_budget(model: Any, budget: int, forced: Any) -> None:
    matcher = gs.compile(gs.regex(r"é{20}"), VOCABULARY).matcher()
    result = generate(model, PROMPT, matcher, VOCABULARY, sampling=Sampling(max_tokens=budget), forced=forced)
    assert result.finish_reason == "length"
    assert len(result.tokens) == budget
    assert result.text == "é" * (budget // 2) + "\ufffd" * (budget % 2)


def test_context(model: Any) -> None:
    matcher = gs.compile(gs.regex(r"[ab]{300}"), VOCABULARY).matcher()
    result = generate(model, PROMPT, matcher, VOCABULARY)
    assert result.finish_reason == "length"
    # The whole context is read, and one more token is known from what was read.
    assert len(PROMPT) + len(result.tokens) == 256 + 1
    matcher.reset()
    assert len(generate(model, PROMPT * 31, matcher, VOCABULARY).tokens) == 256 + 1 - 31 * len(PROMPT)
    with pytest.raises(ValueError, match="256 tokens, the model's context only 256"):
        generate(model, PROMPT * 32, matcher, VOCABULARY)


def test_refuses(model: Any) -> None:
    wide = gs.Vocabulary.from_tokens([b"a"], [256], size=265)
    with pytest.raises(ValueError, match="265 tokens, the model 264"):
        generate(model, PROMPT, gs.compile(gs.choice(["a"]), wide).matcher(), wide)
    with pytest.raises(ValueError, match="at least one token"):
        generate(model, [], gs.compile(gs.choice(["a"]), VOCABULARY).matcher(), VOCABULARY)


def test_continues_where_the_matcher_stands(model: Any) -> None:
    matcher = gs.compile(gs.choice(["abc", "abd"]), VOCABULARY).matcher()
    assert matcher.accept_tokens(b"ab") == 2
    assert generate(model, PROMPT, matcher, VOCABULARY).text in {"c", "d"}
    assert matcher.is_terminated
