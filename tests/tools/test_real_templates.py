"""Chat templates as their makers publish them, in the folder ``templates`` of the tests' data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grammarspec.tools.formats import detect_format, tool_format
from grammarspec.tools.tool import ToolCall
from tests import data
from tests.tools.declared import PING, WEATHER, tool
from tests.tools.rendering import ENDS, USER, message, rendered

_CHATML = "<|im_start|>assistant\n"
_LLAMA = "<|start_header_id|>assistant<|end_header_id|>\n\n"
# The format of each, and what stands before the text of a turn; ``None``: the template writes no calls.
KNOWN: dict[str, tuple[str, str | None]] = {
    "Bielik-11B-v3.0-Instruct": ("hermes", _CHATML),
    "Cohere2MoE": ("cohere", "<|CHATBOT_TOKEN|>"),
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": ("cohere", None),  # it always begins the next turn
    "Mistral-Small-3.2-24B-Instruct-2506": ("mistral-v11", "[/INST]"),
    "GLM-4.6": ("glm-4.5", "</think>"),
    "Kimi-K2-Instruct": ("kimi-k2", None),  # transformers refuses to run it
    "Kimi-K2-Thinking": ("kimi-k2", None),  # as above
    "MiniMax-M2": ("minimax-m2", "]~b]ai\n"),
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("qwen-xml", _CHATML),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": ("hermes", _CHATML),
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": ("hermes", _CHATML),
    "Qwen-QwQ-32B": ("hermes", _CHATML),
    "Qwen-Qwen2.5-7B-Instruct": ("hermes", _CHATML),
    "Qwen-Qwen3-0.6B": ("hermes", _CHATML),
    "Qwen3-Coder": ("qwen-xml", _CHATML),
    "Qwen3.5-4B": ("qwen-xml", _CHATML),
    "Spark2.5": ("glm-4.7", "</think>"),
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": ("deepseek-v3", None),  # it leaves a single call without an end
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": ("deepseek-v3", "<｜Assistant｜>"),
    "deepseek-ai-DeepSeek-V3.1": ("deepseek-v3.1", "<｜Assistant｜>"),
    "deepseek-ai-DeepSeek-V3.2": ("deepseek-v3.2", "</think>"),
    "deepseek-ai-DeepSeek-V4": ("deepseek-v4", "</think>"),
    "deepseek-ai-DeepSeek-V4-Flash-0731": ("deepseek-v4", "</think>"),
    "google-gemma-4-31B-it": ("gemma-4", "<|turn>model\n"),
    "google-gemma-4-31B-it-interleaved": ("gemma-4", "<|turn>model\n"),
    "ibm-granite-granite-3.3-2B-Instruct": ("granite-3", None),
    "ibm-granite-granite-4.0": ("hermes", "<|start_of_role|>assistant<|end_of_role|>"),
    "llama-cpp-deepseek-r1": ("deepseek-v3", None),  # it is no Jinja: JSON of generators
    "meta-llama-Llama-3.1-8B-Instruct": ("llama-json", _LLAMA),
    "meta-llama-Llama-3.2-3B-Instruct": ("llama-json", _LLAMA),
    "meta-llama-Llama-3.3-70B-Instruct": ("llama-json", _LLAMA),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("mistral-v13", "[/INST]"),
    "mistralai-Mistral-Nemo-Instruct-2407": ("mistral-v3-tekken", "[/INST]"),
    "openai-gpt-oss-120b": ("harmony", "<|start|>assistant"),
    "unsloth-mistral-Devstral-Small-2507": ("mistral-v13", "[/INST]"),
}
OTHER = (
    "Apertus-8B-Instruct", "ByteDance-Seed-OSS", "CohereForAI-c4ai-command-r-plus-tool_use",
    "LFM2-8B-A1B", "NVIDIA-Nemotron-Nano-v2",
    "google-gemma-2-2b-it", "meetkai-functionary-medium-v3.2",
    "microsoft-Phi-3.5-mini-instruct", "muse-glimmer", "upstage-Solar-Open-100B",
)  # fmt: skip
"""Families with a format that is none of ours, or with none."""

NO_CONTENT = {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B"}
"""Those that take messages for text if they have a content, be it empty."""

_THOUGHT = re.compile(r"\A<think>.*?</think>\s*", re.DOTALL)
_CALLS = [
    ToolCall("abcDEF123", "get_weather", {"city": 'Zürich "\n\\ <b>', "days": 3}, None),
    ToolCall("abcDEF124", "get_weather", {"city": "", "days": 1, "unit": "F"}, None),
    ToolCall("abcDEF125", "ping", {}, None),
    ToolCall("abcDEF126", "deep", {"at": {"on": [True, False], "x": 0.25}, "words": ["a", "b, c"], "yes": True}, None),
]
_DEEP = tool(
    "deep",
    {
        "type": "object",
        "properties": {
            "at": {"type": "object", "properties": {"on": {"items": {"type": "boolean"}}, "x": {"type": "number"}}},
            "words": {"type": "array", "items": {"type": "string"}},
            "yes": {"type": "boolean"},
        },
    },
)


@pytest.fixture(scope="session")
def templates(pytestconfig: pytest.Config) -> Path:
    return data.folder(pytestconfig, "templates")


@pytest.mark.parametrize("name", [*KNOWN, *OTHER])
def test_the_format_is_found(name: str, templates: Path) -> None:
    found = detect_format((templates / f"{name}.jinja").read_text())
    assert found is (tool_format(KNOWN[name][0]) if name in KNOWN else None)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        (name, calls)
        for name, (form, begin) in KNOWN.items()
        for calls in (*([call] for call in _CALLS), _CALLS)
        if begin and not (tool_format(form).single and len(calls) > 1)
    ],
)
def test_calls_are_written_as_the_template_does(name: str, calls: list[ToolCall], templates: Path) -> None:
    form, begin = tool_format(KNOWN[name][0]), KNOWN[name][1]
    tools = [WEATHER, PING, _DEEP]
    last = message(calls, None if name in NO_CONTENT else "")
    whole = rendered((templates / f"{name}.jinja").read_text(), [USER, last], tools)
    said = whole.rpartition(begin or "")[2]
    said = next((said.removesuffix(end) for end in ENDS if said.endswith(end)), said)
    found = form.grammar(tools).parse(_THOUGHT.sub("", said))
    assert [(one.name, one.arguments) for one in found.calls] == [(one.name, one.arguments) for one in calls]
