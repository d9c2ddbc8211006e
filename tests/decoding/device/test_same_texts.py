"""The loop on the device writes the texts of the loop on the host: greedily and with a seed, for every drafter."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Generation, Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.device import DeviceBatch  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Forced, HeadProposer, Lookup, Proposer  # noqa: E402
from grammarspec.decoding.proposers.head import ResidualHead  # noqa: E402
from grammarspec.errors import InvalidLogits  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.small_llama import disturbed, small_llama  # noqa: E402

VOCABULARY = gs.Vocabulary.from_tokens(
    [
        *(bytes([value]) for value in range(256)),
        b'{"',
        b'":',
        b'","',
        b"name",
        b"age",
        b"yes",
        b"ye",
        b"ma",
        None,
        None,
    ],
    [264, 265],
)
WIDTH = 270  # wider than the vocabulary
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
GRAMMARS = [
    gs.json_schema(PERSON, whitespace="compact"),
    gs.json_schema({"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 4}),
    gs.json_schema({"enum": ["yes", "no", {"name": [1, 2, 3]}]}, whitespace="compact"),
    gs.regex(r"[0-9]{4}-[0-9][0-9]-[0-9][0-9]( [0-9][0-9]:[0-9][0-9])?"),
    gs.regex(r"(yes|no|maybe)( (yes|no|maybe)){0,4}"),
    gs.regex(r"[A-Z][a-z]+( [a-z]+){0,8}\."),
    gs.regex(r"SELECT [a-z]+(, [a-z]+)* FROM [a-z]+( WHERE [a-z]+ = '[^']{0,9}')?;"),
    gs.regex(r"[a-zé漢]{0,20}"),
]
PROMPTS = [
    b"a",
    b"red green blue red green",
    b'{"name":"Bo","age":4}{"name":',
    b"yes no maybe yes",
    b"SELECT a FROM b;",
]
SAMPLINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 1.0, "seed": 1},
    {"temperature": 2.0, "seed": 2, "top_k": 9, "top_p": 0.9, "min_p": 0.02},
    {"repetition_penalty": 1.2, "presence_penalty": 0.3, "frequency_penalty": 0.2, "logit_bias": {101: 1.5}},
]
PAIRS = tiers.draws(200, least=16)
"""Pairs of a random model with a prompt and a grammar, for each drafter."""
ROWS = 8

Make = Callable[[Any, Any], list[Proposer]]
PROPOSERS: dict[str, Make] = {
    "none": lambda model, draft: [],
    "forced": lambda model, draft: [Forced()],
    "lookup": lambda model, draft: [Lookup()],
    "model": lambda model, draft: [DraftModel(draft)],
    "hesitant model": lambda model, draft: [DraftModel(draft, masked=False, confidence=0.3)],
    "early exit": lambda model, draft: [EarlyExit(model, 1)],
    "head": lambda model, draft: [HeadProposer(ResidualHead(model, 8))],
    "chain": lambda model, draft: [Forced(), Lookup(), DraftModel(draft)],
}
_CONSTRAINTS = [gs.compile(grammar, VOCABULARY) for grammar in GRAMMARS]


def on_device(
    model: Any, requests: Sequence[Request], proposers: Sequence[Proposer], *, lag: int, looks: bool, **options: Any
) -> list[Generation]:
    batch = DeviceBatch(
        model,
        requests,
        VOCABULARY,
        proposers=proposers,
        **({"gamma": 4, "adaptive": False, "end_token": 264} | options),
        lag=lag,
        looks=looks,
    )
    return [text for texts in batch.run() for text in texts]


def on_host(model: Any, requests: Sequence[Request], **options: Any) -> list[Generation]:
    return [
        text for texts in generate_batch(model, requests, VOCABULARY, device_loop=False, **options) for text in texts
    ]


def ragged(rng: random.Random, rows: int) -> Callable[[], list[Request]]:
    """Requests with different prompts, grammars, samplings and budgets; each call makes them anew."""
    chosen = [
        (
            list(rng.choice(PROMPTS))[: rng.randint(1, 24)],
            rng.randrange(len(GRAMMARS)),
            {**rng.choice(SAMPLINGS), "max_tokens": rng.choice([1, 2, 5, 24])},
        )
        for _ in range(rows)
    ]
    return lambda: [
        Request(prompt=prompt, matcher=_CONSTRAINTS[grammar].matcher(), sampling=Sampling(**options))
        for prompt, grammar, options in chosen
    ]


def facts(text: Generation) -> tuple[Any, ...]:
    return text.tokens, text.text, text.finish_reason, text.whole, text.stop, text.error


@pytest.mark.property
@pytest.mark.parametrize("name", PROPOSERS)
def test_texts_are_those_of_the_host(inference: None, name: str) -> None:
    rng = random.Random(tiers.seed(len(name)))
    compared = tokens = drafted = 0
    for begin in range(0, PAIRS, ROWS):
        model = small_llama(tiers.seed(begin), width=WIDTH)
        draft = disturbed(model, begin + 1)
        make, gamma = ragged(rng, ROWS), rng.choice([1, 3, 5])
        expected = on_host(model, make())
        # The host reads at once, or a round late; it looks within rounds, or does not.
        lag, looks = rng.randrange(3), rng.random() < 0.5
        requests = make()
        found = on_device(model, requests, PROPOSERS[name](model, draft), gamma=gamma, lag=lag, looks=looks)
        for request, one, other in zip(requests, expected, found, strict=True):
            assert facts(one) == facts(other), (name, request.sampling, lag, looks)
            # The matcher has followed the text.
            assert request.matcher is not None
            assert request.matcher.is_terminated == (other.tokens[-1] in VOCABULARY.eos_token_ids)
            counts = other.statistics
            assert counts.tokens == len(other.tokens) == counts.bonus_tokens + sum(counts.accepted.values())
            compared, tokens = compared + 1, tokens + len(other.tokens)
            drafted += sum(counts.proposed.values())
    print(f"{name}: {compared} pairs, {tokens} tokens, {drafted} draft tokens")
    assert (drafted > 0) == (name != "none")


@pytest.mark.parametrize("lag", [0, 1])
def test_samples_streams_and_stop_texts(inference: None, lag: int) -> None:
    """Several samples of a request, an unconstrained row, stop texts, and what is streamed."""
    model = small_llama(3, width=WIDTH)
    for parameter in (model.lm_head.weight,):
        parameter.data[VOCABULARY.size :] = 0  # a row without a constraint would write padding
    draft = disturbed(model, 4)

    def requests() -> list[Request]:
        return [
            Request(
                prompt=list(b"yes no"),
                matcher=_CONSTRAINTS[4].matcher(),
                sampling=Sampling(temperature=1.0, seed=5, max_tokens=20),
                n=3,
            ),
            Request(prompt=list(b"hello"), sampling=Sampling(max_tokens=9, logit_bias={300 % WIDTH: -9.0})),
            Request(
                prompt=list(b"maybe"),
                matcher=_CONSTRAINTS[4].matcher(),
                sampling=Sampling(temperature=3.0, seed=9, max_tokens=30, stop=["y"]),
            ),
        ]

    streamed: dict[tuple[int, int], bytes] = {}

    def on_text(request: int, sample: int, data: bytes) -> None:
        streamed[request, sample] = streamed.get((request, sample), b"") + data

    expected = on_host(model, requests())
    found = on_device(model, requests(), [Forced(), DraftModel(draft)], lag=lag, looks=False, on_text=on_text)
    assert [facts(text) for text in found] == [facts(text) for text in expected]
    assert found[-1].stop == "y"
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)]
    for place, text in zip(places, found, strict=True):
        assert streamed.get(place, b"").decode(errors="replace").startswith(text.text[:1])


def test_broken_logits_end_one_row(inference: None) -> None:
    model = small_llama(5, width=WIDTH)
    model.model.embed_tokens.weight.data[7] = torch.nan

    def requests() -> list[Request]:
        prompts = [list(b"red"), [7, 7, 8], list(b"yes")]
        return [
            Request(prompt=prompt, matcher=_CONSTRAINTS[3].matcher(), sampling=Sampling(max_tokens=12))
            for prompt in prompts
        ]

    for lag in (0, 1):
        expected = on_host(model, requests())
        found = on_device(model, requests(), [Forced(), EarlyExit(model, 1)], lag=lag, looks=False)
        assert isinstance(found[1].error, InvalidLogits) and str(found[1].error) == str(expected[1].error)
        for place in (0, 2):
            assert facts(found[place]) == facts(expected[place])


@pytest.mark.slow
def test_lengths_that_adapt_change_no_text(inference: None) -> None:
    """Lengths of drafts change from round to round, so that draft models fall behind and catch up."""
    model = small_llama(6, width=WIDTH)
    draft = disturbed(model, 7)
    make = ragged(random.Random(1), ROWS)
    expected = on_host(model, make())
    for proposers in ([DraftModel(draft)], [Forced(), EarlyExit(model, 1)], [HeadProposer(ResidualHead(model, 8))]):
        for lag in (0, 1):
            found = on_device(model, make(), proposers, gamma=6, adaptive=True, lag=lag, looks=False)
            assert [facts(text) for text in found] == [facts(text) for text in expected]


def check_in_threads(model: Any, makes: Sequence[Callable[[], list[Request]]]) -> None:
    """Batches that run at the same time give the texts that each gives on the host."""
    with torch.inference_mode():
        expected = [[facts(text) for text in on_host(model, make())] for make in makes]
    found: dict[int, list[tuple[Any, ...]]] = {}

    def work(number: int) -> None:
        texts = on_device(model, makes[number](), [Forced(), Lookup()], lag=number % 2, looks=bool(number % 3))
        found[number] = [facts(text) for text in texts]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(makes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(len(makes))] == expected


@pytest.mark.slow
def test_two_batches_in_threads() -> None:
    """Batches of one vocabulary share an arena, and of one model its weights."""
    check_in_threads(small_llama(8, width=WIDTH), [ragged(random.Random(number), 4) for number in range(4)])
