"""Greedy texts are those of the plain loop, token by token, for every proposer, alone and in ragged batches."""

from __future__ import annotations

from itertools import islice, product
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Generation, Request, Sampling, generate_batch  # noqa: E402
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
from grammarspec.models.loading import load_model, vocabulary_of  # noqa: E402
from tests import tiers  # noqa: E402

PAIRS = {"tiny_model_directory": tiers.draws(20, least=4), "smollm2_directory": tiers.draws(20, most=40)}
"""Pairs of a prompt and a grammar, by model. SmolLM2 takes a quarter of a minute for one: only in the longest tier."""
MODELS = list(PAIRS) if tiers.selected().random else ["tiny_model_directory"]
CLOSE = 1e-3  # logits nearer than this may change places in a batch of another shape

PERSON = {
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
CALL = {
    "anyOf": [
        {
            "properties": {"tool": {"const": "weather"}, "city": {"type": "string", "maxLength": 12}},
            "required": ["tool", "city"],
        },
        {"properties": {"tool": {"const": "stop"}, "now": {"type": "boolean"}}, "required": ["tool", "now"]},
    ]
}
GRAMMARS = [
    gs.json_schema(PERSON, whitespace="compact"),
    gs.json_schema(PERSON),
    gs.json_schema(CALL, whitespace="compact"),
    gs.json_schema({"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 5}),
    gs.json_schema({}),
    gs.regex(r"\d{4}-\d\d-\d\d( \d\d:\d\d)?"),
    gs.regex(r"(yes|no|maybe)( (yes|no|maybe)){0,4}"),
    gs.regex(r"[A-Z][a-z]+( [a-z]+){0,8}\."),
    gs.regex(r"SELECT [a-z]+(, [a-z]+)* FROM [a-z]+( WHERE [a-z]+ = '[^']{0,9}')?;"),
    gs.regex(r"(.|\n){0,60}"),
]
PROMPTS = [
    "Alice is 31 and lives in Paris.",
    "What is the weather in Oslo?",
    "red green blue red green",
    "On 2024-05-17 at 10:30 we met.",
    '{"name": "Bob", "age": 44}',
    "Select the names of all people.",
    "Is it yes or no?",
    "Write a short sentence about the sea.",
    "Stop now!",
    "Ωmega and 漢字, é.",
    "def f(x):\n    return x",
    "1 2 3 4 5 6 7 8 9",
    "Describe the person: Carla, 27.",
    "a a a a b b b b a a a a",
    "The quick brown fox jumps over the lazy dog.",
    "maybe maybe no",
    "[1, [2, [3]]]",
    "city: Rome, tool: weather",
    "SELECT a, b FROM t WHERE c = 'd';",
    "Say something.",
]


@pytest.fixture(scope="module", params=MODELS)
def loaded(request: pytest.FixtureRequest) -> Any:
    model, tokenizer = load_model(request.getfixturevalue(request.param), dtype=torch.float32)
    return model, tokenizer, vocabulary_of(model, tokenizer), PAIRS[request.param]


def proposers_for(model: Any) -> dict[str, list[Proposer]]:
    layers = max(model.config.num_hidden_layers // 5, 1)
    draft = EarlyExit(model, layers).model  # a model of its own, with its own cache
    return {
        "forced": [Forced()],
        "lookup": [Lookup()],
        "model": [DraftModel(draft)],
        "unmasked model": [DraftModel(draft, masked=False)],
        "early exit": [EarlyExit(model, layers)],
        "head": [HeadProposer(ResidualHead(model, 8))],
        "chain": [Forced(), Lookup(), EarlyExit(model, layers)],
        "eagle": [Forced(), Lookup(), Eagle(EagleHead(EagleConfig.like(model, 16)), model)],
    }


def gap(model: Any, constraint: gs.Constraint, prompt: list[int], tokens: list[int]) -> float:
    """How far the best two logits are apart behind a text."""
    matcher = constraint.matcher()
    assert matcher.accept_tokens(tokens) == len(tokens)
    rows = gs.allocate_bitmask(1, model.config.vocab_size)
    matcher.fill_bitmask(rows)
    with torch.no_grad():
        logits = model(torch.tensor([prompt + tokens]), use_cache=False).logits[:, -1]
        gs.apply_bitmask(logits, rows)
    best = logits[0].topk(2).values
    return float(best[0] - best[1])


@pytest.mark.slow
@pytest.mark.property
def test_greedy_texts_are_those_of_the_plain_loop(loaded: Any) -> None:
    model, tokenizer, vocabulary, count = loaded
    constraints = [gs.compile(grammar, vocabulary) for grammar in GRAMMARS]
    # A stride that is prime to both numbers meets different prompts and grammars first.
    every = list(product(range(len(PROMPTS)), range(len(GRAMMARS))))
    pairs = list(islice((every[number * 37 % len(every)] for number in range(len(every))), count))
    prompts = [tokenizer.encode(PROMPTS[prompt], add_special_tokens=False) for prompt, _ in pairs]

    def texts(proposers: list[Proposer], batch: int) -> list[Generation]:
        out: list[Generation] = []
        for begin in range(0, len(pairs), batch):
            requests = [
                Request(prompt=prompt, matcher=constraints[grammar].matcher(), sampling=Sampling(max_tokens=32))
                for prompt, (_, grammar) in zip(
                    prompts[begin : begin + batch], pairs[begin : begin + batch], strict=True
                )
            ]
            out += [text for [text] in generate_batch(model, requests, vocabulary, proposers=proposers, gamma=5)]
        return out

    reference = texts([], 1)
    total = sum(len(text.tokens) for text in reference)
    runs = {("none", 8): texts([], 8)}
    close = []
    for name, proposers in proposers_for(model).items():
        for batch in (1, 8):
            runs[name, batch] = texts(proposers, batch)
    for (name, batch), results in runs.items():
        passes = sum(text.statistics.rounds.total() for text in results)
        differing = []
        for (_, grammar), prompt, expected, result in zip(pairs, prompts, reference, results, strict=True):
            if result.tokens == expected.tokens:
                continue
            place = next(i for i, (a, b) in enumerate(zip(result.tokens, expected.tokens, strict=False)) if a != b)
            distance = gap(model, constraints[grammar], prompt, expected.tokens[:place])
            differing.append(distance)
            print(f"  {name}, batch {batch}: {expected.text!r} became {result.text!r}, gap {distance:.2g}")
        print(
            f"{name:15} batch {batch}: {total} tokens, {total / passes:.2f} per pass, {len(differing)} texts differ",
            flush=True,
        )
        assert all(distance < CLOSE for distance in differing)
        close += differing
    print(f"{len(pairs)} pairs, {len(runs)} runs, {total * len(runs)} tokens, {len(close)} differences")
    assert len(close) <= total * len(runs) / 10_000
