"""The cache of constraints: found by content, bounded by bytes, made once however many ask, shared through a folder."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest

import grammarspec as gs
from grammarspec.serving import GrammarCache, Lowered, Request

VOCABULARY = gs.Vocabulary.bytes()


def requests(n: int) -> list[Request]:
    return [Request.json_schema({"properties": {f"key{i}": {"type": "string"}}}) for i in range(n)]


def test_equal_requests_are_one_constraint() -> None:
    cache = GrammarCache(VOCABULARY)
    first = cache.constraint(Request.choice(["a", "b"]))
    assert cache.constraint(Request.choice(["a", "b"])) is first
    assert cache.constraint(Request.choice(["a", "c"])) is not first
    lowered = Request.choice(["a", "b"]).lower()
    assert cache.constraint(lowered) is cache.constraint(Lowered.from_bytes(lowered.to_bytes()))
    stats = cache.stats()
    assert (stats.hits, stats.misses, stats.entries, stats.evictions) == (2, 3, 3, 0)
    cache.clear()
    assert cache.stats().entries == cache.stats().bytes == 0
    assert first.matcher().accept_token(ord("a"))


def test_it_keeps_to_its_bytes_and_the_least_recently_used_go_first() -> None:
    one = GrammarCache(VOCABULARY)
    one.constraint(requests(1)[0])
    each = one.stats().bytes
    cache = GrammarCache(VOCABULARY, max_bytes=int(4.5 * each))
    asked = requests(6)
    kept = [cache.constraint(request) for request in asked[:4]]
    assert cache.constraint(asked[0]) is kept[0]
    for request in asked[4:]:
        cache.constraint(request)
    stats = cache.stats()
    assert stats.evictions == 2 and stats.entries == 4 and stats.bytes <= 4.5 * each
    assert cache.constraint(asked[0]) is kept[0]
    misses = cache.stats().misses
    cache.constraint(asked[1])
    assert cache.stats().misses == misses + 1


def test_what_grows_while_it_is_used_counts() -> None:
    cache = GrammarCache(VOCABULARY, max_bytes=600_000)
    small = requests(3)
    for request in small:
        cache.constraint(request)
    before = cache.stats()
    growing = cache.constraint(Request.regex("[ab]{0,3000}"))
    matcher = growing.matcher()
    for token in b"ab" * 1000:
        assert matcher.accept_token(token)
    assert growing.memory is not None and growing.memory > 600_000
    cache.constraint(small[0])
    cache.constraint(Request.choice(["other"]))
    stats = cache.stats()
    assert stats.bytes <= 600_000 and stats.evictions > before.evictions
    assert matcher.accept_token(ord("a"))  # it goes on for those who have it


def test_adding_measures_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many entries there are; and all of them in turn, so that none can grow unseen."""
    from grammarspec.serving import cache as module

    measured: Counter[int] = Counter()
    plain = module._Entry.measure

    def counted(self: module._Entry) -> int:
        measured[id(self)] += 1
        return plain(self)

    monkeypatch.setattr(module._Entry, "measure", counted)
    cache = GrammarCache(VOCABULARY)
    for number in range(300):
        before = measured.total()
        cache.constraint(Request.choice([f"text {number}"]))
        assert measured.total() - before <= module._RECENT + module._IN_TURN
    measured.clear()
    for number in range(300, 330):
        cache.constraint(Request.choice([f"text {number}"]))
    assert len(measured) == 330
    assert cache._bytes == cache.stats().bytes
    small = GrammarCache(VOCABULARY, max_bytes=cache.stats().bytes // 33)
    for _ in range(20):  # what is evicted and comes again is not listed twice
        for number in range(15):
            small.constraint(Request.choice([f"text {number}"]))
    assert small.stats().evictions > 100 and len(small._turns) <= 15
    cache.clear()
    cache.constraint(Request.choice(["a"]))
    assert len(cache._turns) == 1 and 0 < cache.stats().bytes < 100_000


def test_the_counters_are_within_the_bound() -> None:
    """A constraint that has grown since it was last asked for is evicted when the counters are read."""
    cache = GrammarCache(VOCABULARY, max_bytes=600_000)
    matcher = cache.constraint(Request.regex("[xy]{0,3000}")).matcher()
    assert cache.stats().entries == 1
    assert matcher.accept_tokens(list(b"xy" * 1000)) == 2000
    stats = cache.stats()
    assert (stats.entries, stats.bytes, stats.evictions) == (0, 0, 1)


def test_a_bound_of_nothing_keeps_nothing() -> None:
    cache = GrammarCache(VOCABULARY, max_bytes=0)
    assert cache.constraint(Request.choice(["a"])).matcher().accept_token(ord("a"))
    assert cache.stats().entries == 0


def test_many_threads_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, lowered, began = GrammarCache(VOCABULARY), 0, threading.Barrier(8)
    plain = Request.compiled

    def slow(self: Request, *arguments: object, **options: object) -> tuple[Lowered, gs.Constraint]:
        nonlocal lowered
        lowered += 1
        time.sleep(0.1)
        return plain(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Request, "compiled", slow)
    found: list[gs.Constraint] = []

    def ask() -> None:
        began.wait()
        found.append(cache.constraint(Request.choice(["a"])))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = cache.stats()
    assert lowered == 1 and len(set(map(id, found))) == 1
    assert stats.misses == 1 and stats.joined + stats.hits == 7


def test_a_failure_is_told_to_all_who_wait_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, entered, go_on = GrammarCache(VOCABULARY), threading.Event(), threading.Event()
    plain = Request.compiled

    def slow(self: Request, *arguments: object, **options: object) -> tuple[Lowered, gs.Constraint]:
        entered.set()
        go_on.wait(10)
        return plain(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Request, "compiled", slow)
    bad = Request.regex("(")
    futures: list[Future[gs.Constraint]] = [cache.submit(bad)]
    entered.wait(10)
    told: list[BaseException] = []

    def ask() -> None:
        try:
            cache.constraint(bad)
        except gs.GrammarError as error:
            told.append(error)

    waiting = threading.Thread(target=ask)
    waiting.start()
    while cache.stats().joined == 0:
        time.sleep(0.001)
    go_on.set()
    waiting.join()
    assert isinstance(futures[0].exception(), gs.GrammarSyntaxError) and len(told) == 1
    with pytest.raises(gs.GrammarSyntaxError):
        cache.constraint(bad)
    assert cache.stats().failures == 2 and cache.stats().misses == 2 and cache.stats().entries == 0
    cache.close()


def test_futures_have_the_first_mask() -> None:
    cache = GrammarCache(VOCABULARY, threads=2)
    futures = [cache.submit(request) for request in requests(10)]
    assert all(future.result(30).stats()["masks"] >= 1 for future in futures)
    cache.close()
    assert cache.stats().entries == 0
    assert cache.submit(Request.choice(["a"])).result(30).matcher().accept_token(ord("a"))  # closed, it begins anew
    cache.close()


def test_lowered_requests_are_shared_through_a_folder(tmp_path: Path) -> None:
    request = Request.json_schema({"type": "integer"})
    assert GrammarCache(VOCABULARY, directory=tmp_path).constraint(request).matcher().accept_tokens(b"12") == 2
    (file,) = tmp_path.iterdir()
    written = file.read_bytes()
    again = GrammarCache(VOCABULARY, directory=tmp_path)
    assert again.constraint(request).matcher().accept_tokens(b"1a") == 1
    assert again.stats().disk_hits == 1

    for damaged in (b"", written[:50], written[:-1], written[:-1] + bytes([written[-1] ^ 1]), os.urandom(200)):
        file.write_bytes(damaged)
        cache = GrammarCache(VOCABULARY, directory=tmp_path)
        assert cache.constraint(request).matcher().accept_tokens(b"1a") == 1
        assert cache.stats().disk_hits == 0 and cache.stats().disk_damaged == 1
        assert file.read_bytes() == written  # replaced
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_file_of_another_request_is_not_taken(tmp_path: Path) -> None:
    cache = GrammarCache(VOCABULARY, directory=tmp_path)
    cache.constraint(Request.choice(["a"]))
    (first,) = tmp_path.iterdir()
    cache.constraint(Request.choice(["b"]))
    (second,) = set(tmp_path.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    found = GrammarCache(VOCABULARY, directory=tmp_path).constraint(Request.choice(["b"]))
    assert found.matcher().accept_token(ord("b"))


def test_the_folder_keeps_to_its_bytes(tmp_path: Path) -> None:
    cache = GrammarCache(VOCABULARY, directory=tmp_path, max_disk_bytes=20_000)
    for i in range(200):
        cache.lower(Request.choice([f"text {i} " * 10]))
    held = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 0 < held < 20_000 + 64 * 1000


def test_a_folder_that_cannot_be_used_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = GrammarCache(VOCABULARY, directory=tmp_path / "file" / "folder")
    assert cache.constraint(Request.choice(["a"])).matcher().accept_token(ord("a"))


def test_limits_are_those_of_requests_and_of_calls() -> None:
    hard = Request.grammar('start: a~1..1000\na: b~1..1000\nb: c~0..1000\nc: "x" | ","\n')
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        GrammarCache(VOCABULARY, limits=gs.Limits(max_steps=10)).constraint(hard)
    tight = GrammarCache(VOCABULARY, limits=gs.Limits(max_call_steps=1000))
    matcher = tight.constraint(hard).matcher()
    with pytest.raises(gs.LimitExceeded, match=r"max_call_steps \(limit 1000"):
        matcher.accept_tokens(b"," * 60)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="Vocabulary"):
        GrammarCache("smollm2")  # type: ignore[arg-type]
    for name, least in (("max_bytes", 0), ("max_disk_bytes", 0), ("threads", 1)):
        with pytest.raises(ValueError, match=f"{name} must be at least {least}, not {least - 1}"):
            GrammarCache(VOCABULARY, **{name: least - 1})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"{name} must be a whole number"):
            GrammarCache(VOCABULARY, **{name: 1.5})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Request"):
        GrammarCache(VOCABULARY).constraint(gs.literal("a"))  # type: ignore[arg-type]
