"""A cache of constraints for a server: from requests to constraints with their first mask computed.

Constraints are looked up by the content of requests. The cache keeps its constraints within a bound in bytes, although
automata grow while they are used; the least recently used are evicted first. If several threads ask for the same
constraint at the same time, one of them makes it, and the others wait.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Final

from grammarspec._compiler import Constraint
from grammarspec.constraint import Limits, compile
from grammarspec.errors import Cancelled, GrammarError
from grammarspec.serving.bounds import check_whole
from grammarspec.serving.disk import DiskStore
from grammarspec.serving.requests import Lowered, Request
from grammarspec.vocabulary import Vocabulary

__all__ = ["CacheStats", "GrammarCache"]

_RECENT: Final = 32
"""How many of the entries that were used last are measured when another is added."""
_IN_TURN: Final = 16
"""How many of all entries are, in turn; at least 2, so that those that were evicted leave the queue."""
_EMPTY: Final = 32 << 10
"""Bytes that each automaton takes in addition to those that it counts: tables that are empty at first."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Counters of a cache since it was made, and what it holds now.

    Attributes:
        hits: calls whose constraint was in the cache.
        misses: calls that had to make their constraint.
        joined: calls that waited for another thread to make the same constraint.
        failures: requests that could not be compiled.
        evictions: constraints that were removed to make room.
        entries: constraints that are in the cache.
        bytes: the bytes of these constraints.
        disk_hits: lowered requests that were read from a file, so that the front-end did not run.
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
    """Bytes of the entry that the automaton does not count."""
    bytes: int = 0

    def measure(self) -> int:
        """The bytes by which the entry has grown since the last call; 0 while another thread uses the constraint."""
        held = self.constraint.memory
        now = self.bytes if held is None else held + self.beside
        grown, self.bytes = now - self.bytes, now
        return grown


class GrammarCache:
    """Constraints for one vocabulary, looked up by the content of requests. Thread-safe.

    A constraint that was evicted stays valid as long as its users hold it or one of its matchers.

    Attributes:
        vocabulary: the tokens of the model.
        limits: the limits of each request.
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
            max_bytes: the largest number of bytes of all constraints in the cache together.
            limits: the limits of each request: for its front-end, for compiling, and for each mask and step; by default
                ``Limits()``.
            threads: the number of threads of :meth:`submit`; by default one for every two cores.
            directory: a folder for lowered requests, so that this and other processes need not run the front-end for
                them again. Whoever can write to the folder decides what requests mean.
            max_disk_bytes: the largest number of bytes of all files in the folder together.

        Raises:
            TypeError: ``vocabulary`` is not a vocabulary.
            ValueError: a bound is negative, or ``threads`` below 1.
        """
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(f"GrammarCache() takes a gs.Vocabulary, not {vocabulary!r:.60}")
        check_whole("max_bytes", max_bytes, 0)
        check_whole("max_disk_bytes", max_disk_bytes, 0)
        if threads is not None:
            check_whole("threads", threads, 1)
        self.vocabulary, self.limits = vocabulary, limits or Limits()
        self._max_bytes = max_bytes
        self._threads = threads or max(1, (os.cpu_count() or 1) // 2)
        self._store = None if directory is None else DiskStore(directory, max_disk_bytes)
        self._lock = Lock()
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._flights: dict[bytes, Future[Constraint]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._turns: OrderedDict[bytes, None] = OrderedDict()  # keys of all entries, and of some that were evicted
        self._bytes = 0
        self._counts = dict.fromkeys(("hits", "misses", "joined", "failures", "evictions", "disk_hits"), 0)

    # ------------------------------------------------------------------ asking
    def constraint(self, request: Request | Lowered) -> Constraint:
        """The constraint of a request, with its first mask computed.

        Args:
            request: the request, or its lowered form.

        Raises:
            GrammarError: the grammar of the request is wrong, not supported, or exceeds a limit.
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
            gone.clear()  # freeing automata takes long, so this is done without the lock
            return entry.constraint
        return self._make(key, request) if waited is None else waited.result()

    def submit(self, request: Request | Lowered) -> Future[Constraint]:
        """Call :meth:`constraint` in a thread of the cache. ``asyncio.wrap_future`` makes the future awaitable.

        Raises:
            RuntimeError: another thread is closing the cache.
        """
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, "grammarspec-compile")
            pool = self._pool
        return pool.submit(self.constraint, request)

    def ready(self, request: Request | Lowered) -> bool:
        """Whether the constraint is in the cache, so that :meth:`constraint` returns at once.

        Raises:
            GrammarSyntaxError, TypeError: as :attr:`.Request.key`.
        """
        key = self._key(request)
        with self._lock:
            return key in self._entries

    def lower(self, request: Request) -> Lowered:
        """The lowered form of a request: read from the folder of the cache, or made by :meth:`.Request.lower`.

        Raises:
            GrammarError, TypeError, ValueError, MissingPackage: as :meth:`.Request.lower`.
        """
        return self._lowered(request)[0]

    def _lowered(self, request: Request) -> tuple[Lowered, Constraint | None]:
        """The lowered form of a request, with its constraint if it was compiled for that.

        Raises:
            GrammarError, TypeError, ValueError, MissingPackage: as :meth:`.Request.lower`.
        """
        if self._store is None or request.kind == "lowered":
            return request.compiled(self.vocabulary, limits=self.limits)
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
                return found, None
        made = request.compiled(self.vocabulary, limits=self.limits)
        self._store.put(key, made[0].to_bytes())
        return made

    # ------------------------------------------------------------------ what is held
    def stats(self) -> CacheStats:
        """The counters, and what the cache holds now.

        Constraints grow while they are used. This measures all of them, and evicts some if the bound is exceeded.
        """
        with self._lock:
            self._measure()
            gone = self._shrink()
            damaged = self._store.damaged if self._store else 0
            found = CacheStats(**self._counts, entries=len(self._entries), bytes=self._bytes, disk_damaged=damaged)
        del gone  # freeing automata takes long, so this is done without the lock
        return found

    def clear(self) -> None:
        """Remove all constraints; their users can go on using them."""
        with self._lock:
            gone, self._entries, self._bytes = self._entries, OrderedDict(), 0
            self._turns.clear()
        gone.clear()

    def close(self) -> None:
        """Wait until the threads of the cache have finished their work, end them, and remove all constraints."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        self.clear()

    # ------------------------------------------------------------------ making
    @staticmethod
    def _key(request: Request | Lowered) -> bytes:
        if isinstance(request, Request | Lowered):
            return request.key
        raise TypeError(f"expected a Request or a Lowered, not {request!r:.60}")

    def _make(self, key: bytes, request: Request | Lowered) -> Constraint:
        """Make a constraint, for which other threads may wait."""
        flight = self._flights[key]
        try:
            lowered, constraint = self._lowered(request) if isinstance(request, Request) else (request, None)
            if constraint is None:
                constraint = compile(lowered.grammar, self.vocabulary, limits=self.limits)
                constraint.mask(constraint.start)
            entry = _Entry(constraint, _EMPTY + 2 * len(lowered.ir.to_bytes()))
            with self._lock:
                self._entries[key] = entry
                self._turns[key] = None
                self._measure_some()
                gone = self._shrink()
        except BaseException as error:
            with self._lock:
                del self._flights[key]
                self._counts["failures"] += 1
            # Threads that wait must not raise what interrupted this thread (KeyboardInterrupt).
            shared = error if isinstance(error, Exception) else Cancelled("the thread that compiled was interrupted")
            flight.set_exception(shared)
            raise
        with self._lock:
            del self._flights[key]
        flight.set_result(constraint)
        del gone  # freeing automata takes long, so this is done without the lock
        return constraint

    def _measure(self) -> None:
        self._bytes += sum(entry.measure() for entry in self._entries.values())

    def _measure_some(self) -> None:
        """Measure the entries that were used last, which are the ones that grow, and others in turn.

        Measuring all of them whenever one is added would take most of the time of a cache with a thousand entries.
        """
        recent = islice(reversed(self._entries.values()), _RECENT)
        self._bytes += sum(entry.measure() for entry in recent)
        for _ in range(min(_IN_TURN, len(self._turns))):
            key, _ = self._turns.popitem(last=False)
            entry = self._entries.get(key)
            if entry is not None:
                self._bytes += entry.measure()
                self._turns[key] = None

    def _shrink(self) -> list[_Entry]:
        """Evict constraints until the bound holds, the least recently used first."""
        gone = []
        while self._bytes > self._max_bytes and self._entries:
            _, entry = self._entries.popitem(last=False)
            self._bytes -= entry.bytes
            self._counts["evictions"] += 1
            gone.append(entry)
        return gone


def _release() -> bytes:
    """A part of keys that differs between releases, as they may lower a request differently."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{version('grammarspec')} ".encode()
    except PackageNotFoundError:  # a checkout that is on the path, but not installed
        return b"checkout "
