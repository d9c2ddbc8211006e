"""Keeps the parts for serving busy, and watches memory, errors and texts: ``python -m benchmarks.serving.soak``.

64 requests at once with 500 schemas, patterns, choices and grammars; one of a hundred is hostile, one is wrong, one is
left by its client, and one of five has drafts (:mod:`.scheduler`). Every finished text is judged by ``jsonschema`` or
``re``. The report has the outcomes, latencies, the growth of memory, and the bytes of the cache. The exit status is 1
if an error came where none was due, a text was wrong, or the cache exceeded its bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grammarspec as gs
from benchmarks.report import percentile
from benchmarks.serving.requests import Asked, harmless, hostile, wrong
from benchmarks.serving.scheduler import Api, Ended, Scheduler
from grammarspec.serving import GrammarCache


def _numbers() -> array[float]:
    return array("d")


@dataclass
class Report:
    """What a soak has found.

    Attributes:
        outcomes: how many requests had which outcome, by kind and outcome.
        hostile: the same of hostile requests, by name.
        unexpected: errors that were not due, and texts that are wrong; the first of them.
        problems: their number.
        tokens: the number of accepted tokens.
        first_masks: seconds from harmless requests to their first masks.
        steps: seconds of filling the masks of a step.
        cpu_steps: the engine's seconds of CPU time meanwhile, its threads for compiling included. Where ``steps`` are
            much longer, the machine was busy with something else.
        memory: seconds since the beginning, with the megabytes of the engine's and of the API's process.
        cache: the largest number of bytes in the cache that was seen, with its bound.
        evictions: constraints that were removed from the cache.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    hostile: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    problems: int = 0
    tokens: int = 0
    first_masks: array[float] = field(default_factory=_numbers)  # lists of floats would grow by megabytes themselves
    steps: array[float] = field(default_factory=_numbers)
    cpu_steps: array[float] = field(default_factory=_numbers)
    memory: list[tuple[float, float, float]] = field(default_factory=list)
    cache: tuple[int, int] = (0, 0)
    evictions: int = 0

    def add(self, ended: Ended) -> None:
        """Count a request, and judge its text."""
        asked = ended.asked
        self.outcomes[f"{asked.kind}, {ended.how}"] += 1
        self.tokens += ended.tokens
        if asked.kind == "hostile":
            self.hostile[f"{asked.name}: {ended.how}"] += 1
        elif asked.kind == "harmless" and ended.first_mask == ended.first_mask:
            self.first_masks.append(ended.first_mask)
        due = {"harmless": ("finished", "cancelled"), "wrong": ("refused",)}.get(asked.kind)
        if due is not None and ended.how not in due:
            self._problem(f"{asked.name}: {ended.how}: {ended.error}")
        if ended.how == "finished":
            try:
                asked.judge(ended.text)
            except Exception as error:  # whatever a judge raises, the text is wrong
                self._problem(f"{asked.name}: wrong text {ended.text!r:.300}: {error!s:.300}")

    def _problem(self, text: str) -> None:
        self.problems += 1
        if len(self.unexpected) < 20:
            self.unexpected.append(text)

    def growth(self, process: int) -> float:
        """The growth of a process (0: the engine's, 1: the API's) in MB a minute, in the second half of the time.

        It is the slope of the least-squares line.
        """
        half = self.memory[len(self.memory) // 2 :]
        if len(half) < 2:
            return float("nan")
        times, values = [one[0] / 60 for one in half], [one[1 + process] for one in half]
        middle, mean = sum(times) / len(times), sum(values) / len(values)
        spread = sum((at - middle) ** 2 for at in times)
        return sum((at - middle) * (value - mean) for at, value in zip(times, values, strict=True)) / spread

    def summary(self) -> dict[str, Any]:
        """The report as JSON values."""

        def shown(values: array[float]) -> dict[str, float]:
            shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
            return {name: round(percentile(list(values), share) * 1e3, 3) for name, share in shares.items()}

        sampled = self.memory[:: max(1, len(self.memory) // 12)]
        return {
            "requests": sum(self.outcomes.values()),
            "outcomes": dict(sorted(self.outcomes.items())),
            "hostile": dict(sorted(self.hostile.items())),
            "tokens": self.tokens,
            "steps": len(self.steps),
            "milliseconds to the first mask, harmless": shown(self.first_masks),
            "milliseconds of the masks of a step": shown(self.steps),
            "milliseconds of CPU time meanwhile": shown(self.cpu_steps),
            "memory in MB, engine and API, by second": {round(at): [round(a), round(b)] for at, a, b in sampled},
            "growth in MB a minute, engine and API": [round(self.growth(0), 2), round(self.growth(1), 2)],
            "cache: most bytes, bound": self.cache,
            "evictions": self.evictions,
            "problems": self.problems,
            "unexpected": self.unexpected,
        }


def soak(
    vocabulary: gs.Vocabulary,
    seconds: float,
    *,
    concurrency: int = 64,
    schemas: int = 500,
    cache_bytes: int = 128 << 20,
    seed: int = 1,
    every: float = 5.0,
    threads: int = 0,
) -> Report:
    """Run a soak.

    Args:
        vocabulary: the tokens of the model.
        seconds: how long it runs.
        concurrency: the number of requests at once.
        schemas: the number of different schemas.
        cache_bytes: the bound of the cache.
        seed: of what is drawn.
        every: the seconds between two looks at memory and cache.
        threads: the number of threads that compute masks; 0: one for each core.
    """
    import psutil

    draw = random.Random(seed)
    limits = gs.Limits(max_steps=4_000_000, max_call_steps=200_000, max_memory=64 << 20)
    vocabulary.keep(constraints=0, memory=0)
    api, cache = Api(vocabulary, limits), GrammarCache(vocabulary, max_bytes=cache_bytes, limits=limits)

    def ask() -> Asked:
        kind = draw.random()
        if kind < 0.01:
            return hostile(draw)
        return wrong(draw) if kind < 0.02 else harmless(draw, schemas)

    for kind in (*(harmless(draw, schemas) for _ in range(40)), wrong(draw)):  # the process and its front-ends begin
        api.lower(kind.request).result()
    report, most = Report(), 0
    scheduler = Scheduler(vocabulary, api, cache, concurrency, ask, draw, threads=threads)
    began = looked = time.perf_counter()
    asked_memory = api.memory()
    try:
        while (now := time.perf_counter()) - began < seconds:
            for ended in scheduler.step():
                report.add(ended)
            for wall, cpu in scheduler.steps:
                report.steps.append(wall)
                report.cpu_steps.append(cpu)
            scheduler.steps.clear()
            if now - looked >= every and asked_memory.done():
                looked = now
                mine = psutil.Process().memory_info().rss
                report.memory.append((now - began, mine / 1e6, asked_memory.result() / 1e6))
                asked_memory = api.memory()
                stats = cache.stats()
                most, report.evictions = max(most, stats.bytes), stats.evictions
    finally:
        api.close()
    report.cache = (most, cache_bytes)
    cache.close()
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a soak as the command line says, and print its report as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (%(default)s)")
    parser.add_argument("--tokenizer", help="a directory, a hub name or a .gguf file; SmolLM2's if not given")
    parser.add_argument("--concurrency", type=int, default=64, help="requests at once (%(default)s)")
    parser.add_argument("--schemas", type=int, default=500, help="different schemas (%(default)s)")
    parser.add_argument("--cache-bytes", type=int, default=128 << 20, help="the bound of the cache (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (%(default)s)")
    parser.add_argument("--json", type=Path, help="a file for the report")
    options = parser.parse_args(arguments)
    from benchmarks.__main__ import load_tokenizer

    vocabulary = gs.Vocabulary.from_tokenizer(load_tokenizer(options.tokenizer))
    report = soak(
        vocabulary,
        options.minutes * 60,
        concurrency=options.concurrency,
        schemas=options.schemas,
        cache_bytes=options.cache_bytes,
        seed=options.seed,
    )
    text = json.dumps(report.summary(), indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return int(report.problems > 0 or report.cache[0] > report.cache[1])


if __name__ == "__main__":
    sys.exit(main())
