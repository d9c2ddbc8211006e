"""The formats in which families of models write calls of tools, each as a grammar that enforces and reads it.

To add one, write a module with a :class:`ToolFormat`: usually a data value that says what a call looks like (``call``,
with ``$name`` and ``$arguments`` in their places), which of its parts may be special tokens (``markers``), and what is
found in the chat templates of the family (``signs``). Where arguments are not JSON, give a function that makes their
grammar (``arguments``); where a whole reply is something else than text and calls, override ``reply``, as Harmony
does. Then list it in :data:`FORMATS`, before those whose signs it has too, and add a template of the family and its
calls to the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grammarspec.tools.formats.base import Markers, Reply, ToolFormat
from grammarspec.tools.formats.deepseek import DEEPSEEK_V3, DEEPSEEK_V31
from grammarspec.tools.formats.gemma import FUNCTION_GEMMA, GEMMA_4
from grammarspec.tools.formats.granite import GRANITE_3
from grammarspec.tools.formats.harmony import HARMONY
from grammarspec.tools.formats.hermes import HERMES
from grammarspec.tools.formats.llama import LLAMA_JSON, PYTHONIC
from grammarspec.tools.formats.mistral import MISTRAL_V2, MISTRAL_V3, MISTRAL_V3_TEKKEN, MISTRAL_V11, MISTRAL_V13
from grammarspec.tools.formats.phi import PHI_4_MINI
from grammarspec.tools.formats.plain import JSON
from grammarspec.tools.formats.xml import QWEN_XML

__all__ = ["FORMATS", "JSON", "Markers", "Reply", "ToolFormat", "detect_format", "tool_format"]

FORMATS: dict[str, ToolFormat] = {
    one.name: one
    for one in (
        HARMONY, GEMMA_4, FUNCTION_GEMMA, DEEPSEEK_V3, DEEPSEEK_V31,
        MISTRAL_V11, MISTRAL_V13, MISTRAL_V3, MISTRAL_V3_TEKKEN, MISTRAL_V2,
        QWEN_XML, HERMES, PHI_4_MINI, GRANITE_3, PYTHONIC, LLAMA_JSON, JSON,
    )
}  # fmt: skip
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
    """The format of a tokenizer's chat template (and of its response template, if it has one); ``None``: none is known.

    Models without any can be told of :data:`JSON`: see :meth:`ToolFormat.instructions`.
    """
    told = "\n".join([chat_template or "", *_texts(response_template)])
    return next((one for one in FORMATS.values() if one.detects(told)), None)


def _texts(value: Any) -> Iterator[str]:
    """All the texts in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
