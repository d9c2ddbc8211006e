"""The measurements. Engines take turns case by case, so that other load on the machine affects all alike."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from benchmarks.cases import Case
from benchmarks.engines import Engine

now = time.perf_counter_ns
T = TypeVar("T")


@dataclass(slots=True)
class Steps:
    """The times of one engine, in microseconds."""

    first: list[float] = field(default_factory=list)
    """Compiling and the first mask, of each case."""
    steps: list[float] = field(default_factory=list)
    """Mask, look-up and accept, of each token."""
    by_case: dict[str, float] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def run(self, engine: Engine, case: Case, token_lists: list[list[int]], turn: int) -> None:
        schema = {**case.schema, "title": f"turn {turn}"}  # a new schema, so that no cache of compiled schemas has it
        start = now()
        try:
            make = engine.compile(schema)
            make().fill()
        except Exception as error:  # whatever the engine raises, it refuses this case
            self.refused.append(f"{case.name}: {str(error).splitlines()[0][:90]}")
            return
        self.first.append((now() - start) / 1e3)
        total = 0.0
        for tokens in token_lists:
            taken, whole = walk(make(), tokens)
            self.steps += taken
            total += sum(taken)
            if not whole:
                self.refused.append(f"{case.name}: a valid instance")
        self.by_case[case.name] = total


def walk(text: Any, tokens: list[int]) -> tuple[list[float], bool]:
    """Walk a text under its masks.

    Returns:
        the microseconds of each step, and whether all tokens were allowed.
    """
    taken = []
    for token in tokens:
        start = now()
        text.fill()
        allowed = int(text.row[token >> 5]) >> (token & 31) & 1
        accepted = bool(allowed) and text.accept(token)
        taken.append((now() - start) / 1e3)
        if not accepted:
            return taken, False
    return taken, True


def rotated(engines: dict[str, Engine], turn: int) -> Iterator[tuple[str, Engine]]:
    """The engines in an order that begins with another one in each turn."""
    names = list(engines)
    for name in names[turn % len(names) :] + names[: turn % len(names)]:
        yield name, engines[name]


def steps(engines: dict[str, Engine], tokenizer: Any, cases: list[Case], rounds: int) -> dict[str, Steps]:
    """The times of compiling, the first mask and every step of each case, ``rounds`` times over."""
    results = {name: Steps() for name in engines}
    for turn, case in enumerate(cases * rounds):
        token_lists = [tokenizer.encode(text, add_special_tokens=False) for text in case.texts]
        for name, engine in rotated(engines, turn):
            results[name].run(engine, case, token_lists, turn)
    return results


def first_masks(engines: dict[str, Engine], cases: list[tuple[int, Case]], rounds: int) -> dict[str, dict[int, float]]:
    """Microseconds of compiling and the first mask by engine and size of the schema: the least of the rounds."""
    results: dict[str, dict[int, float]] = {name: {} for name in engines}
    for turn, (size, case) in enumerate(cases * rounds):
        for name, engine in rotated(engines, turn):
            one = Steps()
            if size < 100 or name != "outlines_core":  # whose indices of long schemas take minutes
                one.run(engine, case, [], turn)
            for took in one.first:
                results[name][size] = min(took, results[name].get(size, took))
    return results


def along(engines: dict[str, Engine], tokenizer: Any, case: Case, window: int) -> dict[str, dict[int, float]]:
    """Mean microseconds of a step by its position in a long text, on the second walk over it (with warm caches)."""
    tokens = tokenizer.encode(case.texts[0], add_special_tokens=False)
    results: dict[str, dict[int, float]] = {}
    for name, engine in engines.items():
        try:
            make = engine.compile(case.schema)
            walk(make(), tokens)
            taken, _ = walk(make(), tokens)
        except Exception:  # refused: `steps` reports why
            continue
        parts = (taken[at : at + window] for at in range(0, len(taken) - window + 1, window))
        results[name] = {at * window: sum(part) / window for at, part in enumerate(parts)}
    return results


def batches(
    engines: dict[str, Engine], tokenizer: Any, cases: list[Case], size: int, threads: tuple[int, ...], rounds: int
) -> dict[str, dict[int, float]]:
    """Microseconds for the masks of a batch of texts in new states, by number of threads: the median of the rounds."""
    results: dict[str, dict[int, float]] = {}
    for name, engine in engines.items():
        if engine.batch is None:
            continue
        for count in threads:
            fill, taken = engine.batch(count), []
            for _ in range(rounds):
                texts = _batch(engine, tokenizer, cases, size)
                start = now()
                fill(texts)
                taken.append((now() - start) / 1e3)
            results.setdefault(name, {})[count] = sorted(taken)[len(taken) // 2]
    return results


def _batch(engine: Engine, tokenizer: Any, cases: list[Case], size: int) -> list[Any]:
    """Texts under newly compiled constraints, each at another position of its text."""
    makers = [engine.compile(case.schema) for case in cases]
    token_lists = [tokenizer.encode(case.texts[0], add_special_tokens=False) for case in cases]
    batch = []
    for i in range(size):
        make, tokens = makers[i % len(cases)], token_lists[i % len(cases)]
        text = make()
        for token in tokens[: i // len(cases) * 5 % len(tokens)]:
            text.accept(token)
        batch.append(text)
    return batch
