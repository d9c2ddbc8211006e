"""Plain JSON, for models that have learned no format: one object in a line for each call."""

from __future__ import annotations

from grammarspec.tools.formats.base import ToolFormat

__all__ = ["JSON"]

_PROMPT = """You may call these functions:
$tools

To call functions, reply with nothing but one line of JSON for each call:
{"name": "<name of the function>", "arguments": {"<name of a parameter>": <value>}}"""

JSON = ToolFormat(
    name="json",
    call='{"name": "$name", "arguments": $arguments}',
    separator="\n",
    starts=("{",),
    prompt=_PROMPT,
)
