"""Mistral, by the versions of its tokenizers: a JSON list with ids, then calls one by one behind their names."""

from __future__ import annotations

from dataclasses import replace

from grammarspec.tools.formats.base import ToolFormat

__all__ = ["MISTRAL_V2", "MISTRAL_V3", "MISTRAL_V3_TEKKEN", "MISTRAL_V11", "MISTRAL_V13"]

_SOURCE = "https://docs.mistral.ai/cookbooks/concept-deep-dive-tokenization-tool_calling"

MISTRAL_V13 = ToolFormat(
    name="mistral-v13",
    call="[TOOL_CALLS]$name[ARGS]$arguments",
    markers=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    id_length=9,
    signs=(r"\[TOOL_CALLS\]", r"\[ARGS\]"),
    not_signs=(r"\[CALL_ID\]",),
    source=_SOURCE,
)

MISTRAL_V11 = replace(
    MISTRAL_V13,
    name="mistral-v11",
    call="[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$arguments",
    signs=(r"\[TOOL_CALLS\]", r"\[CALL_ID\]"),
    not_signs=(),
)

MISTRAL_V3 = ToolFormat(
    name="mistral-v3",
    begin="[TOOL_CALLS] [",
    call='{"name": "$name", "arguments": $arguments, "id": "$id"}',
    separator=", ",
    end="]",
    markers=("[TOOL_CALLS]",),
    id_length=9,
    signs=(r"\[TOOL_CALLS\] \[", r'"id\\?": '),
    not_signs=(r"\[ARGS\]",),
    source=_SOURCE,
)

MISTRAL_V3_TEKKEN = replace(
    MISTRAL_V3, name="mistral-v3-tekken", begin="[TOOL_CALLS][", signs=(r"\[TOOL_CALLS\]\[", r'"id\\?": ')
)

MISTRAL_V2 = replace(
    MISTRAL_V3,
    name="mistral-v2",
    call='{"name": "$name", "arguments": $arguments}',
    signs=(r"\[TOOL_CALLS\]",),
    not_signs=(r"\[ARGS\]", r'"id\\?": '),
)
