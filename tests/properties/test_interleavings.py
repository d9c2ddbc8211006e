"""Masks never go stale: whatever a matcher did before, its mask is that of a fresh one fed the same tokens."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import numpy as np
import pytest

import grammarspec as gs
from grammarspec.grammars.builder import GrammarBuilder
from tests import tiers

TOKENS: list[bytes | None] = [bytes([b]) for b in range(32, 127)]
TOKENS += [b'":', b'",', b'"a"', b"}}", b"{{", b"ab", b"+a", b"a+", b"((", b"))", b"12", b', "', b"aaa", b'"}', None]
VOCABULARY = gs.Vocabulary.from_tokens(TOKENS, [len(TOKENS), len(TOKENS) + 1])
WORDS = (VOCABULARY.size + 31) // 32


def _nested(b: GrammarBuilder) -> int:
    value, string = (
        b.rule("value"),
        b.terminal(b.seq(b.literal('"'), b.repeat(b.bytes_in([(97, 122)]), 0, 9), b.literal('"'))),
    )
    pair = b.seq(string, b.literal(":"), b.call(value))
    pairs = b.optional(b.seq(pair, b.repeat(b.seq(b.literal(","), pair), 0, None)))
    number = b.terminal(b.repeat(b.bytes_in([(48, 57)]), 1, None))
    b.define(value, b.alt(string, number, b.seq(b.literal("{"), pairs, b.literal("}"))))
    return b.call(value)


def _ambiguous(b: GrammarBuilder) -> int:
    e = b.rule("e")
    b.define(
        e,
        b.alt(
            b.seq(b.call(e), b.literal("+"), b.call(e)),
            b.literal("a"),
            b.seq(b.literal("("), b.call(e), b.literal(")")),
        ),
    )
    return b.call(e)


def _counted(b: GrammarBuilder) -> int:
    return b.repeat(
        b.alt(b.literal("a"), b.literal("ab"), b.seq(b.literal("("), b.repeat(b.literal("1"), 2, 5), b.literal(")"))),
        2,
        40,
    )


def _looking(b: GrammarBuilder) -> int:
    letters = b.repeat(b.bytes_in([(97, 122)]), 0, None)
    not_ab = b.ahead(b.complement(b.seq(b.literal("ab"), b.anything)))
    return b.terminal(
        b.seq(b.repeat(b.seq(not_ab, b.bytes_in([(97, 99)])), 1, None), b.behind(b.seq(letters, b.literal("c"))))
    )


def _each_key_once(b: GrammarBuilder) -> int:
    """Objects within objects; keys in any order, "a" required, three at most."""
    value, pairs, count = b.rule("value"), b.rule("pairs"), (8, 2)
    done = b.seq(b.when_set([0]), b.literal("}"))
    more = [
        b.seq(
            b.when_clear([k]),
            b.when_count(count, 0, 2),
            b.literal(f'"{key}":'),
            b.call(value),
            b.call_with(pairs, setting=[k], counting=count),
        )
        for k, key in enumerate(["a", "ab", "b", "aaa", "c"])
    ]
    b.define(pairs, b.alt(done, *more))
    b.define(value, b.alt(b.literal("1"), b.literal("12"), b.seq(b.literal("{"), b.call_with(pairs, fresh=True))))
    return b.call(value)


GRAMMARS: list[Callable[[GrammarBuilder], int]] = [_nested, _ambiguous, _counted, _looking, _each_key_once]


def build(make: Callable[[GrammarBuilder], int]) -> gs.Grammar:
    builder = GrammarBuilder()
    return gs.Grammar(builder.build(make(builder)))


def alone(grammar: gs.Grammar) -> gs.Constraint:
    """A constraint that no other compile of the grammar finds: it can be cancelled."""
    return gs.compile(grammar, VOCABULARY, cancel=gs.CancelToken())


class Replay:
    """Masks by fresh matchers on a constraint of its own, remembered by token list."""

    def __init__(self, grammar: gs.Grammar) -> None:
        self.constraint = alone(grammar)
        self.known: dict[tuple[int, ...], bytes] = {}

    def mask(self, tokens: list[int]) -> bytes:
        key = tuple(tokens)
        if key not in self.known:
            matcher = self.constraint.matcher()
            assert matcher.accept_tokens(tokens) == len(tokens)
            rows = np.full((1, WORDS), -1, dtype=np.int32)
            matcher.fill_bitmask(rows)
            self.known[key] = rows.tobytes()
        return self.known[key]


def mask_of(matcher: gs.Matcher) -> bytes:
    rows = np.full((2, WORDS), -1, dtype=np.int32)
    matcher.fill_bitmask(rows, 1)
    assert (rows[0] == -1).all()
    return rows[1].tobytes()


def likely(rng: random.Random, mask: bytes) -> int:
    bits = np.flatnonzero(np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little"))
    return int(rng.choice(bits)) if bits.size and rng.random() < 0.9 else rng.randrange(VOCABULARY.size)


@pytest.mark.parametrize("make", GRAMMARS)
@pytest.mark.property
def test_interleavings(make: Callable[[GrammarBuilder], int]) -> None:
    """Random operations on each grammar; after every one the mask is compared."""
    rng = random.Random(tiers.seed(1))
    replay = Replay(build(make))
    constraint = alone(build(make))
    live: list[tuple[gs.Matcher, list[int]]] = [(constraint.matcher(), [])]
    for _ in range(tiers.draws(25_000)):
        i = rng.randrange(len(live))
        matcher, tokens = live[i]
        match rng.randrange(12):
            case 0 | 1:
                back = rng.randint(0, len(tokens))
                matcher.rollback(back)
                del tokens[len(tokens) - back :]
            case 2 if len(live) < 6:
                live.append((matcher.fork(), tokens.copy()))
                i = len(live) - 1
            case 3 if len(live) > 2:
                live.pop(i)
                i = 0
            case 4:
                matcher.reset()
                tokens.clear()
            case 5:
                trial, draft = matcher.fork(), list[int]()
                for _ in range(4):
                    draft.append(likely(rng, mask_of(trial)))
                    trial.accept_token(draft[-1])
                count = matcher.validate_tokens(draft)
                assert matcher.fork().accept_tokens(draft) == count
                rows = np.full((6, WORDS), -1, dtype=np.int32)
                assert matcher.fill_draft_bitmasks(draft, rows, 1) == count
                expected = [replay.mask(tokens + draft[: min(n, count)]) for n in range(5)]
                assert (rows[0] == -1).all() and [row.tobytes() for row in rows[1:]] == expected
            case 6 if rng.random() < 0.05:
                constraint.collect()
            case _:
                token = likely(rng, replay.mask(tokens))
                if matcher.accept_token(token):
                    tokens.append(token)
        matcher, tokens = live[i]
        if len(tokens) > 60:
            matcher.reset()
            tokens.clear()
        assert mask_of(matcher) == replay.mask(tokens), tokens


@pytest.mark.parametrize("make", GRAMMARS)
def test_threads(make: Callable[[GrammarBuilder], int]) -> None:
    """Threads walk one constraint at once, states being collected under them; every mask is right."""
    grammar = build(make)
    constraint = alone(grammar)
    failures: list[BaseException] = []

    def walk(seed: int) -> None:
        try:
            rng, replay = random.Random(seed), Replay(grammar)
            for _ in range(15):
                matcher, tokens = constraint.matcher(), list[int]()
                for _ in range(30):
                    mask = mask_of(matcher)
                    assert mask == replay.mask(tokens)
                    token = likely(rng, mask)
                    if matcher.accept_token(token):
                        tokens.append(token)
                if seed == 0:
                    constraint.collect()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@pytest.mark.parametrize("make", GRAMMARS)
def test_batch_equals_single(make: Callable[[GrammarBuilder], int]) -> None:
    """Also where the rows of one constraint are new, so that threads share them out."""
    rng = random.Random(3)
    grammars = [build(make), build(make), build(_nested)]
    replays = [Replay(grammar) for grammar in grammars]
    paths: list[tuple[int, list[int]]] = []
    for _ in range(60):
        which, tokens = rng.choice([0, 0, 0, 1, 2]), list[int]()
        for _ in range(rng.randrange(12)):
            token = likely(rng, replays[which].mask(tokens))
            if replays[which].constraint.matcher().accept_tokens([*tokens, token]) > len(tokens):
                tokens.append(token)
        paths.append((which, tokens))
    for threads in (0, 1, 2, 3):
        constraints = [alone(grammar) for grammar in grammars]
        for part in (paths[:40], paths):
            matchers = [constraints[which].matcher() for which, _ in part]
            for matcher, (_, tokens) in zip(matchers, part, strict=True):
                assert matcher.accept_tokens(tokens) == len(tokens)
            rows = np.full((len(matchers), WORDS), -1, dtype=np.int32)
            gs.fill_bitmasks(matchers, rows, threads)
            assert [row.tobytes() for row in rows] == [replays[which].mask(tokens) for which, tokens in part]
