"""Measured costs of masks for the simulation: ``python -m benchmarks.serving.costs`` writes ``costs.json`` beside this.

All are microseconds of CPU time on one core: of rows whose mask is known, of rows whose mask is new, of accepted
tokens, and of new requests. The schemas are those of :func:`.schema_of`, each with three texts; the share of rows that
are new is counted for the first text of a schema and for later ones.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import grammarspec as gs
from benchmarks.serving.requests import instance_of, schema_of
from grammarspec.serving import Lowered, Request, fill_bitmasks

__all__ = ["FILE", "Costs", "load", "measured"]

FILE = Path(__file__).with_name("costs.json")
_KEPT = 400  # the number of new masks whose costs are kept, evenly spread from the cheapest to the most expensive


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds of CPU time on one core.

    Attributes:
        taken: where and when they were measured.
        call: one call for the masks of a batch, whatever its size.
        row: a row of a sequence in that call, if its mask is known.
        draft_row: a further row of the same sequence, for a token of its draft.
        accept: accepting one token.
        new: of new masks, what each takes beyond a row that is known; sorted.
        first_share: the share of rows that are new in the first text of a schema.
        later_share: the same in its second and third texts.
        lower: the front-end and finding errors, of a new request, in the API's process.
        compile: reading the lowered request, compiling it and its first mask, in the engine's.
    """

    taken: str
    call: float
    row: float
    draft_row: float
    accept: float
    new: tuple[float, ...]
    first_share: float
    later_share: float
    lower: float
    compile: float


def load(path: Path = FILE) -> Costs:
    """The costs of a file.

    Raises:
        OSError, ValueError, TypeError: the file cannot be read, or is none of costs.
    """
    found = json.loads(path.read_text())
    return Costs(**{**found, "new": tuple(found["new"])})


def measured(tokenizer: Any, schemas: int = 300) -> Costs:
    """Measure them.

    Args:
        tokenizer: a tokenizer of transformers.
        schemas: the number of different schemas.
    """
    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer)
    vocabulary.keep(constraints=0, memory=0)
    clock, draw = time.thread_time_ns, random.Random(1)
    numbers = range(30, 30 + schemas)
    for number in range(30):  # what is done once in a process
        Request.json_schema(schema_of(number)).lower(vocabulary)
    lower, begin_engine, constraints = [], [], []
    for number in numbers:
        start = clock()
        data = Request.json_schema(schema_of(number)).lower(vocabulary).to_bytes()
        middle = clock()
        constraint = gs.compile(Lowered.from_bytes(data).grammar, vocabulary)
        constraint.mask(constraint.start)
        lower.append((middle - start) / 1e3)
        begin_engine.append((clock() - middle) / 1e3)
        constraints.append(constraint)

    rows = gs.allocate_bitmask(1, vocabulary.size)
    new: list[float] = []
    counts = {"first": [0, 0], "later": [0, 0]}
    known: list[float] = []
    accepts: list[float] = []
    matchers = []
    for number, constraint in zip(numbers, constraints, strict=True):
        for which in ("first", "later", "later"):
            text = json.dumps(instance_of(number, draw))
            matcher = constraint.matcher()
            for token in tokenizer.encode(text, add_special_tokens=False):
                before = constraint.stats()["masks"]
                start = clock()
                matcher.fill_bitmask(rows)
                middle = clock()
                taken = matcher.accept_token(token)
                end = clock()
                assert taken, (text, token)
                is_new = constraint.stats()["masks"] > before
                (new if is_new else known).append((middle - start) / 1e3)
                accepts.append((end - middle) / 1e3)
                counts[which][0] += is_new
                counts[which][1] += 1
        matcher = constraint.matcher()  # for a batch, in the middle of its last text
        tokens = tokenizer.encode(text, add_special_tokens=False)
        matcher.accept_tokens(tokens[: len(tokens) // 2])
        matchers.append((matcher, tokens[len(tokens) // 2 :][:4]))
    call, row = _batches([matcher for matcher, _ in matchers], vocabulary.size, clock)
    draft_row = _drafts(matchers, vocabulary.size, row, clock)
    single = float(np.median(known))
    beyond = np.sort(np.maximum(np.asarray(new) - single, 0.0))
    kept = beyond[np.linspace(0, len(beyond) - 1, min(_KEPT, len(beyond))).round().astype(int)]
    return Costs(
        taken=f"{date.today().isoformat()}, {_machine()}, {vocabulary.size} tokens, {schemas} schemas",
        call=round(call, 2),
        row=round(row, 3),
        draft_row=round(draft_row, 3),
        accept=round(float(np.median(accepts)), 3),
        new=tuple(round(float(one), 1) for one in kept),
        first_share=round(counts["first"][0] / counts["first"][1], 3),
        later_share=round(counts["later"][0] / counts["later"][1], 3),
        lower=round(float(np.mean(lower)), 1),
        compile=round(float(np.mean(begin_engine)), 1),
    )


def _batches(matchers: Sequence[Any], size: int, clock: Any) -> tuple[float, float]:
    """Of a call with known masks, what it takes whatever its size, and for each row: a line through two sizes."""
    sizes = (16, len(matchers))
    rows = gs.allocate_bitmask(sizes[1], size)
    least = []
    for count in sizes:
        fill_bitmasks(matchers[:count], rows, threads=1)
        taken = []
        for _ in range(200):
            start = clock()
            fill_bitmasks(matchers[:count], rows, threads=1)
            taken.append((clock() - start) / 1e3)
        least.append(float(np.median(taken)))
    row = (least[1] - least[0]) / (sizes[1] - sizes[0])
    return max(least[0] - sizes[0] * row, 0.0), row


def _drafts(matchers: Sequence[tuple[Any, list[int]]], size: int, row: float, clock: Any) -> float:
    """What a further row for a draft token takes, if its mask is known: a draft token is accepted and rolled back."""
    sequences, drafts = [one for one, _ in matchers], [tokens for _, tokens in matchers]
    rows = gs.allocate_bitmask(sum(1 + len(draft) for draft in drafts), size)
    fill_bitmasks(sequences, rows, drafts=drafts, threads=1)
    taken = []
    for _ in range(100):
        start = clock()
        fill_bitmasks(sequences, rows, drafts=drafts, threads=1)
        taken.append((clock() - start) / 1e3)
    return (float(np.median(taken)) - row * len(sequences)) / sum(map(len, drafts))


def _machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure costs, and write them to a file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving.costs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tokenizer", help="a directory, a hub name or a .gguf file; SmolLM2's if not given")
    parser.add_argument("--out", type=Path, default=FILE, help="the file (%(default)s)")
    options = parser.parse_args(arguments)
    from benchmarks.__main__ import load_tokenizer

    found = measured(load_tokenizer(options.tokenizer))
    options.out.write_text(json.dumps(asdict(found), indent=1) + "\n")
    print(f"{found.taken}: a row {found.row} us, a draft row {found.draft_row}, accepting {found.accept}, a call "
          f"{found.call}; new masks {np.median(found.new)} (median), {np.mean(found.new):.1f} (mean), "
          f"{np.percentile(found.new, 99):.1f} (99 %); new rows {found.first_share:.1%} in first texts, "
          f"{found.later_share:.1%} in later ones; lowering {found.lower}, compiling {found.compile}")  # fmt: skip


if __name__ == "__main__":
    main()
