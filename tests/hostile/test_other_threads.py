"""While one thread computes, others get their turns: a thread that wakes up again and again is hardly ever late."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

import grammarspec as gs
from tests.hostile.lark_files import LARK_FILES
from tests.hostile.regexes import REGEXES
from tests.hostile.schemas import SCHEMAS

_LATE = 0.020  # seconds
_TRIES = 6  # a busy machine makes a thread late now and then, a lock that is held makes it late each time

_STATISTICS = Path("/proc/thread-self/schedstat")
pytestmark = pytest.mark.skipif(not _STATISTICS.exists(), reason="Linux tells for how long a thread was ready to run")

VOCABULARY = gs.Vocabulary.bytes()
COMMAS = list(b"," * 60)
"""A beginning of texts with counts in counts; every call is at work for long behind it."""


TEXTS = [b"%d" % i for i in range(400_000)]


def counting() -> gs.Matcher:
    """A matcher on a constraint that no call has used: one that can be cancelled is not found again."""
    grammar = gs.lark(LARK_FILES["counts of rules in counts"])
    return gs.compile(grammar, VOCABULARY, limits=gs.Limits(max_steps=4_000_000), cancel=gs.CancelToken()).matcher()


def walked(grammar: gs.Grammar) -> None:
    """What can be computed with few limits: the start, its mask, and the first tokens."""
    limits = gs.Limits(max_steps=2_000_000)
    matcher = gs.compile(grammar, VOCABULARY, limits=limits, cancel=gs.CancelToken()).matcher()
    matcher.fill_bitmask(gs.allocate_bitmask(1, VOCABULARY.size))
    matcher.accept_tokens(list(b"abcdefgh" * 8))


CALLS: dict[str, Callable[[gs.Matcher], Any]] = {
    "accept": lambda matcher: matcher.accept_tokens(COMMAS),
    "validate": lambda matcher: matcher.validate_tokens(COMMAS),
    "draft": lambda matcher: matcher.fill_draft_bitmasks(COMMAS, gs.allocate_bitmask(61, VOCABULARY.size)),
    "forced bytes": lambda matcher: matcher.forced_bytes(bytes(COMMAS)),
    "next bytes": lambda matcher: matcher.next_bytes(bytes(COMMAS)),
    "masks of a regex": lambda _: walked(gs.regex(REGEXES["lookaheads, twenty distances"])),
    "a large choice": lambda _: walked(gs.choice([f"{i:06d}" * 3 for i in range(20_000)])),
    "a front-end": lambda _: gs.json_schema(SCHEMAS["a wide union"]),
    "a vocabulary": lambda _: gs.Vocabulary.from_tokens(TEXTS, [400_000]),
}


def longest_wait(name: str) -> tuple[float, float]:
    """The longest time between two turns of this thread while another one makes a call; and how long that one took."""
    matcher, done = counting(), threading.Event()

    def run() -> None:
        try:
            CALLS[name](matcher)
        except gs.LimitExceeded:
            pass
        finally:
            done.set()

    thread = threading.Thread(target=run)
    with _STATISTICS.open("rb", buffering=0) as statistics:
        thread.start()
        started = before = _clock(statistics)
        longest = 0.0
        while not done.is_set():
            time.sleep(0.001)
            now = _clock(statistics)
            longest, before = max(longest, now - before), now
    thread.join()
    return longest, before - started


def _clock(statistics: IO[bytes]) -> float:
    """The time, less that for which this thread was ready to run and the machine ran others (proc(5), schedstat)."""
    statistics.seek(0)
    _running, waiting, _slices = statistics.read().split()
    return time.perf_counter() - int(waiting) / 1e9


@pytest.mark.parametrize("name", CALLS)
def test_others_run_while_one_computes(name: str) -> None:
    waits = []
    for _ in range(_TRIES):
        wait, worked = longest_wait(name)
        waits.append(wait)
        assert worked > _LATE, "too short to say anything"
        if wait < _LATE:
            return
    pytest.fail(f"others waited for {[f'{wait:.3f}' for wait in waits]} seconds")
