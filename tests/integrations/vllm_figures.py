"""What structured outputs cost in vLLM's engine, backends in turns: run by the Python of vLLM's environment.

``python -m tests.integrations.vllm_figures MODEL_DIRECTORY [BACKEND ...]``. One engine with a real model in this
process answers the same batches of requests with each backend, one backend after the other, with schemas that none has
seen (cold) and once more with the same (warm). CPU time is that of the thread that calls, so that the model's own work
and other processes are not in it; the time of a whole batch is wall time. One line of JSON is printed at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any

import jsonschema

from grammarspec.integrations.vllm import register

REQUESTS, MAX_TOKENS, ROUNDS = (
    int(os.environ.get(f"VLLM_FIGURES_{name}", default))
    for name, default in (("REQUESTS", 50), ("MAX_TOKENS", 48), ("ROUNDS", 3))
)


def schema_of(number: int) -> dict[str, Any]:
    """A schema that differs from those of all other numbers: a person, an order, a forecast, a review or a rule."""
    text, key = {"type": "string", "maxLength": 30}, f"field_{number}"
    shapes: list[dict[str, Any]] = [
        {"name": text, "age": {"type": "integer", "minimum": 0, "maximum": 150}, "email": {"type": "string"}},
        {
            "items": {
                "type": "array",
                "minItems": 1,
                "maxItems": 3,
                "items": {
                    "type": "object",
                    "properties": {
                        "sku": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$"},
                        "n": {"type": "integer"},
                    },
                    "required": ["sku", "n"],
                    "additionalProperties": False,
                },
            },
        },
        {"day": {"type": "string", "format": "date"}, "weather": {"enum": ["sun", "rain", "snow"]}},
        {"stars": {"type": "integer", "minimum": 1, "maximum": 5}, "title": text, "words": text},
        {"when": {"anyOf": [{"type": "null"}, text]}, "then": {"type": "boolean"}, "weight": {"type": "number"}},
    ]
    properties = {**shapes[number % len(shapes)], key: {"type": "integer"}}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class Meter:
    """CPU time of the functions that it wraps, in microseconds."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = defaultdict(list)

    def around(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time_ns()
            try:
                return work(*arguments, **named)
            finally:
                self.times[name].append((time.thread_time_ns() - began) / 1000)

        return timed


def backends(engine: Any, names: list[str]) -> dict[str, Any]:
    """The backends of one engine's manager, by name."""
    from vllm.v1.structured_output.backend_guidance import GuidanceBackend
    from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

    from grammarspec.integrations.vllm.backend import Backend

    kinds = {"grammarspec": Backend, "xgrammar": XgrammarBackend, "guidance": GuidanceBackend}
    manager, config = engine.scheduler.structured_output_manager, engine.vllm_config
    size = config.model_config.get_vocab_size()
    return {name: kinds[name](config, tokenizer=manager.tokenizer, vocab_size=size) for name in names}


def engine_of(model: str, sequences: int) -> Any:
    """vLLM in this process, with at most so many sequences at once."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    register()
    import vllm

    return vllm.LLM(
        model,
        structured_outputs_config={"backend": "grammarspec"},
        max_model_len=512,
        enforce_eager=True,
        dtype="float32",
        max_num_seqs=sequences,
        disable_log_stats=True,
    )


def use(llm: Any, name: str, backend: Any) -> None:
    """Have an engine of :func:`engine_of` answer with another backend."""
    engine = llm.llm_engine.engine_core.engine_core
    manager = engine.scheduler.structured_output_manager
    for config in (llm.llm_engine.vllm_config, engine.vllm_config, manager.vllm_config):
        config.structured_outputs_config.backend = name
    llm.llm_engine.input_processor.structured_outputs_config.backend = name
    manager.backend, manager._grammar_bitmask = backend, None


def main(model: str, names: list[str]) -> None:
    llm = engine_of(model, REQUESTS)
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams

    engine = llm.llm_engine.engine_core.engine_core
    manager = engine.scheduler.structured_output_manager
    found, meter = backends(engine, names), Meter()
    original = {name: getattr(manager, name) for name in ("grammar_bitmask", "accept_tokens", "_create_grammar")}
    manager.grammar_bitmask = meter.around("masks of a step", original["grammar_bitmask"])
    manager.accept_tokens = meter.around("accept", original["accept_tokens"])
    manager._create_grammar = meter.around("compile", original["_create_grammar"])
    validate = meter.around("validate", SamplingParams._validate_structured_outputs)
    SamplingParams._validate_structured_outputs = validate  # type: ignore[method-assign]

    def ask(backend: str, schemas: list[Any]) -> dict[str, Any]:
        """One batch with one backend."""
        use(llm, backend, found[backend])
        meter.times.clear()
        began = time.monotonic()
        answers = llm.chat(
            [[{"role": "user", "content": f"Request {i}: some JSON, short."}] for i in range(len(schemas))],
            [
                SamplingParams(
                    max_tokens=MAX_TOKENS,
                    temperature=0.7,
                    seed=i,
                    structured_outputs=StructuredOutputsParams(json=schema),
                )
                for i, schema in enumerate(schemas)
            ],
            use_tqdm=False,
        )
        seconds = time.monotonic() - began
        tokens = finished = 0
        for schema, answer in zip(schemas, answers, strict=True):
            output = answer.outputs[0]
            tokens += len(output.token_ids)
            if output.finish_reason == "stop":
                finished += 1
                jsonschema.validate(json.loads(output.text), schema)
        sums = {name: sum(times) for name, times in meter.times.items()}
        per_request = {name: round(sums[name] / len(schemas), 1) for name in ("validate", "compile")}
        return {
            **per_request,
            "masks of a step": round(sums["masks of a step"] / len(meter.times["masks of a step"]), 1),
            "masks, per token": round(sums["masks of a step"] / tokens, 2),
            "accept, per token": round(sums["accept"] / tokens, 2),
            "all, per token": round(sum(sums.values()) / tokens, 2),
            "seconds": round(seconds, 2),
            "tokens": tokens,
            "finished": finished,
        }

    ask(names[0], [schema_of(0)])  # what the first request of a process pays is not a matter of the backend
    report: dict[str, Any] = defaultdict(lambda: defaultdict(list))
    number = 1000
    for turn in range(ROUNDS):
        for different in (1, REQUESTS):
            schemas = [schema_of(number + i % different) for i in range(REQUESTS)]
            number += different
            for state in ("cold", "warm"):
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    row = ask(name, schemas)
                    report[f"{different} schemas, {state}"][name].append(row)
                    print(different, state, name, json.dumps(row), file=sys.stderr, flush=True)
    print(json.dumps({"requests": REQUESTS, "rounds": ROUNDS, "microseconds": report}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["grammarspec", "xgrammar"])
