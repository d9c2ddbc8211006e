"""Latencies of masks in a server's batch, beside peers: ``python -m benchmarks.serving.latencies``.

64 requests run at once, with 1, 50 or 500 different schemas; as one ends, the next joins. Joining compiles the schema
and fills the first mask, which is the time to the first mask. Each step fills the masks of all running requests in one
call of the engine's batch interface, and has each accept the next token of a given text. grammarspec is called through
:class:`.GrammarCache` and :func:`.fill_bitmasks`, XGrammar with its compiler's cache. llguidance has no cache; equal
schemas share its compiled matcher.

"New" schemas are in no cache of schemas; "again" are the same schemas once more. Engines take turns, and new rounds
have new schemas. With one thread, times are CPU times of the process, which other load on the machine affects least.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import grammarspec as gs
from benchmarks.report import percentile, table
from benchmarks.serving.requests import instance_of, schema_of
from grammarspec.serving import GrammarCache, Request, fill_bitmasks

__all__ = ["SUBJECTS", "Times", "measure", "report"]


class Subject(Protocol):
    """An engine behind one interface."""

    def begin(self, schema: str) -> Any:
        """A matcher at the beginning of a text; compiles the schema if it is new."""

    def fill(self, matchers: Sequence[Any]) -> None:
        """Fill the masks of a batch, the row of each in its order."""

    def accept(self, matcher: Any, token: int) -> bool:
        """Accept a token, and return whether it is allowed."""


class GrammarSpec:
    """grammarspec, as adapters of engines use it."""

    def __init__(self, tokenizer: Any, batch: int, threads: int) -> None:
        self._vocabulary = gs.Vocabulary.from_tokenizer(tokenizer)
        self._vocabulary.keep(constraints=0, memory=0)
        self._cache = GrammarCache(self._vocabulary)
        self._rows, self._threads = gs.allocate_bitmask(batch, self._vocabulary.size), threads

    def begin(self, schema: str) -> Any:
        return self._cache.constraint(Request.json_schema(schema)).matcher()

    def fill(self, matchers: Sequence[Any]) -> None:
        results = fill_bitmasks(matchers, self._rows, threads=self._threads)
        assert not any(results), results

    def accept(self, matcher: Any, token: int) -> bool:
        return bool(matcher.accept_token(token))


class XGrammar:
    """XGrammar, compiling on one thread; its compiler caches schemas."""

    def __init__(self, tokenizer: Any, batch: int, threads: int) -> None:
        import xgrammar as xgr

        info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
        self._xgr, self._compiler = xgr, xgr.GrammarCompiler(info, max_threads=1)
        self._filler = xgr.BatchGrammarMatcher(max_threads=threads)
        self._rows = xgr.allocate_token_bitmask(batch, len(tokenizer))

    def begin(self, schema: str) -> Any:
        return self._xgr.GrammarMatcher(self._compiler.compile_json_schema(schema))

    def fill(self, matchers: Sequence[Any]) -> None:
        self._filler.batch_fill_next_token_bitmask(list(matchers), self._rows)

    def accept(self, matcher: Any, token: int) -> bool:
        return bool(matcher.accept_token(token))


class LLGuidance:
    """llguidance; matchers of equal schemas are copies of one."""

    def __init__(self, tokenizer: Any, batch: int, threads: int) -> None:
        import llguidance as llg
        import llguidance.hf

        self._llg, self._tokenizer = llg, llguidance.hf.from_tokenizer(tokenizer)
        self._executor = llg.LLExecutor(num_threads=threads)
        self._rows = np.zeros((batch, (len(tokenizer) + 31) // 32), np.int32)
        self._known: dict[str, Any] = {}

    def begin(self, schema: str) -> Any:
        if schema not in self._known:
            grammar = json.dumps({"grammars": [{"json_schema": json.loads(schema)}]})
            matcher = self._llg.LLMatcher(self._tokenizer, grammar, log_level=0)
            if matcher.is_error():
                raise ValueError(matcher.get_error())
            self._known[schema] = matcher
        return self._known[schema].deep_copy()

    def fill(self, matchers: Sequence[Any]) -> None:
        jobs = [(matcher, row) for row, matcher in enumerate(matchers)]
        rows = self._rows
        self._executor.unsafe_compute_mask_ptr(jobs, rows.ctypes.data, rows[0].nbytes, len(rows))

    def accept(self, matcher: Any, token: int) -> bool:
        return bool(matcher.consume_token(token))


SUBJECTS: dict[str, Callable[[Any, int, int], Subject]] = {
    "grammarspec": GrammarSpec,
    "xgrammar": XGrammar,
    "llguidance": LLGuidance,
}


@dataclass(slots=True)
class Times:
    """The times of one engine in one setting, in microseconds.

    Attributes:
        first: compiling and the first mask, of each request.
        steps: the masks of each step in which the batch was full.
        accepts: accepting the tokens of each such step.
        tokens: the number of accepted tokens.
        total: all of these times together.
        refused: the number of requests that were not compiled, or a token of whose text was refused.
    """

    first: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    accepts: list[float] = field(default_factory=list)
    tokens: int = 0
    total: float = 0.0
    refused: int = 0


def run(
    subject: Subject,
    requests: Sequence[tuple[str, Sequence[int]]],
    batch: int,
    clock: Callable[[], int],
    found: Times,
) -> None:
    """Run requests through an engine.

    Args:
        subject: the engine.
        requests: the schema of each, and the tokens of its text.
        batch: how many run at once.
        clock: gives nanoseconds.
        found: the times are added to it.
    """
    waiting = deque(requests)
    running: list[tuple[Any, Sequence[int], int]] = []
    while waiting or running:
        while waiting and len(running) < batch:
            schema, tokens = waiting.popleft()
            begin = clock()
            try:
                matcher = subject.begin(schema)
                subject.fill([matcher])
            except Exception:  # whatever the engine raises, it refuses this schema
                found.refused += 1
                continue
            found.first.append((clock() - begin) / 1e3)
            running.append((matcher, tokens, 0))
        full = len(running) == batch
        begin = clock()
        subject.fill([matcher for matcher, _, _ in running])
        filled = clock()
        going = []
        for matcher, tokens, at in running:
            if not subject.accept(matcher, tokens[at]):
                found.refused += 1
            elif at + 1 < len(tokens):
                going.append((matcher, tokens, at + 1))
        end = clock()
        if full:
            found.steps.append((filled - begin) / 1e3)
            found.accepts.append((end - filled) / 1e3)
        found.tokens += len(running)
        found.total += (end - begin) / 1e3
        running = going
    found.total += sum(found.first)


def measure(
    tokenizer: Any,
    names: Sequence[str],
    distinct: Sequence[int],
    *,
    batch: int = 64,
    threads: int = 1,
    rounds: int = 3,
    requests: int = 256,
) -> dict[tuple[int, str], dict[str, Times]]:
    """The times by number of schemas and ``"new"`` or ``"again"``, and by engine.

    Args:
        tokenizer: a tokenizer of transformers.
        names: the engines, of :data:`SUBJECTS`.
        distinct: the numbers of different schemas.
        batch: how many requests run at once.
        threads: the threads of each engine's batch interface.
        rounds: how often each setting is run, with new schemas.
        requests: the number of requests in a run, if there are fewer schemas.
    """
    clock = time.process_time_ns if threads == 1 else time.perf_counter_ns
    subjects: dict[str, Subject] = {}
    for name in names:
        try:
            subjects[name] = SUBJECTS[name](tokenizer, batch, threads)
            subjects[name].fill([subjects[name].begin('{"type": "string"}')])  # what is done once is not measured
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    found: dict[tuple[int, str], dict[str, Times]] = {
        (count, which): {name: Times() for name in subjects} for count in distinct for which in ("new", "again")
    }
    first = 0
    for turn in range(rounds):
        for count in distinct:
            draw, numbers = random.Random(first), range(first, first + count)
            first += count
            asked = []
            for at in range(max(count, requests)):
                number = numbers[at % count]
                text = json.dumps(instance_of(number, draw))
                asked.append((json.dumps(schema_of(number)), tokenizer.encode(text, add_special_tokens=False)))
            order = list(subjects)[turn % len(subjects) :] + list(subjects)[: turn % len(subjects)]
            for name in order:
                for which in ("new", "again"):
                    run(subjects[name], asked, batch, clock, found[count, which][name])
    return found


def report(found: dict[tuple[int, str], dict[str, Times]]) -> str:
    """A table of microseconds, as Markdown."""
    names = list(next(iter(found.values())))
    rows = []
    for (count, which), by_name in found.items():
        for what, share in (("p50", 0.5), ("p99", 0.99)):
            cells = [f"{percentile(by_name[name].first, share):,.0f}" for name in names]
            rows.append([f"{count} {which}: first mask, {what}", *cells])
        for what, share in (("p50", 0.5), ("p99", 0.99)):
            cells = [f"{percentile(by_name[name].steps, share):,.0f}" for name in names]
            rows.append([f"{count} {which}: masks of a step, {what}", *cells])
        cells = [f"{by_name[name].total / max(1, by_name[name].tokens):,.2f}" for name in names]
        rows.append([f"{count} {which}: all, per token", *cells])
        if any(by_name[name].refused for name in names):
            rows.append([f"{count} {which}: refused requests", *(str(by_name[name].refused) for name in names)])
    return table(["schemas, microseconds", *names], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for, and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving.latencies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tokenizer", help="a directory, a hub name or a .gguf file; SmolLM2's if not given")
    parser.add_argument("--engines", default=",".join(SUBJECTS), help="(%(default)s)")
    parser.add_argument("--schemas", default="1,50,500", help="numbers of different schemas (%(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="requests at once (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each engine (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each with new schemas (%(default)s)")
    parser.add_argument("--json", type=Path, help="a file for all times")
    options = parser.parse_args(arguments)
    from benchmarks.__main__ import load_tokenizer

    counts = [int(one) for one in options.schemas.split(",")]
    tokenizer = load_tokenizer(options.tokenizer)
    names = options.engines.split(",")
    how = {"batch": options.batch, "threads": options.threads, "rounds": options.rounds}
    found = measure(tokenizer, names, counts, **how)
    print(report(found))
    if options.json:
        listed = [
            {"schemas": count, "which": which, "engine": name, "first": times.first, "steps": times.steps}
            for (count, which), by_name in found.items()
            for name, times in by_name.items()
        ]
        options.json.write_text(json.dumps(listed))


if __name__ == "__main__":
    main()
