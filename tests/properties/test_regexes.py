"""Regular expressions end to end: interegular and ``re`` as oracles, every tokenisation, walks with random logits."""

from __future__ import annotations

import random
import re

import interegular
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import compared, discard, examples

TOKENS: list[bytes | None] = [bytes([b]) for b in b"abc01"]
TOKENS += [b"ab", b"abc", b"ca", b"00", b"0a", b"bb", b"b1c", b"aaaa", None]
EOS = len(TOKENS) - 1
VOCABULARY = gs.Vocabulary.from_tokens(TOKENS, [EOS])
WORDS = (VOCABULARY.size + 31) // 32

_atoms = st.sampled_from(["a", "b", "c", "0", "1", "[ab]", "[^a0]", "[a-c]", "[01]", "ab", "(?:)"])


def _wrap(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Interegular's safe subset: no assertions, no flags, no predefined classes."""
    repeats = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        st.tuples(inner, repeats).map(lambda p: f"(?:{p[0]}){p[1]}"),
    )


PATTERNS = st.recursive(_atoms, _wrap, max_leaves=8)
ALPHABET = interegular.fsm.Alphabet.from_groups(*"abc01")


def allowed(matcher: gs.Matcher) -> set[int]:
    rows = np.zeros((1, WORDS), dtype=np.int32)
    matcher.fill_bitmask(rows)
    compared(VOCABULARY.size)
    return set(np.flatnonzero(np.unpackbits(rows.view(np.uint8), bitorder="little")).tolist())


@examples(300)
@given(PATTERNS, st.integers(0, 2**32))
def test_masks_are_those_of_the_automaton(pattern: str, seed: int) -> None:
    """Interegular's automaton says which tokens keep a text alive; so must every mask on a random walk."""
    fsm = interegular.parse_pattern(pattern).to_fsm(ALPHABET)
    try:
        matcher = gs.compile(gs.regex(pattern), VOCABULARY).matcher()
    except gs.Unsatisfiable:
        assert fsm.empty()
        return
    rng, text = random.Random(seed), ""

    def state_after(state: int | None, more: str) -> int | None:
        for letter in more:
            if state is not None:
                state = fsm.map.get(state, {}).get(fsm.alphabet[letter])
        return state if state is not None and fsm.islive(state) else None

    for _ in range(10):
        state = state_after(fsm.initial, text)
        expected = {t for t, b in enumerate(TOKENS) if b is not None and state_after(state, b.decode()) is not None}
        if state in fsm.finals:
            expected.add(EOS)
        bits = allowed(matcher)
        assert bits == expected, text
        token = rng.choice(sorted(bits))
        assert matcher.accept_token(token)
        if token == EOS:
            assert re.fullmatch(pattern, text)
            break
        text += (TOKENS[token] or b"").decode()


@examples(200)
@given(PATTERNS, st.integers(0, 2**32))
def test_every_tokenisation_is_accepted(pattern: str, seed: int) -> None:
    try:
        constraint = gs.compile(gs.regex(pattern), VOCABULARY)
    except gs.Unsatisfiable:
        discard("an empty language")
    rng = random.Random(seed)
    matcher, tokens = constraint.matcher(), list[int]()
    while len(tokens) < 8 and (choices := sorted(allowed(matcher) - {EOS})):
        tokens.append(rng.choice(choices))
        matcher.accept_token(tokens[-1])
    tokens += constraint.shortest_completion(matcher.state)
    text = VOCABULARY.decode(tokens)
    assert re.fullmatch(pattern, text.decode())
    for _ in range(10):
        at, cut = 0, list[int]()
        while at < len(text):
            cut.append(rng.choice([t for t, b in enumerate(TOKENS) if b and text.startswith(b, at)]))
            at += len(TOKENS[cut[-1]] or b"")
        matcher = constraint.matcher()
        assert matcher.accept_tokens([*cut, EOS]) == len(cut) + 1
        assert matcher.is_terminated


@examples(200)
@given(PATTERNS, st.integers(0, 2**32))
def test_walks_with_random_logits_end_in_the_language(pattern: str, seed: int) -> None:
    try:
        matcher = gs.compile(gs.regex(pattern), VOCABULARY).matcher()
    except gs.Unsatisfiable:
        discard("an empty language")
    rng = np.random.default_rng(seed)
    rows, text = gs.allocate_bitmask(1, VOCABULARY.size), b""
    for _ in range(200):
        logits = rng.normal(size=(1, VOCABULARY.size)).astype(np.float32)
        logits[0, EOS] += len(text) / 10
        matcher.fill_bitmask(rows)
        gs.apply_bitmask(logits, rows)
        token = int(logits.argmax())
        assert matcher.accept_token(token)
        if token == EOS:
            assert re.fullmatch(pattern, text.decode())
            return
        text += TOKENS[token] or b""
