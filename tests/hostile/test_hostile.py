"""No call on an input of the corpus takes long or much memory, and none ends but with a public error."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs
from tests.hostile.arguments import ARGUMENTS
from tests.hostile.cases import CASES
from tests.hostile.measuring import BYTES, SECONDS
from tests.tiers import some

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by Linux's /proc")


_KNOWN: dict[str, str] = {}
"""Cases that are over the bounds, and why."""

_DEAR = {
    "schema: uniqueItems, many strings",
    "regex: the nth from the end, of unions",
    "schema: 1,000 required in any order",
    "lark: dangling else",
    "lark: all splits",
}
"""Cases that take several seconds, all their calls together."""

_TRIES = 3  # a busy machine makes calls slow now and then, what they do makes them so each time


@pytest.fixture(scope="module")
def outcome(smollm2_tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """Runs a case of the corpus in a process of its own, on the vocabulary of SmolLM2."""
    made = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    texts = [made.token_bytes(token) for token in range(made.size)]
    plain = gs.Vocabulary.from_tokens(texts, made.eos_token_ids, special_tokens=made.special_tokens)
    file = tmp_path_factory.mktemp("hostile") / "vocabulary"
    file.write_bytes(pickle.dumps(plain))
    command = [sys.executable, "-m", "tests.hostile.worker", str(file)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as worker:
        assert worker.stdin and worker.stdout

        def run(name: str) -> Any:
            assert worker.stdin and worker.stdout
            print(name, file=worker.stdin, flush=True)
            return json.loads(worker.stdout.readline())

        yield run
        worker.stdin.close()


def test_there_are_enough() -> None:
    assert len(CASES) + len(ARGUMENTS) >= 150


def _marked(name: str) -> Any:
    marks = [pytest.mark.slow] * (name in _DEAR)
    if known := _KNOWN.get(name):
        marks.append(pytest.mark.xfail(reason=known, strict=False))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [*map(_marked, some([*CASES, *ARGUMENTS]))])
def test_no_call_hurts(name: str, outcome: Callable[[str], Any]) -> None:
    over: list[Any] = []
    for _ in range(_TRIES):
        found = outcome(name)
        assert not found["wrong"]
        assert found["costs"]
        if said := found["error"]:
            assert said["where"] or "limit" in said["message"], f"it does not say where: {said}"
        costs = [(call, seconds / found["factor"], size) for call, (seconds, size) in found["costs"].items()]
        if not (over := [cost for cost in costs if cost[1] > SECONDS or cost[2] > BYTES]):
            return
    pytest.fail(f"over the bounds of {SECONDS} seconds and {BYTES} bytes: {over}")
