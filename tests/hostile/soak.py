"""Threads on shared constraints for half an hour: masks stay right, memory stays where it is, and nothing hangs.

``python -m tests.hostile.soak --minutes 30 --threads 8`` prints one line of figures. Random grammars come and go; walks
roll back, fork and pin; limits are hit, work is cancelled, states are collected.
"""

from __future__ import annotations

import argparse
import faulthandler
import pickle
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import grammarspec as gs
from tests.hostile import drawing
from tests.hostile.measuring import allocated, memory

_CONSTRAINTS = 24
_TOKENS = 60  # of a walk
_SILENCE = 300.0  # seconds of one call after which a thread hangs
_LONG = 5.0  # seconds of a walk, which some random grammars make slow: others are to have their turn
_ROOM = 32_000_000  # bytes of one constraint, so that all together soon have all that they may have
_TIGHT: list[dict[str, Any]] = [
    {"max_states": 30}, {"max_memory": 3_000_000}, {"max_steps": 30_000}, {"timeout": 0.05},
]  # fmt: skip


@dataclass
class Shared:
    """A constraint that all threads use."""

    grammar: gs.Grammar
    constraint: gs.Constraint
    cancel: gs.CancelToken


@dataclass
class Soak:
    """What the threads share."""

    vocabulary: gs.Vocabulary
    until: float
    pool: list[Shared] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    alive: dict[int, float] = field(default_factory=dict)

    def work(self, number: int) -> None:
        """What one thread does."""
        draw = random.Random(number)
        while time.monotonic() < self.until:
            self.alive[number] = time.monotonic()
            shared: Shared | None = None
            try:
                if len(self.pool) < _CONSTRAINTS or draw.random() < 0.02:
                    self._replace(draw)
                else:
                    shared = draw.choice(self.pool)
                    _Walk(self, shared, draw, number).run()
            except gs.LimitExceeded:
                self.counts["limits hit"] += 1
            except gs.Cancelled:
                self.counts["cancelled"] += 1
            except gs.GrammarError:
                self.counts["refused"] += 1
            except BaseException as error:
                self.wrong.append(f"{shared and shared.grammar!r:.300}: {type(error).__name__}: {error}")
        del self.alive[number]

    def _replace(self, draw: random.Random) -> None:
        """A new constraint; past their number, instead of another one, whose work may be cancelled."""
        made = draw.choice(
            [
                lambda: gs.json_schema(drawing.schema(draw), property_order=draw.choice(["declared", "any"])),
                lambda: gs.json_schema(drawing.schema(draw)),
                lambda: gs.regex(drawing.regex(draw)),
                lambda: gs.lark(drawing.lark_file(draw)),
            ]
        )()
        cancel = gs.CancelToken()
        limits = gs.Limits(**{"max_memory": _ROOM, **(draw.choice(_TIGHT) if draw.random() < 0.3 else {})})
        new = Shared(made, gs.compile(made, self.vocabulary, limits=limits, cancel=cancel), cancel)
        self.counts["constraints"] += 1
        if len(self.pool) < _CONSTRAINTS:
            self.pool.append(new)
            return
        place = draw.randrange(len(self.pool))
        old, self.pool[place] = self.pool[place], new
        if draw.random() < 0.5:
            old.cancel.cancel()


@dataclass
class _Walk:
    """One text on a shared constraint. Whenever a state is seen again, its mask is what it was."""

    soak: Soak
    shared: Shared
    draw: random.Random
    thread: int
    tokens: list[int] = field(default_factory=list)
    masks: list[bytes] = field(default_factory=list)

    def run(self) -> None:
        matcher = self.shared.constraint.matcher()
        rows = gs.allocate_bitmask(1, self.soak.vocabulary.size)
        pins: list[tuple[gs.Matcher, Any, int, bytes]] = []
        self.soak.counts["walks"] += 1
        started = time.monotonic()
        for _ in range(_TOKENS):
            self.soak.alive[self.thread] = now = time.monotonic()
            if now > started + _LONG:
                self.soak.counts["walks cut short"] += 1
                break
            matcher.fill_bitmask(rows)
            row = rows.tobytes()
            self.soak.counts["masks"] += 1
            self._same(len(self.tokens), row)
            allowed = np.flatnonzero(np.unpackbits(rows.view(np.uint8), bitorder="little"))
            token = int(self.draw.choice(allowed)) if len(allowed) else self._empty(matcher)
            if token in self.soak.vocabulary.eos_token_ids:
                break
            if not matcher.accept_token(token):
                self._wrong(f"token {token} of the mask is refused")
            self.tokens.append(token)
            self._aside(matcher, row, pins)
        for holder, pin, state, row in pins:
            if holder.constraint.mask(state) != row:
                self._wrong("the mask of a pinned state has changed")
            pin.release()
        if self.draw.random() < 0.1:
            self._compared()

    def _wrong(self, what: str) -> None:
        self.soak.wrong.append(f"{self.shared.grammar!r:.300}: {what} behind {self.tokens}")

    def _empty(self, matcher: gs.Matcher) -> int:
        self._wrong("an empty mask")
        return self.soak.vocabulary.eos_token_ids[0]

    def _same(self, place: int, row: bytes) -> None:
        """The mask of a place that has one already is that one."""
        if place == len(self.masks):
            self.masks.append(row)
        elif self.masks[place] != row:
            self._wrong("another mask")

    def _aside(self, matcher: gs.Matcher, row: bytes, pins: list[Any]) -> None:
        """Now and then something else than the next token."""
        match self.draw.randrange(40):
            case 0:
                back = self.draw.randint(0, len(self.tokens))
                matcher.rollback(back)
                del self.tokens[len(self.tokens) - back :]
                del self.masks[len(self.tokens) + 1 :]  # of texts that go on otherwise now
            case 1:
                other = matcher.fork()
                other.rollback(self.draw.randint(0, len(self.tokens)))
                other.forced_bytes()
            case 2:
                state = matcher.state
                pins.append((matcher, matcher.constraint.pin([state]), state, matcher.constraint.mask(state)))
            case 3:
                self.soak.counts["states collected"] += matcher.constraint.collect()
            case 4:
                ending = matcher.constraint.shortest_completion(matcher.state)
                if matcher.validate_tokens(ending) != len(ending):
                    self._wrong("a completion is refused")
            case 5:
                draft = [*self.soak.vocabulary.index.spell(matcher.forced_bytes()[:50]), 97, 98]
                matcher.fill_draft_bitmasks(draft, gs.allocate_bitmask(len(draft) + 1, self.soak.vocabulary.size))

    def _compared(self) -> None:
        """Every mask is that of a constraint of this text's own, which shares nothing."""
        fresh = gs.compile(self.shared.grammar, self.soak.vocabulary.without_caches()).matcher()
        for token, row in zip([*self.tokens, None], self.masks, strict=False):
            self.soak.counts["masks compared"] += 1
            if fresh.constraint.mask(fresh.state) != row:
                self._wrong("not the mask of a fresh constraint")
                return
            if token is not None:
                fresh.accept_token(token)


def words() -> gs.Vocabulary:
    """The bytes, and longer tokens of what random grammars write."""
    draw = random.Random(0)
    longer = {"".join(draw.choices('ab{}[]",: 0123456789xyz', k=draw.randint(2, 5))).encode() for _ in range(1_500)}
    tokens = [*(bytes([value]) for value in range(256)), *sorted(longer), b'": ', b'", "', b"true", b"null"]
    return gs.Vocabulary.from_tokens([*tokens, None], [len(tokens)])


def _course(sizes: np.ndarray, slope: float) -> str:
    """How sizes in MB went, for people: the median of each fifth of the time, and the slope over all of it."""
    medians = ", ".join(f"{np.median(part):.1f}" for part in np.array_split(sizes, 5) if len(part))
    return f"{medians} MB ({slope:+.2f} MB per minute)"


def main() -> int:
    """Soak, print the figures, and return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--vocabulary", type=Path, help="a pickled gs.Vocabulary; some 1,700 tokens if not given")
    options = parser.parse_args()
    vocabulary = pickle.loads(options.vocabulary.read_bytes()) if options.vocabulary else words()
    started = time.monotonic()
    soak = Soak(vocabulary, started + 60 * options.minutes)
    threads = [threading.Thread(target=soak.work, args=(i,), daemon=True) for i in range(options.threads)]
    for thread in threads:
        thread.start()
    silence, sizes = 0.0, list[tuple[float, float, float]]()
    while any(thread.is_alive() for thread in threads):
        time.sleep(min(2.0, options.minutes))
        now = time.monotonic()
        counted = sum(shared.constraint.stats()["memory"] for shared in soak.pool.copy())
        minute, resident, in_use = (now - started) / 60, memory("VmRSS"), allocated() or 0
        sizes.append((minute, (resident - counted) / 1e6, (in_use - counted) / 1e6))
        silence = max([silence, *(now - last for last in soak.alive.copy().values())])
        if silence > _SILENCE:
            faulthandler.dump_traceback()
            soak.wrong.append(f"a thread has made no call in {silence:.0f} seconds")
            break
    settled = np.array(sizes[len(sizes) // 4 :])  # before that, caches fill
    slopes = np.polyfit(settled[:, 0], settled[:, 1:], 1)[0] if len(settled) > 1 else np.zeros(2)
    figures = ", ".join(f"{count:,} {name}" for name, count in soak.counts.most_common())
    print(
        f"{(time.monotonic() - started) / 60:.1f} minutes, {options.threads} threads: {figures}; "
        f"memory beside constraints, of the process {_course(settled[:, 1], slopes[0])}, allocated "
        f"{_course(settled[:, 2], slopes[1])}; "
        f"longest call {silence:.1f} s; wrong: {len(soak.wrong)}"
    )
    print(*soak.wrong[:20], sep="\n", file=sys.stderr)
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
