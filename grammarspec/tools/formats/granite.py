"""Granite 3: a marker and a JSON list. Granite 4 writes as Hermes does."""

from __future__ import annotations

from grammarspec.tools.formats.base import ToolFormat

__all__ = ["GRANITE_3"]

GRANITE_3 = ToolFormat(
    name="granite-3",
    begin="<|tool_call|>[",
    call='{"name": "$name", "arguments": $arguments}',
    separator=", ",
    end="]",
    markers=("<|tool_call|>",),
    signs=(r"<\|tool_call\|>", r"start_of_role"),
    source="https://huggingface.co/ibm-granite/granite-3.3-2b-instruct",
)
