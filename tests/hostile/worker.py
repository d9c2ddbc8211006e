"""A process that runs cases, each in a fork of its own: what one leaves behind, or breaks, harms no other.

``python -m tests.hostile.worker FILE`` reads names of cases, a line each, and writes what became of each, as JSON.
The file has a pickled vocabulary.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import random
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import grammarspec as gs
from tests.hostile.arguments import ARGUMENTS
from tests.hostile.cases import CASES
from tests.hostile.measuring import Meter, machine_factor
from tests.hostile.walking import Walk, Wrong

_CPU_SECONDS = 8  # for all calls of a case together; what takes twice as long is killed
_ADDRESSES = 6 << 30


def main() -> None:
    """Run cases until there are no more."""
    vocabulary = pickle.loads(Path(sys.argv[1]).read_bytes())
    for grammar in (gs.json_schema({}), gs.regex("a"), gs.lark('start: "a"'), gs.grammar(list[int])):
        # what is imported and made once is no cost of a call; that it can be cancelled lets no case find it
        gs.compile(grammar, vocabulary, cancel=gs.CancelToken())
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(forked(line.strip(), vocabulary)), flush=True)


def forked(name: str, vocabulary: gs.Vocabulary) -> dict[str, Any]:
    """What became of a case (see :func:`outcome`), or of the process that ran it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXCPU, _enough)
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, 2 * _CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
        os.write(writer, json.dumps(outcome(name, vocabulary)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        written = file.read()
    _, status = os.waitpid(child, 0)
    if not written:
        return {"wrong": f"the process ended with signal {os.WTERMSIG(status)}, or status {status}"}
    found: dict[str, Any] = json.loads(written)
    return found


class _Enough(Exception):
    """The calls of a case, each perhaps within its bounds, have taken long enough."""


def _enough(*_: object) -> None:
    _disarm()  # the signal comes again each second
    raise _Enough


def _disarm() -> None:
    """What is done behind the calls of a case is not interrupted; the process is killed all the same, in the end."""
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)


def outcome(name: str, vocabulary: gs.Vocabulary) -> dict[str, Any]:
    """Run a case in this process.

    Returns:
        ``costs``: of each kind of call, the highest number of seconds and of bytes. ``factor``: that of the machine.
        ``error``: the public error that ended the case, or ``None``. ``judged``: whether another implementation took
        the text, or ``None`` if none did in time. ``wrong``: what must not be: another error, or a wrong mask or text.
    """
    factor = machine_factor()
    meter = Meter()
    found: dict[str, Any] = {"error": None, "wrong": None, "judged": None}
    try:
        try:
            if name in ARGUMENTS:
                ARGUMENTS[name](meter, vocabulary)
            else:
                found["judged"] = Walk(CASES[name](), vocabulary, meter, random.Random(name)).run()
        finally:
            _disarm()
    except gs.GrammarspecError as error:
        found["error"] = {"type": type(error).__name__, "message": error.message, "where": error.where}
    except _Enough:
        pass
    except Wrong as wrong:
        found["wrong"] = str(wrong)
    except BaseException as error:
        found["wrong"] = "".join(traceback.format_exception(error)[-4:])
    costs: dict[str, tuple[float, int]] = {}
    for cost in meter.costs:
        seconds, size = costs.get(cost.call, (0.0, 0))
        costs[cost.call] = max(seconds, cost.seconds), max(size, cost.bytes)
    return {**found, "costs": costs, "factor": max(factor, machine_factor())}


if __name__ == "__main__":
    main()
