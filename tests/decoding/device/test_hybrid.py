"""Constraints that do not freeze: through windows, the loop on the device writes the texts of the loop on the host."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Generation, Request, Sampling, Statistics  # noqa: E402
from grammarspec.decoding.device import shelf, supply  # noqa: E402
from grammarspec.decoding.device.automaton import ArenaTensors  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, Forced, Lookup  # noqa: E402
from tests import tiers  # noqa: E402
from tests.decoding.device.test_same_texts import (  # noqa: E402
    PROPOSERS,
    SAMPLINGS,
    VOCABULARY,
    WIDTH,
    check_in_threads,
    facts,
    on_device,
    on_host,
)
from tests.oracles.small_llama import disturbed, small_llama  # noqa: E402

TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"enum": ["yes", "no", "maybe"]},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3},
            },
            "required": ["name", "children"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}
EXPRESSIONS = """
start: sum
sum: product ("+" product)*
product: value ("*" value)*
value: /[0-9]+/ | "(" sum ")" | "max" "(" sum ("," sum)* ")"
"""
GRAMMARS = {
    "any JSON": gs.json_schema({}, whitespace="compact"),
    "any JSON with blanks": gs.json_schema({"type": ["object", "array"]}),
    "tree": gs.json_schema(TREE, whitespace="compact"),
    "earley": gs.lark(EXPRESSIONS),
    "lalr": gs.lark(EXPRESSIONS, parser="lalr", lexer="contextual"),
    "different strings": gs.json_schema(
        {"type": "array", "items": {"enum": ["yes", "no", "maybe", "name"]}, "uniqueItems": True, "minItems": 2}
    ),
    "different numbers": gs.json_schema(
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 3}, whitespace="compact"
    ),
    "count": gs.json_schema({"type": "string", "minLength": 3, "maxLength": 70_000}),
    "frozen": gs.regex(r"(yes|no|maybe)( (yes|no|maybe)){0,4}"),
}
HYBRID = [name for name in GRAMMARS if name != "frozen"]
CONSTRAINTS = {name: gs.compile(grammar, VOCABULARY) for name, grammar in GRAMMARS.items()}
PROMPTS = [b'{"name":"yes","children":[', b"(1+2)*(1+2)", b'["yes","no"]["', b"aaaa", b"max(1,2)+max(1"]
PAIRS = tiers.draws(64, least=16)
"""Pairs of a random model with a prompt and a grammar, for each drafter."""
ROWS = 8


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is on a shelf from earlier tests."""
    monkeypatch.setattr(shelf, "_shelves", WeakKeyDictionary())


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    """Tensors are copies of the arena, as on a device: what is not uploaded is not there."""
    of = ArenaTensors.of

    def copies(arena: Any, device: Any) -> ArenaTensors:
        shared = of(arena, device)
        return ArenaTensors(**{name: getattr(shared, name).clone() for name in ArenaTensors.__slots__})

    monkeypatch.setattr(ArenaTensors, "of", copies)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of few states and classes, which are full again and again."""
    monkeypatch.setattr(shelf, "STATES", 6)
    monkeypatch.setattr(shelf, "COLUMNS", 70)


def ragged(rng: random.Random, rows: int) -> Callable[[], list[Request]]:
    """Requests with different prompts, grammars, samplings and budgets; each call makes them anew."""
    names = [*HYBRID, *HYBRID, "frozen"]
    chosen = [
        (
            list(rng.choice(PROMPTS))[: rng.randint(1, 24)],
            rng.choice(names),
            {**rng.choice(SAMPLINGS), "max_tokens": rng.choice([1, 3, 12, 30])},
        )
        for _ in range(rows)
    ]
    return lambda: [
        Request(prompt=prompt, matcher=CONSTRAINTS[name].matcher(), sampling=Sampling(**options))
        for prompt, name, options in chosen
    ]


def compare(rng: random.Random, name: str, seed: int) -> Statistics:
    """The texts of some requests by both loops."""
    model = small_llama(seed, width=WIDTH)
    draft = disturbed(model, seed + 1)
    make, gamma = ragged(rng, ROWS), rng.choice([1, 3, 5])
    lag, looks = rng.randrange(3), rng.random() < 0.5
    requests, total = make(), Statistics()
    expected = on_host(model, make())
    adaptive = rng.random() < 0.3
    proposers = PROPOSERS[name](model, draft)
    found = on_device(model, requests, proposers, gamma=gamma, adaptive=adaptive, lag=lag, looks=looks)
    for request, one, other in zip(requests, expected, found, strict=True):
        assert facts(one) == facts(other), (name, request.sampling, lag, looks)
        counts = other.statistics
        assert counts.tokens == len(other.tokens) == counts.bonus_tokens + sum(counts.accepted.values())
        total.add(counts)
    return total


def test_the_constraints_do_not_freeze() -> None:
    for name in HYBRID:
        with pytest.raises((gs.UnsupportedFeature, gs.LimitExceeded)):
            CONSTRAINTS[name].freeze()


@pytest.mark.property
@pytest.mark.parametrize("name", PROPOSERS)
def test_texts_are_those_of_the_host(inference: None, apart: None, name: str) -> None:
    rng, total = random.Random(tiers.seed(len(name))), Statistics()
    for begin in range(0, PAIRS, ROWS):
        total.add(compare(rng, name, tiers.seed(begin)))
    print(f"{name}: {PAIRS} pairs, {total.tokens} tokens, {total.misses} misses, {total.waits} waits")
    assert total.misses > 0
    assert (sum(total.proposed.values()) > 0) == (name != "none")


@pytest.mark.property
@pytest.mark.parametrize("name", ["none", "forced", "chain"])
def test_windows_that_are_full_change_no_text(inference: None, apart: None, narrow: None, name: str) -> None:
    rng = random.Random(tiers.seed(len(name)))
    shrunk = []
    shrink = supply.Window.shrink
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supply.Window, "shrink", lambda self, *rest: shrunk.append(1) or shrink(self, *rest))
        for begin in range(0, max(PAIRS // 4, ROWS), ROWS):
            compare(rng, name, tiers.seed(begin))
    assert shrunk


def test_states_stay_for_later_batches(inference: None, fresh: None) -> None:
    model = small_llama(3, width=WIDTH)

    def run() -> Generation:
        request = Request(
            prompt=list(b"yes"), matcher=CONSTRAINTS["tree"].matcher(), sampling=Sampling(seed=1, max_tokens=40)
        )
        [text] = on_device(model, [request], [Forced()], lag=1, looks=False)
        return text

    first, second = run(), run()
    assert facts(first) == facts(second)
    assert first.statistics.misses > 0 == second.statistics.misses
    assert second.statistics.waits <= 1  # nothing waits but for the first state
    assert "misses_per_1000_rounds" in first.statistics.summary()


def test_samples_and_stop_texts(inference: None, fresh: None) -> None:
    """Several texts are in different states of one window; some end on the host only."""
    model = small_llama(3, width=WIDTH)

    def requests() -> list[Request]:
        return [
            Request(
                prompt=list(b"yes no"),
                matcher=CONSTRAINTS[name].matcher(),
                sampling=Sampling(temperature=1.5, seed=5, max_tokens=25, stop=["e", "1"]),
                n=3,
            )
            for name in ("tree", "different numbers", "earley")
        ]

    expected = on_host(model, requests())
    for lag in (0, 1):
        found = on_device(model, requests(), [Forced(), Lookup()], lag=lag, looks=False)
        assert [facts(text) for text in found] == [facts(text) for text in expected]
    assert any(text.stop for text in expected)


@pytest.mark.slow
def test_batches_in_threads(fresh: None) -> None:
    """Batches of the same constraints have windows of their own in one arena."""
    check_in_threads(small_llama(8, width=WIDTH), [ragged(random.Random(number), 4) for number in range(4)])


@pytest.mark.parametrize("lag", [0, 1])
def test_a_limit_of_one_constraint_ends_its_text_only(inference: None, fresh: None, lag: int) -> None:
    model = small_llama(4, width=WIDTH)
    names = ["tree", "different numbers", "count", "frozen"]

    def requests() -> list[Request]:
        few = gs.compile(GRAMMARS["different numbers"], VOCABULARY, limits=gs.Limits(max_states=12))
        constraints = [few if name == "different numbers" else CONSTRAINTS[name] for name in names]
        return [
            Request(prompt=list(b"no"), matcher=each.matcher(), sampling=Sampling(seed=7, max_tokens=30))
            for each in constraints
        ]

    expected = on_host(model, requests())
    found = on_device(model, requests(), [Forced(), Lookup(), DraftModel(model)], lag=lag, looks=False)
    assert isinstance(found[1].error, gs.LimitExceeded) and isinstance(expected[1].error, gs.LimitExceeded)
    # The states of a window count, too.
    assert found[1].tokens == expected[1].tokens[: len(found[1].tokens)]
    for place in (0, 2, 3):
        assert facts(found[place]) == facts(expected[place]) and found[place].error is None
