"""Hermes: JSON in XML tags. Nous Hermes 2 Pro and 3, Qwen 2.5 and 3, Granite 4, and many others."""

from __future__ import annotations

from grammarspec.tools.formats.base import ToolFormat

__all__ = ["HERMES"]

HERMES = ToolFormat(
    name="hermes",
    call='<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>',
    separator="\n",
    markers=("<tool_call>", "</tool_call>"),
    signs=(r"<tool_call>(?:\\n|\s|['\"}{-])*\{\\?[\"']name", r'\\?"arguments\\?":'),
    source="https://huggingface.co/NousResearch/Hermes-3-Llama-3.1-8B; https://huggingface.co/Qwen/Qwen3-0.6B",
)
