"""Phi-4-mini: a JSON list between markers."""

from __future__ import annotations

from grammarspec.tools.formats.base import ToolFormat

__all__ = ["PHI_4_MINI"]

PHI_4_MINI = ToolFormat(
    name="phi-4-mini",
    begin="<|tool_call|>[",
    call='{"name": "$name", "arguments": $arguments}',
    separator=", ",
    end="]<|/tool_call|>",
    markers=("<|tool_call|>", "<|/tool_call|>"),
    tools_member="tools",
    signs=(r"<\|tool\|>", r"<\|/tool\|>"),
    source="https://huggingface.co/microsoft/Phi-4-mini-instruct",
)
