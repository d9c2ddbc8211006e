"""How long clients of vLLM wait, backends in turns: run by the Python of vLLM's environment.

``python -m tests.integrations.vllm_latencies MODEL_DIRECTORY [BACKEND ...]``. One engine in this process has 64
requests at a time, of 1, 50 or 500 different schemas: those that no backend has seen (cold), and the same once more
(warm). A model of one layer shows most, as the engine then waits for masks rather than for the model. Times are from
the call that adds a request to its first token, and between its tokens; one line of JSON is printed at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from typing import Any

from tests.integrations.vllm_figures import backends, engine_of, schema_of, use

REQUESTS, AT_ONCE, MAX_TOKENS, ROUNDS = (
    int(os.environ.get(f"VLLM_LATENCIES_{name}", default))
    for name, default in (("REQUESTS", 500), ("AT_ONCE", 64), ("MAX_TOKENS", 32), ("ROUNDS", 2))
)
DIFFERENT = (1, 50, 500)


def percentile(values: list[float], share: float) -> float:
    """A percentile in milliseconds."""
    return round(1000 * sorted(values)[min(int(len(values) * share), len(values) - 1)], 2)


def main(model: str, names: list[str]) -> None:
    llm = engine_of(model, AT_ONCE)
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    requests, found = llm.llm_engine, backends(llm.llm_engine.engine_core.engine_core, names)
    numbers = iter(range(10**9))

    def ask(backend: str, schemas: list[Any]) -> dict[str, float]:
        """Requests for these schemas, 64 of them at any time."""
        use(llm, backend, found[backend])
        waiting, began = list(enumerate(schemas)), time.perf_counter()
        latest: dict[str, float] = {}
        first: list[float] = []
        between: list[float] = []
        started: dict[str, float] = {}
        tokens = 0
        while waiting or started:
            while waiting and len(started) < AT_ONCE:
                seed, schema = waiting.pop(0)
                name = str(next(numbers))
                started[name] = time.perf_counter()
                params = SamplingParams(
                    max_tokens=MAX_TOKENS,
                    temperature=0.7,
                    seed=seed,
                    output_kind=RequestOutputKind.DELTA,
                    structured_outputs=StructuredOutputsParams(json=schema),
                )
                requests.add_request(name, f"Request {seed}: some JSON, short.", params)
            for output in requests.step():
                now, new = time.perf_counter(), len(output.outputs[0].token_ids)
                tokens += new
                if new and output.request_id in latest:
                    between += [(now - latest[output.request_id]) / new] * new
                elif new:
                    first.append(now - started[output.request_id])
                latest[output.request_id] = now
                if output.finished:
                    del started[output.request_id]
        seconds = time.perf_counter() - began
        return {
            "first p50": percentile(first, 0.5),
            "first p99": percentile(first, 0.99),
            "next p50": percentile(between, 0.5),
            "next p99": percentile(between, 0.99),
            "tokens per second": round(tokens / seconds),
        }

    ask(names[0], [schema_of(0)])  # what the first request of a process pays is not a matter of the backend
    report: dict[str, Any] = defaultdict(lambda: defaultdict(list))
    number = 1000
    for turn in range(ROUNDS):
        for different in DIFFERENT:
            schemas = [schema_of(number + i % different) for i in range(REQUESTS)]
            number += different
            for state in ("cold", "warm"):
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    row = ask(name, schemas)
                    report[f"{different} schemas, {state}"][name].append(row)
                    print(different, state, name, json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps({"requests": REQUESTS, "at_once": AT_ONCE, "rounds": ROUNDS, "milliseconds": report}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["grammarspec", "xgrammar", "guidance"])
