"""vLLM's own code with grammarspec inside, without a model: validation, the engine's manager, drafts, tools.

``python -m tests.integrations.vllm_parts TOKENIZER_DIRECTORY``, run by the Python of vLLM's environment, takes half a
minute. A failure is an ``AssertionError``; at the end, one line of JSON tells what was measured, and which families
of models have calls of tools that can be constrained.
"""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np

from grammarspec.integrations.vllm import register
from tests.integrations.vllm_figures import schema_of

KINDS: dict[str, dict[str, Any]] = {
    "json": {
        "json": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name", "age"],
            "additionalProperties": False,
        }
    },
    "json object": {"json_object": True},
    "regex": {"regex": "(19|20)[0-9]{2}"},
    "choice": {"choice": ["good", "bad"]},
    "lark": {"grammar": 'start: "SELECT " NAME ";"\nNAME: /[a-z]{1,8}/\n'},
    "gbnf": {"grammar": 'root ::= "x = " [0-9]+\n'},
    "tag": {
        "structural_tag": '{"structures": [{"begin": "<f>", "schema": {"type": "array"}, "end": "</f>"}],'
        ' "triggers": ["<f"]}'
    },
}
TEXTS = {
    "json": '{"name": "Al", "age": 31}',
    "json object": '{"a": [1, {"b": null}]}',
    "regex": "1945",
    "choice": "good",
    "lark": "SELECT name;",
    "gbnf": "x = 12",
    "tag": "so <f>[1, 2]</f>.",
}


def engine(tokenizer: Any, size: int, drafts: int, backend: str = "grammarspec") -> Any:
    """vLLM's manager of structured outputs, with what it reads of the configuration."""
    from vllm.config import StructuredOutputsConfig
    from vllm.v1 import structured_output

    structured_output.cached_tokenizer_from_config = lambda model_config: tokenizer
    model_config = SimpleNamespace(
        skip_tokenizer_init=False,
        get_vocab_size=lambda: size,
        is_diffusion=False,
        hf_config=SimpleNamespace(model_type="llama"),
    )
    config = SimpleNamespace(
        structured_outputs_config=StructuredOutputsConfig(backend=backend),
        model_config=model_config,
        parallel_config=SimpleNamespace(distributed_executor_backend=None),
        scheduler_config=SimpleNamespace(max_num_seqs=16),
        num_speculative_tokens=drafts,
        speculative_config=None,
    )
    return structured_output.StructuredOutputManager(config)


def asked(manager: Any, tokenizer: Any, **what: Any) -> Any:
    """The parameters of a request as the API's process makes them for the engine."""
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams

    params = SamplingParams(structured_outputs=StructuredOutputsParams(**what), stop_token_ids=[1])
    config = manager.vllm_config
    params._validate_structured_outputs(config.model_config, config.structured_outputs_config, tokenizer)
    params._all_stop_token_ids = {1, tokenizer.eos_token_id}
    return params


def request_of(name: str, params: Any) -> Any:
    """What the engine has of a request."""
    from vllm.v1.structured_output.request import StructuredOutputRequest

    return SimpleNamespace(
        request_id=name,
        sampling_params=params,
        structured_output_request=StructuredOutputRequest.from_sampling_params(params),
        use_structured_output=True,
        prompt_token_ids=[],
        all_token_ids=[],
    )


def allowed(row: Any, token: int) -> bool:
    return bool(int(row[token // 32]) >> (token % 32) & 1)


def batch(tokenizer: Any, size: int) -> None:
    """All kinds in one batch, with drafts of which some go wrong: the masks are those that the drafts call for."""
    manager = engine(tokenizer, size, drafts=3)
    requests = {name: request_of(name, asked(manager, tokenizer, **what)) for name, what in KINDS.items()}
    for request in requests.values():
        manager.grammar_init(request)
        while not request.structured_output_request.is_grammar_ready:
            time.sleep(0.001)
        assert not isinstance(request.structured_output_request.grammar, Exception)
    left = {name: tokenizer.encode(TEXTS[name], add_special_tokens=False) for name in KINDS}
    end = tokenizer.eos_token_id
    wrong = tokenizer.convert_tokens_to_ids("�") or 5
    while any(left.values()):
        names = [name for name in KINDS if left[name]]
        drafts = {name: [*left[name][:2], wrong][: 1 + len(name) % 3] for name in names}
        rows = manager.grammar_bitmask({name: requests[name] for name in names}, names, drafts)
        at = 0
        for name in names:
            right = [token for token, due in zip(drafts[name], left[name], strict=False) if token == due]
            for place, token in enumerate(left[name][: len(right) + 1]):
                assert allowed(rows[at + place], token), (name, place)
            at += len(drafts[name]) + 1
            taken = left[name][: len(right) + 1][:3]
            assert manager.validate_tokens(requests[name], taken) == taken
            assert manager.accept_tokens(requests[name], taken), name
            left[name] = left[name][len(taken) :]
        assert at == len(rows)
    rows = manager.grammar_bitmask(requests, list(KINDS), {})
    for row, (name, request) in zip(rows, requests.items(), strict=True):
        assert allowed(row, end) and allowed(row, 1), name  # the tokenizer's own end, and the request's stop token
        assert manager.accept_tokens(request, [1]), name
        assert request.structured_output_request.grammar.is_terminated()
    manager.clear_backend()


def tool_calls(tokenizer: Any, size: int) -> dict[str, str]:
    """For each family of models that vLLM knows, whether its structural tag for tools is enforced, or why not."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam
    from vllm.exceptions import VLLMValidationError
    from vllm.tool_parsers import structural_tag_registry as registry

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "weather", "parameters": schema, "strict": True}
    tools = [ChatCompletionToolsParam.model_validate({"type": "function", "function": function})]
    manager, found = engine(tokenizer, size, drafts=0), {}
    for model in sorted(registry.SUPPORTED_STRUCTURAL_TAG_MODELS):
        outcome = "enforced"
        for choice in ("auto", "required"):
            tag = registry.get_model_structural_tag(model, tools, choice, reasoning=False)
            if tag is None:
                continue
            try:
                asked(manager, tokenizer, structural_tag=json.dumps(tag.model_dump()))
            except VLLMValidationError as error:
                outcome = str(error).replace("\n", " ")[:160]
        found[model] = outcome
    assert found["hermes"] == "enforced", found
    return found


def calls_are_valid(tokenizer: Any, size: int) -> None:
    """What a model that likes long tokens writes under the tag of a required tool is a valid call."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam
    from vllm.tool_parsers import structural_tag_registry as registry

    schema = {"type": "object", "properties": {"days": {"enum": [1, 2]}}, "required": ["days"]}
    function = {"name": "weather", "parameters": schema, "strict": True}
    tools = [ChatCompletionToolsParam.model_validate({"type": "function", "function": function})]
    tag = registry.get_model_structural_tag("hermes", tools, "required", reasoning=False)
    manager = engine(tokenizer, size, drafts=0)
    request = request_of("call", asked(manager, tokenizer, structural_tag=json.dumps(tag.model_dump())))
    manager.grammar_init(request)
    while not request.structured_output_request.is_grammar_ready:
        time.sleep(0.001)

    def liked(token: int) -> tuple[bool, int]:
        """Long tokens, but neither blanks, which may go on forever, nor those that begin another call."""
        said = tokenizer.decode([token])
        return not (said.isspace() or "><" in said), len(said)

    tokens: list[int] = []
    while not allowed(row := manager.grammar_bitmask({"call": request}, ["call"], {})[0], 1):
        bits = np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")
        token = max(map(int, np.flatnonzero(bits[:size])), key=liked)
        assert manager.accept_tokens(request, [token])
        tokens.append(token)
        assert len(tokens) < 500, tokenizer.decode(tokens)
    text = tokenizer.decode(tokens)
    call = json.loads(text.removeprefix("<tool_call>").removesuffix("</tool_call>"))
    assert call["name"] == "weather"
    jsonschema.validate(call["arguments"], schema)


def costs(tokenizer: Any, size: int, rounds: int = 5) -> dict[str, Any]:
    """Microseconds of CPU time of vLLM's calls, beside XGrammar's, in turns: median and mean, over new schemas."""
    managers = {name: engine(tokenizer, size, drafts=0, backend=name) for name in ("grammarspec", "xgrammar")}
    times: dict[str, dict[str, list[float]]] = {name: {"validate": [], "compile": [], "mask": []} for name in managers}

    def timed(work: Any) -> tuple[Any, float]:
        began = time.thread_time_ns()
        result = work()
        return result, (time.thread_time_ns() - began) / 1000

    for turn in range(rounds):
        for number in range(10):
            name_of = f"field{turn}_{number}"
            properties = {
                name_of: {"type": "string", "maxLength": 20 + number},
                "n": {"type": "integer", "minimum": turn},
            }
            schema = {"type": "object", "properties": properties, "required": list(properties)}
            schema["additionalProperties"] = False
            said = json.dumps({name_of: "some words", "n": turn + 10})
            text = tokenizer.encode(said, add_special_tokens=False)
            for name, manager in managers.items():
                params, spent = timed(lambda m=manager, s=schema: asked(m, tokenizer, json=s))
                times[name]["validate"].append(spent)
                request = request_of("r", params)
                if manager.backend is None:
                    manager.grammar_init(request)
                    while not request.structured_output_request.is_grammar_ready:
                        time.sleep(0.001)
                kind, spec = request.structured_output_request.structured_output_key
                compile_grammar = manager.backend.compile_grammar
                grammar, spent = timed(lambda c=compile_grammar, k=kind, s=spec: c(k, s, stop_token_ids={2}))
                times[name]["compile"].append(spent)
                rows = manager.backend.allocate_token_bitmask(16)
                for token in text:
                    _, spent = timed(lambda g=grammar, r=rows: g.fill_bitmask(r, 3))
                    times[name]["mask"].append(spent)
                    assert grammar.accept_tokens("r", [token])
    return {
        name: {what: [round(float(np.median(all_)), 1), round(float(np.mean(all_)), 1)] for what, all_ in found.items()}
        for name, found in times.items()
    }


def steps(tokenizer: Any, size: int, requests: int, length: int = 30) -> dict[str, list[float]]:
    """Microseconds of the masks of a step of random texts, median and mean: vLLM's loop over requests, and one call.

    The masks are known already, so that only what is around them is compared; and both ways make the same.
    """
    manager, chance = engine(tokenizer, size, drafts=0), np.random.default_rng(0)
    manager.vllm_config.scheduler_config.max_num_seqs = requests
    running = {}
    for number in range(requests):
        name = f"request {number}"
        running[name] = request_of(name, asked(manager, tokenizer, json=schema_of(number)))
        manager.grammar_init(running[name])
        while not running[name].structured_output_request.is_grammar_ready:
            time.sleep(0.001)
    loop, times = type(manager).grammar_bitmask.__wrapped__, {"vLLM's loop": [], "one call": []}
    for _ in range(length):
        known = manager.grammar_bitmask(running, list(running), {}).copy()
        for name, work in (("vLLM's loop", loop), ("one call", type(manager).grammar_bitmask)):
            began = time.thread_time_ns()
            rows = work(manager, running, list(running), {})
            times[name].append((time.thread_time_ns() - began) / 1000)
            assert (rows == known).all()
        for row, request in zip(known, running.values(), strict=True):
            bits = np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")[:size]
            if not request.structured_output_request.grammar.is_terminated():
                assert manager.accept_tokens(request, [int(chance.choice(np.flatnonzero(bits)))])
    manager.clear_backend()
    return {name: [round(float(np.median(all_)), 1), round(float(np.mean(all_)), 1)] for name, all_ in times.items()}


def main(directory: str) -> None:
    register()
    from transformers import AutoTokenizer
    from vllm.tokenizers.hf import get_cached_tokenizer

    tokenizer = get_cached_tokenizer(AutoTokenizer.from_pretrained(directory))
    size = len(tokenizer)
    report: dict[str, Any] = {}
    batch(tokenizer, size)
    calls_are_valid(tokenizer, size)
    report["tool calls"] = tool_calls(tokenizer, size)
    report["CPU microseconds, median and mean"] = costs(tokenizer, size)
    for requests in (1, 16, 50):
        report[f"masks of a step of {requests} requests"] = steps(tokenizer, size, requests)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
