"""Compiling an equal grammar again finds the automaton that there is."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

import grammarspec as gs

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
TEXT = b'{"id": 1'
TOKENS = [
    *(bytes([byte]) for byte in range(128)),
    b'{"',
    b'":',
    b'",',
    b'": "',
    b'", "',
    b"[[",
    b"]]",
    b"], [",
    b"}, {",
    b'"}',
    b"12",
    b"tr",
    b"[1",
    b", ",
    b"  ",
]
JSON = ('{"a": [[1, 12], [true]], "b": "cd"}', '[{"ab": 1.5e3}, null, "x", [[], {}], false]')


@pytest.fixture
def vocabulary() -> gs.Vocabulary:
    return gs.Vocabulary.bytes()


def compiled(vocabulary: gs.Vocabulary, limits: gs.Limits | None = None, **schema: object) -> gs.Constraint:
    """A constraint of a grammar that the front-end makes anew."""
    return gs.compile(gs.json_schema({**SCHEMA, **schema}), vocabulary, limits=limits)


def used(constraint: gs.Constraint) -> gs.Constraint:
    matcher = constraint.matcher()
    assert matcher.accept_tokens(TEXT) == len(TEXT)
    matcher.fill_bitmask(gs.allocate_bitmask(1, 257))
    return constraint


def masks(constraint: gs.Constraint, text: str) -> list[bytes]:
    """That before each character of a text, and behind it."""
    matcher, row, found = constraint.matcher(), gs.allocate_bitmask(1, len(TOKENS)), list[bytes]()
    for token in [*map(ord, text), None]:
        matcher.fill_bitmask(row)
        found.append(row.tobytes())
        assert token is None or matcher.accept_token(token)
    return found


def written(constraint: gs.Constraint, text: str) -> gs.Constraint:
    masks(constraint, text)
    return constraint


def is_new(constraint: gs.Constraint) -> bool:
    return constraint.stats()["states"] == 2  # the start, and that behind the end


def test_equal_grammars_share(vocabulary: gs.Vocabulary) -> None:
    one = used(compiled(vocabulary))
    other = compiled(vocabulary)
    assert other.stats() == one.stats() and repr(other) == repr(one) and not is_new(other)
    assert other.start == one.start and other.matcher().constraint is other
    assert is_new(compiled(vocabulary, required=["id"]))
    assert is_new(compiled(vocabulary, gs.Limits(max_steps=1_000_000)))
    assert is_new(compiled(vocabulary, gs.Limits(timeout=9.0)))
    assert is_new(compiled(gs.Vocabulary.bytes())) and is_new(compiled(vocabulary.without_caches()))


def test_what_has_no_user_waits(vocabulary: gs.Vocabulary) -> None:
    limits = gs.Limits(timeout=60.0)  # of each call, whoever makes it
    used(compiled(vocabulary, limits))
    counted = vocabulary.index.stats()
    assert counted["constraints"] == counted["waiting"] == 1
    again = compiled(vocabulary, limits)
    assert not is_new(again)
    assert counted["memory"] > again.stats()["memory"]
    assert vocabulary.index.stats() == {"constraints": 1, "waiting": 0, "memory": 0}
    pin, matcher = again.pin([again.start]), again.matcher()
    del again
    assert vocabulary.index.stats()["waiting"] == 0, "a matcher uses it"
    del matcher
    assert vocabulary.index.stats()["waiting"] == 1
    pin.release()


def test_bounds(vocabulary: gs.Vocabulary) -> None:
    for i in range(40):
        gs.compile(gs.literal(f"text {i}"), vocabulary)
    assert vocabulary.index.stats()["waiting"] == 32
    vocabulary.keep(constraints=2)
    assert vocabulary.index.stats()["constraints"] == 2
    used(compiled(vocabulary))
    vocabulary.keep(memory=1000)
    assert vocabulary.index.stats() == {"constraints": 0, "waiting": 0, "memory": 0}
    used(compiled(vocabulary))
    assert is_new(compiled(vocabulary))
    with pytest.raises(ValueError, match="keeps no constraints"):
        vocabulary.without_caches().keep()
    with pytest.raises(OverflowError):
        vocabulary.keep(constraints=-1)


def test_what_only_new_masks_need_goes_first() -> None:
    """What holds more than may be kept is kept with its states and masks, and makes new masks as it should."""
    vocabulary = gs.Vocabulary.from_tokens(TOKENS, [1])
    constraint = written(gs.compile(gs.load("json"), vocabulary), JSON[0])
    before = constraint.stats()
    del constraint
    held = vocabulary.index.stats()["memory"]
    constraint = gs.compile(gs.load("json"), vocabulary)
    vocabulary.keep(memory=held - 1)
    del constraint
    waiting = vocabulary.index.stats()
    assert waiting["waiting"] == 1
    constraint = gs.compile(gs.load("json"), vocabulary)
    after = constraint.stats()
    assert held - waiting["memory"] == before["memory"] - after["memory"] > 0
    assert all(after[name] == before[name] for name in ("states", "masks", "row_bytes", "expressions"))
    written(constraint, JSON[0])
    assert constraint.stats() == after, "no mask was made again"
    other = gs.compile(gs.load("json"), vocabulary.without_caches())
    for text in JSON:
        assert masks(constraint, text) == masks(other, text)


def test_what_has_little_to_give_up_keeps_it(smollm2_tokenizer: Any) -> None:
    """Of those that wait, one gives up what only new masks need if that is much of what it holds; others stay whole."""
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    gs.compile(gs.json_schema(SCHEMA), vocabulary).matcher().fill_bitmask(gs.allocate_bitmask(1, vocabulary.size))
    little = vocabulary.index.stats()["memory"]
    constraint = gs.compile(gs.load("graphql"), vocabulary)
    matcher, row = constraint.matcher(), gs.allocate_bitmask(1, vocabulary.size)
    for token in smollm2_tokenizer.encode("query { a(b: 1) { c d } }", add_special_tokens=False):
        matcher.fill_bitmask(row)
        assert matcher.accept_token(token)
    before = constraint.stats()
    del constraint, matcher
    held = vocabulary.index.stats()["memory"]
    vocabulary.keep(memory=held - 1)
    waiting = vocabulary.index.stats()
    assert waiting["waiting"] == 2
    constraint = gs.compile(gs.load("graphql"), vocabulary)
    after = constraint.stats()
    assert held - waiting["memory"] == before["memory"] - after["memory"] > before["memory"] // 3
    assert after["masks"] == before["masks"]
    assert vocabulary.index.stats()["memory"] == little, "the other one, which waited longer, has all"


def test_what_can_be_cancelled_is_not_shared(vocabulary: gs.Vocabulary) -> None:
    shared, token = used(compiled(vocabulary)), gs.CancelToken()
    own = gs.compile(gs.json_schema(SCHEMA), vocabulary, cancel=token)
    assert is_new(own)
    used(own)
    token.cancel()
    del own
    assert vocabulary.index.stats()["constraints"] == 1
    assert shared.matcher().accept_tokens(TEXT) == len(TEXT)


def test_users_do_not_harm_each_other(vocabulary: gs.Vocabulary) -> None:
    """What a matcher holds outlives collections; what one user's states take beyond half of a limit is not shared."""
    limits = gs.Limits(max_states=40)
    grammar = gs.regex("[a-z]{30}")
    matcher, other = (gs.compile(grammar, vocabulary, limits=limits).matcher() for _ in range(2))
    assert matcher.accept_tokens(b"abc") == 3
    other.constraint.collect()
    assert matcher.accept_tokens(b"def") == 3
    assert other.accept_tokens(b"x" * 25) == 25
    fresh = gs.compile(grammar, vocabulary, limits=limits)
    assert is_new(fresh) and fresh.matcher().accept_tokens(b"y" * 30) == 30


def test_threads_share(vocabulary: gs.Vocabulary) -> None:
    """All find constraints while others use, drop and compile them; forks meanwhile are no harm."""
    vocabulary.keep(constraints=2)
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for i in range(first, first + 60):
                used(compiled(vocabulary, required=["id", "name"][: i % 3]))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    counted = vocabulary.index.stats()
    assert counted["constraints"] == counted["waiting"] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
def test_a_fork_has_what_was_kept(vocabulary: gs.Vocabulary) -> None:
    used(compiled(vocabulary))
    child = os.fork()
    if child == 0:
        os._exit(int(is_new(compiled(vocabulary))))
    assert os.waitpid(child, 0)[1] == 0
    assert not is_new(compiled(vocabulary))
