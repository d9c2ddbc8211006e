"""DeepSeek: V3 and R1 with a fence around the arguments, V3.1 without."""

from __future__ import annotations

from grammarspec.tools.formats.base import ToolFormat

__all__ = ["DEEPSEEK_V3", "DEEPSEEK_V31"]

_BEGIN, _END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL, _SEPARATOR, _CLOSE = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
_MARKERS = (_BEGIN, _END, _CALL, _SEPARATOR, _CLOSE)

DEEPSEEK_V3 = ToolFormat(
    name="deepseek-v3",
    begin=_BEGIN,
    call=f"{_CALL}function{_SEPARATOR}$name\n```json\n$arguments\n```{_CLOSE}",
    separator="\n",
    end=_END,
    markers=_MARKERS,
    signs=(_CALL, "```json"),
    source="https://huggingface.co/deepseek-ai/DeepSeek-V3-0324; https://huggingface.co/deepseek-ai/DeepSeek-R1-0528",
)

DEEPSEEK_V31 = ToolFormat(
    name="deepseek-v3.1",
    begin=_BEGIN,
    call=f"{_CALL}$name{_SEPARATOR}$arguments{_CLOSE}",
    end=_END,
    markers=_MARKERS,
    signs=(_CALL,),
    not_signs=("```json",),
    source="https://huggingface.co/deepseek-ai/DeepSeek-V3.1",
)
