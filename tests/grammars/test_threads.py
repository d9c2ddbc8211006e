"""Threads and processes: who computes lets others run, no lock is held while Python runs, and forks go on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import grammarspec as gs

VOCABULARY = gs.Vocabulary.bytes()


def slow_to_step() -> gs.Constraint:
    """A constraint in which texts of some fifty commas take some millions of steps: counts within counts."""
    rules = 'start: a~1..1000\na: b~1..1000\nb: c~0..1000\nc: "x" | ","\n'
    limits = gs.Limits(max_steps=50_000_000)
    return gs.compile(gs.lark(rules), VOCABULARY, limits=limits, cancel=gs.CancelToken())  # shared with no other test


TEXT = b"," * 60


CALLS: dict[str, Callable[[gs.Matcher], Any]] = {
    "validate_tokens": lambda matcher: matcher.validate_tokens(TEXT),
    "accepting_prefixes": lambda matcher: matcher.accepting_prefixes(TEXT),
    "forced_bytes": lambda matcher: matcher.forced_bytes(TEXT),
    "next_bytes": lambda matcher: matcher.next_bytes(TEXT),
    "draft": lambda matcher: matcher.fill_draft_bitmasks(list(TEXT), gs.allocate_bitmask(61, VOCABULARY.size)),
}


def turns_during(work: Callable[[], Any]) -> int:
    """How often this thread gets its turn while another one works."""
    done, turns = threading.Event(), 0

    def run() -> None:
        try:
            work()
        finally:
            done.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        turns += 1
    thread.join()
    return turns


@pytest.mark.parametrize("name", CALLS)
def test_who_computes_lets_others_run(name: str) -> None:
    matcher = slow_to_step().matcher()
    assert turns_during(lambda: CALLS[name](matcher)) > 5


def test_who_compiles_lets_others_run() -> None:
    """A large grammar is compiled and walked."""
    grammar = gs.choice([f"{i:06d}" * 3 for i in range(60_000)])
    assert turns_during(lambda: gs.compile(grammar, VOCABULARY).matcher().accept_tokens(list(b"000001" * 3))) >= 1


def test_brief_calls_answer_as_others_do() -> None:
    """A call that is begun with the GIL and made again without it has the result of one that is made at once."""
    matcher = slow_to_step().matcher()
    assert matcher.validate_tokens(TEXT[:40]) == matcher.accept_tokens(TEXT[:40]) == 40
    assert matcher.validate_tokens(b"y") == 0
    grammar = gs.lark('start: a~1..1000\na: b~1..1000\nb: c~0..1000\nc: "x" | ","\n')
    limited = gs.compile(grammar, VOCABULARY, limits=gs.Limits(max_steps=100_000)).matcher()
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        limited.validate_tokens(TEXT)
    assert limited.accept_tokens(TEXT[:10]) == 10


def test_rows_may_run_python() -> None:
    """What an array's attributes run may use the matcher, in this thread or another."""
    matcher = gs.compile(gs.literal("a"), VOCABULARY).matcher()
    rows = gs.allocate_bitmask(1, VOCABULARY.size)

    class Rows:
        def __getattribute__(self, name: str) -> Any:
            other = threading.Thread(target=matcher.fill_bitmask, args=(rows,))
            other.start()
            other.join(60)
            assert not other.is_alive()
            raise AttributeError(name)

    with pytest.raises(TypeError):
        matcher.fill_bitmask(Rows())
    assert rows.any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_computes() -> None:
    constraint = slow_to_step()
    begun = threading.Event()

    def work() -> None:
        begun.set()
        constraint.matcher().validate_tokens(TEXT)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # a child that hangs is killed, and the test fails
        matcher = constraint.matcher()
        rows = [gs.allocate_bitmask(2, VOCABULARY.size) for _ in range(2)]
        gs.fill_bitmasks([matcher, matcher.fork()], rows[0], threads=2)
        fresh = gs.compile(gs.literal(","), VOCABULARY).matcher()
        fresh.fill_bitmask(rows[1])
        os._exit(0 if matcher.accept_token(44) and rows[0].any() and rows[1].any() else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


# ---------------------------------------------------------------------- arrays
def test_arrays_that_cannot_be_rows() -> None:
    matcher = gs.compile(gs.literal("a"), VOCABULARY).matcher()
    words = gs.allocate_bitmask(1, VOCABULARY.size).shape[1]
    plain = np.zeros((4, words), dtype=np.int32)
    overlapping = np.lib.stride_tricks.as_strided(plain, shape=(2, words), strides=(4, 4))
    unaligned = np.zeros(4 * words + 1, dtype=np.uint8)[1:].view(np.int32).reshape(1, words)
    wrong: list[Any] = [
        plain.astype(">i4"), plain.astype(np.uint32), overlapping, unaligned, plain[:, ::-1], plain[::-1],
        np.zeros((1, 1, words), dtype=np.int32), np.zeros((), dtype=np.int32), b"x" * 4 * words, None, [0] * words,
        memoryview(bytes(4 * words)), np.zeros((1, words), dtype=object),
    ]  # fmt: skip
    for rows in wrong:
        with pytest.raises(TypeError):
            matcher.fill_bitmask(rows)
    for rows in (np.zeros((0, words), dtype=np.int32), np.zeros((1, 0), dtype=np.int32)):
        with pytest.raises((IndexError, ValueError)):
            matcher.fill_bitmask(rows)
    matcher.fill_bitmask(plain[::2], 1)
    assert plain[2].any() and not plain[[0, 1, 3]].any()


def test_arrays_that_change_between_calls() -> None:
    matcher = gs.compile(gs.literal("a"), VOCABULARY).matcher()
    rows = gs.allocate_bitmask(4, VOCABULARY.size)
    matcher.fill_bitmask(rows, 3)
    rows.resize((1, rows.shape[1]), refcheck=False)
    with pytest.raises(IndexError):
        matcher.fill_bitmask(rows, 3)
    matcher.fill_bitmask(rows)
    rows.flags.writeable = False
    with pytest.raises(TypeError):
        matcher.fill_bitmask(rows)


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_tensors_without_memory() -> None:
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    matcher = gs.compile(gs.literal("a"), VOCABULARY).matcher()
    rows = torch.zeros((2, 9), dtype=torch.int32)
    matcher.fill_bitmask(rows, 1)
    rows.untyped_storage().resize_(9 * 4)  # room for one row of the two
    for row in (0, 1):
        with pytest.raises(TypeError):
            matcher.fill_bitmask(rows, row)
    rows.untyped_storage().resize_(0)
    with pytest.raises(TypeError):
        matcher.fill_bitmask(rows)
    with pytest.raises(TypeError):
        matcher.fill_bitmask(torch.zeros((2, 9), dtype=torch.int32, device="meta"))
    with FakeTensorMode():
        fake = torch.zeros((2, 9), dtype=torch.int32)
    with pytest.raises((TypeError, RuntimeError)):
        matcher.fill_bitmask(fake)


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 1e19, 5e-324])
def test_timeouts_of_any_size(timeout: float) -> None:
    constraint = gs.compile(gs.literal("a"), VOCABULARY, limits=gs.Limits(timeout=timeout))
    assert constraint.matcher().accept_token(97)
