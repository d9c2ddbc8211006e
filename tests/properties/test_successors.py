"""Where all tokens lead from a state, found at once, is where each of them leads."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec import _compiler
from grammarspec.errors import StateCollected, UnsupportedFeature
from tests import tiers
from tests.counting import discard, examples
from tests.properties.strategies import (
    Drawn,
    context_free_grammars,
    parametric_grammars,
    regular_grammars,
    vocabularies,
)
from tests.properties.test_engine import Tokens, compiled, index
from tests.vocabulary.test_characters import GRAMMARS as GRAMMARS_OF_CHARACTERS
from tests.vocabulary.test_characters import vocabularies as vocabularies_of_characters
from tests.vocabulary.test_characters import vocabulary_of

NOT_ALLOWED, NOT_MADE = -1, -2
LETTERS = [bytes(letters) for size in (2, 3) for letters in product(b'aeinst" ,:}]', repeat=size)]
MANY = gs.Vocabulary.from_tokens([*(bytes([value]) for value in range(256)), *LETTERS, None], [256 + len(LETTERS)])
"""Many tokens go on from each letter, so that whole branches of the trie are taken at once."""


def check(constraint: _compiler.Constraint, state: int, most: int, size: int) -> list[int]:
    """Compare with single steps; returns the states."""
    row = np.unpackbits(np.frombuffer(constraint.mask(state), np.uint8), bitorder="little")[:size].astype(bool)
    data, states = constraint.successors(state, most)
    of = np.frombuffer(data, "<i4")
    assert len(of) == size and np.array_equal(of != NOT_ALLOWED, row)
    assert len(set(states)) == len(states)
    made = set()
    for token in range(size):
        following = constraint.step(state, token)
        assert (following is None) == (of[token] == NOT_ALLOWED)
        if of[token] >= 0:
            assert following == states[of[token]]
            made.add(following)
    assert made == set(states)
    return states


def walk(constraint: _compiler.Constraint, size: int, rng: random.Random, steps: int) -> None:
    """Check states near the start, with different numbers of states to make."""
    todo, met = [constraint.start], set[int]()
    pin = constraint.pin(todo)
    while todo and steps:
        state = todo.pop(rng.randrange(len(todo)))
        if state in met:
            continue
        met.add(state)
        steps -= 1
        few = check(constraint, state, rng.choice([0, 1, 2]), size)
        every = check(constraint, state, size, size)
        assert set(few) <= set(every) and len(few) <= 3  # that after the end of the text is made anyway
        todo += every
    pin.release()


def walk_drawn(drawn: Drawn, tokens: Tokens, seed: int) -> None:
    constraint = compiled(drawn, index(tokens))
    if constraint is None:
        discard("an empty language")
    walk(constraint, index(tokens).size, random.Random(seed), 12)


@examples(300, kept=0.55)
@given(regular_grammars(), vocabularies(), st.integers(0, 99))
def test_regular_grammars(drawn: Drawn, tokens: Tokens, seed: int) -> None:
    walk_drawn(drawn, tokens, seed)


@examples(400, kept=0.3)
@given(context_free_grammars() | parametric_grammars(), vocabularies(), st.integers(0, 99))
def test_grammars_with_rules(drawn: Drawn, tokens: Tokens, seed: int) -> None:
    walk_drawn(drawn, tokens, seed)


@examples(100, kept=0.5)
@given(vocabularies_of_characters(), st.sampled_from(GRAMMARS_OF_CHARACTERS))
def test_vocabularies_without_single_bytes(tokens: list[bytes], grammar: Any) -> None:
    vocabulary = vocabulary_of(tokens)
    try:
        constraint = gs.compile(grammar(), vocabulary)
    except (gs.Unsatisfiable, UnsupportedFeature):
        discard("what the vocabulary cannot spell")
    walk(constraint, vocabulary.size, random.Random(0), 20)


@pytest.mark.property
@pytest.mark.parametrize(
    "grammar",
    [
        gs.json_schema({}),
        gs.json_schema({"type": "array", "items": {"type": "string", "maxLength": 3}, "uniqueItems": True}),
        gs.json_schema({"type": "array", "items": {"enum": ["a", "es", "nest"]}, "uniqueItems": True, "minItems": 2}),
        gs.json_schema({"type": "string", "minLength": 5, "maxLength": 100_000}),
        gs.lark('start: part+\npart: "(" start ")" | NAME | /[aeinst]+"/\nNAME: /[a-z]+/\n%ignore " "', parser="lalr"),
    ],
    ids=["any", "different", "few different", "count", "lalr"],
)
def test_large_vocabularies(grammar: gs.Grammar[Any]) -> None:
    constraint = gs.compile(grammar, MANY)
    walk(constraint, MANY.size, random.Random(tiers.seed(1)), tiers.draws(20, least=6))


def test_what_must_differ_is_followed_token_by_token_if_few_tokens_are_allowed() -> None:
    schema = {"type": "array", "items": {"enum": ["a", "es"]}, "uniqueItems": True, "minItems": 2}
    constraint = gs.compile(gs.json_schema(schema, whitespace="compact"), MANY)
    matcher = constraint.matcher()
    for letter in b'["es",':
        assert matcher.accept_token(letter)
    of, states = constraint.successors(matcher.state, 0)
    assert not states and set(np.frombuffer(of, "<i4").tolist()) == {NOT_ALLOWED, NOT_MADE}
    of, states = constraint.successors(matcher.state, 99)
    assert states and NOT_MADE not in np.frombuffer(of, "<i4")


def test_errors() -> None:
    constraint = gs.compile(gs.json_schema({}), MANY)
    with pytest.raises(StateCollected):
        constraint.successors(10**6, 3)
    with pytest.raises(OverflowError):
        constraint.successors(-1, 3)
    limited = gs.compile(gs.json_schema({}), MANY, limits=gs.Limits(max_call_steps=40))
    with pytest.raises(gs.LimitExceeded, match=r"max_call_steps|max_steps"):
        limited.successors(limited.start, 3)
    # Little room for states: as many as there is room for, or an error, and then everything still works.
    small = gs.compile(gs.json_schema({}), MANY, limits=gs.Limits(max_states=9))
    for _ in range(3):
        try:
            of, states = small.successors(small.start, 200)
        except gs.LimitExceeded:
            continue
        assert all(number < len(states) for number in np.frombuffer(of, "<i4"))
    assert small.step(small.start, ord("[")) is not None
