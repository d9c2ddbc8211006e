"""Mutated declarations without end: none may cost much, panic, or fail with an error that is not meant for people.

``python -m tests.hostile.fuzz --minutes 60`` prints counts, and the smallest input of each finding. An input is made of
its number, the seed: ``--first N --inputs 1`` runs it again.
"""

from __future__ import annotations

import argparse
import json
import linecache
import os
import random
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import grammarspec as gs
from tests.hostile.measuring import BYTES, Meter, machine_factor
from tests.hostile.mutating import KINDS
from tests.hostile.soak import words

_SECONDS = 2.0  # of CPU time, for a call
_HANGS = 40.0  # of CPU time, for an input
_BATCH = 50  # inputs of one process
_TOKENS = 6  # of a walk


def main() -> int:
    """Fuzz, print what was found, and return 1 if anything was."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first input")
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="how many, at most")
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    vocabulary, kinds = words(), options.kinds.split(",")
    until, seed = time.monotonic() + 60 * options.minutes, options.first
    counts: Counter[str] = Counter()
    findings: dict[str, dict[str, Any]] = {}
    while time.monotonic() < until and (left := options.first + options.inputs - seed) > 0:
        for said in _batch(seed, min(_BATCH, left), kinds, vocabulary):
            seed = said["seed"] + 1
            counts[said["result"]] += 1
            old = findings.get(said["finding"])
            if said["finding"] and (old is None or len(said["input"]) < len(old["input"])):
                findings[said["finding"]] = said
                print(f"seed {said['seed']}: {said['finding']}\n    {said['input'][:1000]}", flush=True)
    print(f"{sum(counts.values()):,} inputs: {', '.join(f'{n:,} {what}' for what, n in counts.most_common())}")
    print(f"{len(findings)} kinds of findings:")
    for finding, said in findings.items():
        print(f"  {finding}\n    seed {said['seed']}: {said['input'][:600]}")
    return 1 if findings else 0


def _batch(first: int, count: int, kinds: list[str], vocabulary: gs.Vocabulary) -> Iterator[dict[str, Any]]:
    """What became of each input, run in a process of its own; of the one that ended the process, that it did."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writer, "w") as out:
            for seed in range(first, first + count):
                signal.setitimer(signal.ITIMER_PROF, _HANGS)  # whose signal ends the process
                out.write(json.dumps({"seed": seed, **run(seed, kinds, vocabulary)}) + "\n")
                out.flush()
        os._exit(0)
    os.close(writer)
    seed = first
    with os.fdopen(reader) as lines:
        for line in lines:
            said = json.loads(line)
            seed = said["seed"] + 1
            yield said
    if status := os.waitpid(child, 0)[1]:
        shown, _ = _made(seed, kinds)
        finding = f"the process ended with status {status}"
        yield {"seed": seed, "result": "ended the process", "finding": finding, "input": shown}


def _made(seed: int, kinds: list[str]) -> tuple[str, Callable[[], gs.Grammar]]:
    draw = random.Random(seed)
    while True:
        try:
            return KINDS[draw.choice(kinds)](draw)
        except gs.GrammarspecError:  # of what was to be mutated
            continue


def run(seed: int, kinds: list[str], vocabulary: gs.Vocabulary) -> dict[str, str]:
    """Make the input and use it. ``result``: what became of it; ``finding``: what is wrong about that, or nothing."""
    shown, make = _made(seed, kinds)
    meter = Meter()
    finding, result = "", "used"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gs.NotEnforced)
            _use(meter, make, vocabulary, random.Random(seed))
    except gs.GrammarspecError as error:
        result = type(error).__name__
    except BaseException as error:
        result = type(error).__name__
        if not _meant(error):
            finding = f"{result} ({str(error)[:60]}) in {_place(error.__traceback__)}"
    for cost in meter.costs:
        if cost.bytes > BYTES or (cost.seconds > _SECONDS and cost.seconds > _SECONDS * machine_factor()):
            finding = finding or f"{cost.call} of {shown.split('(')[0]} beyond its bounds"
            shown = f"{cost.seconds:.1f} s, {cost.bytes >> 20} MB: {shown}"
    return {"result": result, "finding": finding, "input": shown}


def _use(meter: Meter, make: Callable[[], gs.Grammar], vocabulary: gs.Vocabulary, draw: random.Random) -> None:
    grammar = meter("front-end", make)
    # that it can be cancelled keeps later inputs from finding it
    matcher = meter("compile", lambda: gs.compile(grammar, vocabulary, cancel=gs.CancelToken())).matcher()
    for _ in range(_TOKENS):
        mask = meter("mask", matcher.constraint.mask, matcher.state)
        allowed = [token for token in range(vocabulary.size) if mask[token >> 3] >> (token & 7) & 1]
        assert allowed, "an empty mask"
        token = draw.choice(allowed)
        assert meter("accept", matcher.accept_token, token), "a token of the mask is refused"
        if token in vocabulary.eos_token_ids:
            return
    meter("forced bytes", matcher.forced_bytes)
    ending = meter("completion", matcher.constraint.shortest_completion, matcher.state)
    assert matcher.accept_tokens(ending) == len(ending) and matcher.is_accepting, "the completion is refused"


def _meant(error: BaseException) -> bool:
    """Whether an error is one for people: a ``TypeError`` or the like, with a text, that is raised on purpose."""
    if not isinstance(error, TypeError | ValueError | OverflowError) or isinstance(error, UnicodeError):
        return False
    at = _last(error.__traceback__)
    line = linecache.getline(at.tb_frame.f_code.co_filename, at.tb_lineno).strip()
    raised = line.startswith("raise ") or any(
        called in line for called in ("_compile(", "Ir(", "from_bytes(", ")(*parts")
    )
    return bool(str(error)) and raised


def _last(traceback: TracebackType | None) -> TracebackType:
    assert traceback
    while traceback.tb_next:
        traceback = traceback.tb_next
    return traceback


def _place(traceback: TracebackType | None) -> str:
    code = _last(traceback).tb_frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{_last(traceback).tb_lineno} {code.co_name}"


if __name__ == "__main__":
    sys.exit(main())
