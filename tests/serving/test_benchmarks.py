"""The benchmarks of serving run to their end, and their judges find what is wrong."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grammarspec as gs

jsonschema = pytest.importorskip("jsonschema")
psutil = pytest.importorskip("psutil")
pytest.importorskip("lark")

from benchmarks.serving import costs, latencies, requests, simulation, soak  # noqa: E402
from benchmarks.serving.requests import Asked, harmless, instance_of, schema_of  # noqa: E402
from benchmarks.serving.scheduler import Ended  # noqa: E402
from grammarspec.serving import Request  # noqa: E402


# ---------------------------------------------------------------------- requests and the soak
def test_instances_satisfy_their_schemas() -> None:
    draw = random.Random(1)
    for number in range(60):
        value = instance_of(number, draw)
        jsonschema.validate(value, schema_of(number))
        assert gs.json_schema(schema_of(number)).matches(json.dumps(value))
    assert len({json.dumps(schema_of(number)) for number in range(500)}) == 500


def test_the_judges_of_the_soak() -> None:
    draw = random.Random(1)
    asked = {one.name: one for one in (harmless(draw, 5) for _ in range(100))}
    assert asked.keys() == {"schema", "regex", "choice", "grammar"}
    for one in asked.values():
        report = soak.Report()
        report.add(Ended(one, "finished", "no such text"))
        report.add(Ended(one, "failed", error="a limit"))
        report.add(Ended(one, "refused", error="why"))
        assert report.problems == 3 and len(report.unexpected) == 3
        report.add(Ended(one, "cancelled"))
        assert report.problems == 3


def test_the_year_0_is_one() -> None:
    asked = Asked("harmless", "schema", Request.json_schema(schema_of(2)), requests._schema(2))
    value = instance_of(2, random.Random(1))
    for day, right in (("0000-02-29", True), ("0000-02-30", False), ("2026-02-29", False), ("2026-02-28", True)):
        report = soak.Report()
        report.add(Ended(asked, "finished", json.dumps({**value, "day": day})))
        assert (report.problems == 0) == right


def test_the_growth_of_memory() -> None:
    report = soak.Report(memory=[(at, 100.0 + (at if at < 60 else 0) + at / 60, 50.0) for at in range(0, 120, 5)])
    assert report.growth(0) == pytest.approx(1.0) and report.growth(1) == pytest.approx(0.0)


def test_a_short_soak() -> None:
    """With a vocabulary of bytes and a small cache: requests of all kinds, drafts, another process."""
    report = soak.soak(gs.Vocabulary.bytes(), 3.0, concurrency=16, schemas=40, cache_bytes=1 << 20, every=0.5)
    found = report.summary()
    assert report.problems == 0, found
    assert report.outcomes["harmless, finished"] > 50 and report.memory
    assert 0 < report.cache[0] <= report.cache[1] and report.evictions > 0
    json.dumps(found)


# ---------------------------------------------------------------------- latencies
class Bytes:
    """A tokenizer whose tokens are bytes."""

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return list(text.encode())


def test_latencies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gs.Vocabulary, "from_tokenizer", lambda _tokenizer: gs.Vocabulary.bytes())
    found = latencies.measure(Bytes(), ["grammarspec"], [1, 6], batch=4, rounds=1, requests=8)
    assert list(found) == [(1, "new"), (1, "again"), (6, "new"), (6, "again")]
    for by_name in found.values():
        times = by_name["grammarspec"]
        assert len(times.first) == 8 and times.steps and times.refused == 0 and times.tokens > 100
    assert "6 again: masks of a step, p99" in latencies.report(found)


def test_texts_that_an_engine_refuses_are_counted() -> None:
    class Refuses:
        def begin(self, schema: str) -> Any:
            if schema == "bad":
                raise ValueError(schema)
            return schema

        def fill(self, matchers: Any) -> None: ...

        def accept(self, matcher: Any, token: int) -> bool:
            return token < 5

    times = latencies.Times()
    latencies.run(Refuses(), [("bad", [1]), ("a", [1, 2]), ("b", [1, 7, 3])], 2, lambda: 0, times)
    assert (times.refused, times.tokens, len(times.first)) == (2, 4, 2)


# ---------------------------------------------------------------------- simulation
COSTS = costs.Costs("here", 10.0, 1.0, 0.5, 2.0, (100.0,), 0.9, 0.1, 500.0, 100.0)


def test_a_simulated_step_by_hand() -> None:
    draw = np.random.default_rng(1)

    def step(*setting: Any, **more: Any) -> tuple[float, float]:
        return simulation.masks_of_a_step(simulation.Setting(*setting, **more), COSTS, draw)

    assert step(10, 0, 0.0, 8) == (10 + 10 + 20, 40)
    assert step(10, 4, 0.0, 8) == (10 + 10 + 20 + 100, 140)
    assert step(10, 0, 1.0, 5) == (40 + 2 * 100, 40 + 1000)  # ten tasks on five threads
    assert step(10, 0, 1.0, 64) == (40 + 100, 1040)
    assert step(10, 4, 1.0, 64) == (140 + 500, 140 + 5000)  # those of one sequence one after the other
    assert step(10, 0, 1.0, 64, 1.0) == (0, 0)
    assert step(30, 0, 0.0, 8, 2 / 3) == (40, 40)


def test_more_cores_and_fewer_new_masks_take_no_longer() -> None:
    found = {one: simulation.simulated(one, COSTS, 20) for one in simulation.settings() if one.sequences <= 128}
    for one, figures in found.items():
        assert figures[0] <= figures[1] and figures[1] > 0
        if one.cores > 8:
            assert figures[1] <= found[replace(one, cores=8)][1]
        if one.cold == 1.0:
            assert figures[1] >= found[replace(one, cold=0.1)][1] - 1e-9
    assert simulation.needed({8: 6.0, 16: 4.0}, 5) == "16"
    assert simulation.needed({8: 6.0, 16: 5.5}, 5) == "-"


def test_the_simulation_writes_tables_and_a_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    simulation.main(["--steps", "2", "--out", str(tmp_path)])
    assert (tmp_path / "serving.png").read_bytes()[:4] == b"\x89PNG"
    assert len((tmp_path / "serving.csv").read_text().splitlines()) == 1 + len(list(simulation.settings()))
    assert "| 1024 | 4 | 100% |" in (tmp_path / "serving.md").read_text()
    kept = costs.load()
    assert list(kept.new) == sorted(kept.new) and kept.row > 0 and 0 < kept.later_share < kept.first_share < 1
