"""The catalogue of formats, in the order in which they are tried on a chat template.

To add a format, add a value here, before every format whose ``signs`` its chat templates contain as well. One whose
arguments are not JSON, or whose replies are not text and calls, is defined in a module of its own and listed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grammarspec.tools.formats.base import ToolFormat
from grammarspec.tools.formats.cohere import COHERE_XML
from grammarspec.tools.formats.gemma import FUNCTION_GEMMA, GEMMA_4
from grammarspec.tools.formats.harmony import HARMONY
from grammarspec.tools.formats.kimi import KIMI_K3
from grammarspec.tools.formats.llama import LLAMA_JSON, PYTHONIC
from grammarspec.tools.formats.xml import DEEPSEEK_V3_2, DEEPSEEK_V4, GLM_4_5, GLM_4_7, MINIMAX_M2, QWEN_XML

__all__ = ["FORMATS", "JSON", "detect_format", "tool_format"]

JSON = ToolFormat(
    name="json",
    call='{"name": "$name", "arguments": $arguments}',
    separator="\n",
    starts=("{",),
    prompt="""You may call these functions:
$tools

To call functions, reply with nothing but one line of JSON for each call:
{"name": "<name of the function>", "arguments": {"<name of a parameter>": <value>}}""",
)
"""Plain JSON, for models that have learned no format: one object in a line for each call."""

_DEEPSEEK = (
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
)
_MISTRAL = "https://docs.mistral.ai/cookbooks/concept-deep-dive-tokenization-tool_calling"

_IN_ORDER = (
    HARMONY,
    GEMMA_4,
    FUNCTION_GEMMA,
    # DeepSeek V3 and R1: a fence around the arguments.
    ToolFormat(
        name="deepseek-v3",
        begin="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$arguments\n```<｜tool▁call▁end｜>",
        separator="\n",
        end="<｜tool▁calls▁end｜>",
        markers=_DEEPSEEK,
        signs=("<｜tool▁call▁begin｜>", "```json"),
        source="https://huggingface.co/deepseek-ai/DeepSeek-V3-0324; https://huggingface.co/deepseek-ai/DeepSeek-R1-0528",
    ),
    ToolFormat(
        name="deepseek-v3.1",
        begin="<｜tool▁calls▁begin｜>",
        call="<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$arguments<｜tool▁call▁end｜>",
        end="<｜tool▁calls▁end｜>",
        markers=_DEEPSEEK,
        signs=("<｜tool▁call▁begin｜>",),
        not_signs=("```json",),
        source="https://huggingface.co/deepseek-ai/DeepSeek-V3.1",
    ),
    DEEPSEEK_V3_2,
    DEEPSEEK_V4,
    KIMI_K3,
    COHERE_XML,
    # Command R7B, Command A and North, whose newest write TEXT where the others write RESPONSE.
    ToolFormat(
        name="cohere",
        begin="<|START_ACTION|>[\n    ",
        call='{"tool_call_id": "$id", "tool_name": "$name", "parameters": $arguments}',
        separator=",\n    ",
        end="\n]<|END_ACTION|>",
        markers=("<|START_ACTION|>", "<|END_ACTION|>"),
        frames=(("<|START_RESPONSE|>", "<|END_RESPONSE|>"), ("<|START_TEXT|>", "<|END_TEXT|>")),
        id_form="$number",
        signs=(r"<\|START_ACTION\|>", '"tool_call_id"'),
        source="https://docs.cohere.com/docs/command-r7b-hf",
    ),
    ToolFormat(
        name="kimi-k2",
        begin="<|tool_calls_section_begin|>",
        call="<|tool_call_begin|>$id<|tool_call_argument_begin|>$arguments<|tool_call_end|>",
        end="<|tool_calls_section_end|>",
        markers=(
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
        ),
        id_form="functions.$name:$number",
        signs=(r"<\|tool_calls_section_begin\|>", r"<\|tool_call_argument_begin\|>"),
        source="https://huggingface.co/moonshotai/Kimi-K2-Thinking",
    ),
    # Mistral, by the versions of its tokenizers: the older write a JSON list, the newer a name and arguments per call.
    ToolFormat(
        name="mistral-v11",
        call="[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$arguments",
        markers=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        id_length=9,
        signs=(r"\[TOOL_CALLS\]", r"\[CALL_ID\]"),
        source=_MISTRAL,
    ),
    ToolFormat(
        name="mistral-v13",
        call="[TOOL_CALLS]$name[ARGS]$arguments",
        markers=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        id_length=9,
        signs=(r"\[TOOL_CALLS\]", r"\[ARGS\]"),
        not_signs=(r"\[CALL_ID\]",),
        source=_MISTRAL,
    ),
    ToolFormat(
        name="mistral-v3",
        begin="[TOOL_CALLS] [",
        call='{"name": "$name", "arguments": $arguments, "id": "$id"}',
        separator=", ",
        end="]",
        markers=("[TOOL_CALLS]",),
        id_length=9,
        signs=(r"\[TOOL_CALLS\] \[", r'"id\\?": '),
        not_signs=(r"\[ARGS\]",),
        source=_MISTRAL,
    ),
    ToolFormat(
        name="mistral-v3-tekken",
        begin="[TOOL_CALLS][",
        call='{"name": "$name", "arguments": $arguments, "id": "$id"}',
        separator=", ",
        end="]",
        markers=("[TOOL_CALLS]",),
        id_length=9,
        signs=(r"\[TOOL_CALLS\]\[", r'"id\\?": '),
        not_signs=(r"\[ARGS\]",),
        source=_MISTRAL,
    ),
    ToolFormat(
        name="mistral-v2",
        begin="[TOOL_CALLS] [",
        call='{"name": "$name", "arguments": $arguments}',
        separator=", ",
        end="]",
        markers=("[TOOL_CALLS]",),
        id_length=9,
        signs=(r"\[TOOL_CALLS\]",),
        not_signs=(r"\[ARGS\]", r'"id\\?": '),
        source=_MISTRAL,
    ),
    QWEN_XML,
    GLM_4_5,
    GLM_4_7,
    MINIMAX_M2,
    # Nous Hermes 2 Pro and 3, Qwen 2.5 and 3, Granite 4 and many others: JSON in XML tags.
    ToolFormat(
        name="hermes",
        call='<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>',
        separator="\n",
        markers=("<tool_call>", "</tool_call>"),
        signs=(r"<tool_call>(?:\\n|\s|['\"}{-])*\{\\?[\"']name", r'\\?"arguments\\?":'),
        source="https://huggingface.co/NousResearch/Hermes-3-Llama-3.1-8B; https://huggingface.co/Qwen/Qwen3-0.6B",
    ),
    ToolFormat(
        name="phi-4-mini",
        begin="<|tool_call|>[",
        call='{"name": "$name", "arguments": $arguments}',
        separator=", ",
        end="]<|/tool_call|>",
        markers=("<|tool_call|>", "<|/tool_call|>"),
        tools_member="tools",
        signs=(r"<\|tool\|>", r"<\|/tool\|>"),
        source="https://huggingface.co/microsoft/Phi-4-mini-instruct",
    ),
    # Granite 3; Granite 4 writes as Hermes does.
    ToolFormat(
        name="granite-3",
        begin="<|tool_call|>[",
        call='{"name": "$name", "arguments": $arguments}',
        separator=", ",
        end="]",
        markers=("<|tool_call|>",),
        signs=(r"<\|tool_call\|>", r"start_of_role"),
        source="https://huggingface.co/ibm-granite/granite-3.3-2b-instruct",
    ),
    PYTHONIC,
    LLAMA_JSON,
    JSON,
)

FORMATS: dict[str, ToolFormat] = {one.name: one for one in _IN_ORDER}
"""All formats by name, in the order in which they are tried."""


def tool_format(name: str) -> ToolFormat:
    """The format of this name.

    Raises:
        ValueError: there is none.
    """
    if name not in FORMATS:
        raise ValueError(f"there is no format of tool calls named {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def detect_format(chat_template: str | None, response_template: Any = None) -> ToolFormat | None:
    """The first format whose signs are in the templates of a tokenizer; ``None`` if there is none.

    To models without a format, :data:`JSON` can be explained: see :meth:`ToolFormat.instructions`.

    Args:
        chat_template: the Jinja template, if there is one.
        response_template: the JSON value that says how to read replies, if there is one.
    """
    templates = "\n".join([chat_template or "", *_texts(response_template)])
    return next((one for one in FORMATS.values() if one.detects(templates)), None)


def _texts(value: Any) -> Iterator[str]:
    """All the texts in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
