"""Models that answer with values: prompts and types go in, values of the types come out.

The names of this package are imported on first use, because most of them bring torch with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from grammarspec.imports import importing

if TYPE_CHECKING:
    from grammarspec.models.decorators import AsyncOutputFunction, OutputFunction, output, use
    from grammarspec.models.loading import encode_prompt, load_draft, load_model, vocabulary_of
    from grammarspec.models.model import Model
    from grammarspec.models.options import Options
    from grammarspec.models.results import Result
    from grammarspec.models.streaming import Stream
    from grammarspec.models.tool_loop import Conversation, ToolLimitExceeded, arun_tools, run_tools

__all__ = [
    "AsyncOutputFunction",
    "Conversation",
    "Model",
    "Options",
    "OutputFunction",
    "Result",
    "Stream",
    "ToolLimitExceeded",
    "arun_tools",
    "encode_prompt",
    "load_draft",
    "load_model",
    "output",
    "run_tools",
    "use",
    "vocabulary_of",
]

_MODULES = {
    "AsyncOutputFunction": "decorators",
    "Conversation": "tool_loop",
    "Model": "model",
    "Options": "options",
    "OutputFunction": "decorators",
    "Result": "results",
    "Stream": "streaming",
    "ToolLimitExceeded": "tool_loop",
    "arun_tools": "tool_loop",
    "encode_prompt": "loading",
    "load_draft": "loading",
    "load_model": "loading",
    "output": "decorators",
    "run_tools": "tool_loop",
    "use": "decorators",
    "vocabulary_of": "loading",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with importing:
        value = getattr(import_module(f"grammarspec.models.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
