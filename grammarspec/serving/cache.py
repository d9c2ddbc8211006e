"""A cache of constraints for a server: requests come in, constraints that are ready for use go out.

Constraints are found by the content of requests. All that the cache keeps is within so many bytes, however the
automata grow while they are used; the least recently used go first. Threads that ask for the same thing at the same
time wait for one of them that makes it.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Final

from grammarspec._compiler import Constraint
from grammarspec.constraint import Limits, compile
from grammarspec.errors import Cancelled, GrammarError
from grammarspec.serving.disk import DiskStore
from grammarspec.serving.requests import Lowered, Request
from grammarspec.vocabulary import Vocabulary

__all__ = ["CacheStats", "GrammarCache"]

_EMPTY: Final = 32 << 10
"""Bytes that each automaton has beyond what it counts itself: tables that are empty at first."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache has done since it was made, and what it holds.

    Attributes:
        hits: constraints that were there.
        misses: constraints that had to be made.
        joined: calls that waited for another thread that made the same constraint.
        failures: requests that could not be answered.
        evictions: constraints that went to make room.
        entries: constraints that are there.
        bytes: what is held for them.
        disk_hits: front-ends that were spared by a file.
        disk_damaged: files that were damaged.
    """

    hits: int
    misses: int
    joined: int
    failures: int
    evictions: int
    entries: int
    bytes: int
    disk_hits: int
    disk_damaged: int


@dataclass(slots=True)
class _Entry:
    constraint: Constraint
    beside: int
    """Bytes beside what the automaton counts."""
    bytes: int = 0

    def measure(self) -> int:
        """By how many bytes it has grown since it was measured; 0 while another thread computes with it."""
        held = self.constraint.memory
        now = self.bytes if held is None else held + self.beside
        grown, self.bytes = now - self.bytes, now
        return grown


class GrammarCache:
    """Constraints on one vocabulary, by the content of requests. Thread-safe.

    A constraint that goes to make room stays alive as long as somebody holds it or one of its matchers.

    Attributes:
        vocabulary: the tokens of the model.
        limits: what each request may use.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        max_bytes: int = 512 << 20,
        limits: Limits | None = None,
        threads: int | None = None,
        directory: str | os.PathLike[str] | None = None,
        max_disk_bytes: int = 1 << 30,
    ) -> None:
        """An empty cache.

        Args:
            vocabulary: the tokens of the model.
            max_bytes: what all constraints may hold together, as far as the cache keeps them.
            limits: what each request may use: its front-end, compiling it, and each mask and token. Those with the
                defaults if not given.
            threads: how many threads :meth:`submit` has; by default one for every two cores.
            directory: a folder where lowered requests are kept, which spares the front-end the next time, in other
                processes, too. Whoever may write to it decides what requests mean.
            max_disk_bytes: what the files may hold together.

        Raises:
            TypeError: ``vocabulary`` is none.
            ValueError: a bound is negative, or ``threads`` below 1.
        """
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(f"GrammarCache() takes a gs.Vocabulary, not {vocabulary!r:.60}")
        if max_bytes < 0 or max_disk_bytes < 0 or (threads is not None and threads < 1):
            raise ValueError("bounds must not be negative, and threads must be at least 1")
        self.vocabulary, self.limits = vocabulary, limits or Limits()
        self._max_bytes = max_bytes
        self._threads = threads or max(1, (os.cpu_count() or 1) // 2)
        self._store = None if directory is None else DiskStore(directory, max_disk_bytes)
        self._lock = Lock()
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._flights: dict[bytes, Future[Constraint]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._bytes = 0
        self._counts = dict.fromkeys(("hits", "misses", "joined", "failures", "evictions", "disk_hits"), 0)

    # ------------------------------------------------------------------ asking
    def constraint(self, request: Request | Lowered) -> Constraint:
        """The constraint of a request, with its first mask computed.

        Args:
            request: the request, or what it was lowered to.

        Raises:
            GrammarError: the request cannot be answered.
            TypeError, ValueError, MissingPackage: as :meth:`.Request.lower`.
        """
        key = self._key(request)
        waited: Future[Constraint] | None = None
        gone: list[_Entry] = []
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                self._counts["hits"] += 1
                self._bytes += entry.measure()
                gone = self._shrink()
            else:
                waited = self._flights.get(key)
                if waited is None:
                    self._flights[key] = Future()
                self._counts["misses" if waited is None else "joined"] += 1
        if entry is not None:
            gone.clear()  # dropping automata takes long; the lock is free meanwhile
            return entry.constraint
        return self._make(key, request) if waited is None else waited.result()

    def submit(self, request: Request | Lowered) -> Future[Constraint]:
        """The same in a thread of the cache's own: a future, which ``asyncio.wrap_future`` makes awaitable.

        Raises:
            RuntimeError: the cache is closed.
        """
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, "grammarspec-compile")
            pool = self._pool
        return pool.submit(self.constraint, request)

    def ready(self, request: Request | Lowered) -> bool:
        """Whether :meth:`constraint` would answer at once, since the constraint is in the cache.

        Raises:
            GrammarSyntaxError, TypeError: as :attr:`.Request.key`.
        """
        key = self._key(request)
        with self._lock:
            return key in self._entries

    def lower(self, request: Request) -> Lowered:
        """What a request is lowered to, found in the folder of the cache or made, and tried.

        Raises:
            GrammarError, TypeError, ValueError, MissingPackage: as :meth:`.Request.lower`.
        """
        if self._store is None or request.kind == "lowered":
            return request.lower(self.vocabulary, limits=self.limits)
        key = hashlib.sha256(_release() + request.key).digest()
        data = self._store.get(key)
        if data is not None:
            try:
                found = Lowered.from_bytes(data)
            except GrammarError:
                self._store.damaged += 1
            else:
                with self._lock:
                    self._counts["disk_hits"] += 1
                return found
        lowered = request.lower(self.vocabulary, limits=self.limits)
        self._store.put(key, lowered.to_bytes())
        return lowered

    # ------------------------------------------------------------------ what is held
    def stats(self) -> CacheStats:
        """Counters, and what is held now."""
        with self._lock:
            self._measure()
            damaged = self._store.damaged if self._store else 0
            return CacheStats(**self._counts, entries=len(self._entries), bytes=self._bytes, disk_damaged=damaged)

    def clear(self) -> None:
        """Drop all constraints; those in use stay with their users."""
        with self._lock:
            gone, self._entries, self._bytes = self._entries, OrderedDict(), 0
        gone.clear()

    def close(self) -> None:
        """End the cache's threads, once they have done what they were given, and drop all constraints."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        self.clear()

    # ------------------------------------------------------------------ making
    @staticmethod
    def _key(request: Request | Lowered) -> bytes:
        if isinstance(request, Request):
            return request.key
        if isinstance(request, Lowered):
            return request.key()
        raise TypeError(f"expected a Request or a Lowered, not {request!r:.60}")

    def _make(self, key: bytes, request: Request | Lowered) -> Constraint:
        """Make a constraint that others may wait for."""
        flight = self._flights[key]
        try:
            lowered = self.lower(request) if isinstance(request, Request) else request
            constraint = compile(lowered.grammar, self.vocabulary, limits=self.limits)
            constraint.mask(constraint.start)
            entry = _Entry(constraint, _EMPTY + 2 * len(lowered.ir.to_bytes()))
            with self._lock:
                self._entries[key] = entry
                self._measure()
                gone = self._shrink()
        except BaseException as error:
            with self._lock:
                del self._flights[key]
                self._counts["failures"] += 1
            # who waits is not interrupted by what interrupts this thread
            shared = error if isinstance(error, Exception) else Cancelled("the thread that compiled was interrupted")
            flight.set_exception(shared)
            raise
        with self._lock:
            del self._flights[key]
        flight.set_result(constraint)
        del gone  # dropping automata takes long; the lock is free meanwhile
        return constraint

    def _measure(self) -> None:
        self._bytes += sum(entry.measure() for entry in self._entries.values())

    def _shrink(self) -> list[_Entry]:
        """Take out what is beyond the bound, the least recently used first."""
        gone = []
        while self._bytes > self._max_bytes and self._entries:
            _, entry = self._entries.popitem(last=False)
            self._bytes -= entry.bytes
            self._counts["evictions"] += 1
            gone.append(entry)
        return gone


def _release() -> bytes:
    """What tells what different releases write apart."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{version('grammarspec')} ".encode()
    except PackageNotFoundError:  # a checkout that is on the path, but not installed
        return b"checkout "
