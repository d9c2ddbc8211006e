"""grammarspec: structured generation by grammars, compiled to masks over a model's tokens.

A grammar (:func:`json_schema`, :func:`regex`, :func:`lark`, :func:`gbnf`, :func:`choice`) and a :class:`Vocabulary`
make a :class:`Constraint`; its matchers say which tokens may come next.

This module has the public names. Importing it imports no other package: a name whose module needs one, or is large, is
imported when it is first used.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from grammarspec.bitmask import allocate_bitmask, apply_bitmask
from grammarspec.constraint import CancelToken, Constraint, Limits, Matcher, compile, fill_bitmasks
from grammarspec.errors import (
    BudgetTooSmall,
    Cancelled,
    DraftMismatch,
    GrammarError,
    GrammarspecError,
    GrammarSyntaxError,
    InternalError,
    InvalidLogits,
    LimitExceeded,
    MissingPackage,
    NoMatch,
    NoModel,
    NotEnforced,
    PromptError,
    StateCollected,
    Truncated,
    Unsatisfiable,
    UnsupportedFeature,
    UnsupportedModel,
    UnsupportedTokenizer,
    UnsupportedType,
    ValidationFailed,
)
from grammarspec.grammars.expressions import Grammar, choice, literal, read_types_by, special, text
from grammarspec.imports import importing
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from grammarspec import types
    from grammarspec.decoding import Sampling
    from grammarspec.decoding.lookahead import Lookahead
    from grammarspec.frontends.gbnf import gbnf
    from grammarspec.frontends.json_schema import json_schema, json_value
    from grammarspec.frontends.json_schema.report.openai import Problem, check_openai_strict
    from grammarspec.frontends.json_schema.report.verdicts import Report
    from grammarspec.frontends.lark import lark, load
    from grammarspec.frontends.lark.report.check import check_lark
    from grammarspec.frontends.lark.report.explanation import Explanation, explain_lark
    from grammarspec.frontends.lark.report.findings import Finding, GrammarReport
    from grammarspec.frontends.lark.report.railroads import draw_lark
    from grammarspec.frontends.llguidance import llguidance
    from grammarspec.frontends.regex import regex
    from grammarspec.frontends.types.decorator import schema
    from grammarspec.frontends.types.python import grammar
    from grammarspec.frontends.types.report import check
    from grammarspec.frozen import FrozenArena, FrozenConstraint
    from grammarspec.grammars.reading import Match
    from grammarspec.grammars.writing.converted import Converted
    from grammarspec.models.decorators import output, use
    from grammarspec.models.model import Model
    from grammarspec.models.results import Result
    from grammarspec.models.streaming import Stream
    from grammarspec.models.tool_loop import Conversation, ToolLimitExceeded, arun_tools, run_tools
    from grammarspec.tools.sources import tool
    from grammarspec.tools.structural_tags import structural_tag
    from grammarspec.tools.tool import Tool, ToolCall
    from grammarspec.uploads import MaskUploads

__all__ = [
    "BudgetTooSmall",
    "CancelToken",
    "Cancelled",
    "Constraint",
    "Conversation",
    "Converted",
    "DraftMismatch",
    "Explanation",
    "Finding",
    "FrozenArena",
    "FrozenConstraint",
    "Grammar",
    "GrammarError",
    "GrammarReport",
    "GrammarSyntaxError",
    "GrammarspecError",
    "InternalError",
    "InvalidLogits",
    "LimitExceeded",
    "Limits",
    "Lookahead",
    "MaskUploads",
    "Match",
    "Matcher",
    "MissingPackage",
    "Model",
    "NoMatch",
    "NoModel",
    "NotEnforced",
    "Problem",
    "PromptError",
    "Report",
    "Result",
    "Sampling",
    "StateCollected",
    "Stream",
    "Tool",
    "ToolCall",
    "ToolLimitExceeded",
    "Truncated",
    "Unsatisfiable",
    "UnsupportedFeature",
    "UnsupportedModel",
    "UnsupportedTokenizer",
    "UnsupportedType",
    "ValidationFailed",
    "Vocabulary",
    "__version__",
    "allocate_bitmask",
    "apply_bitmask",
    "arun_tools",
    "check",
    "check_lark",
    "check_openai_strict",
    "choice",
    "compile",
    "draw_lark",
    "explain_lark",
    "fill_bitmasks",
    "gbnf",
    "grammar",
    "json_schema",
    "json_value",
    "lark",
    "literal",
    "llguidance",
    "load",
    "output",
    "regex",
    "run_tools",
    "schema",
    "special",
    "structural_tag",
    "text",
    "tool",
    "types",
    "use",
]

__version__: str

# The module of each name that is imported on first use. Type checkers read the same from the imports above; a test
# compares the two.
_LATER = {
    "Converted": "grammars.writing.converted",
    "Lookahead": "decoding.lookahead",
    "MaskUploads": "uploads",
    "Match": "grammars.reading",
    "Model": "models.model",
    "Problem": "frontends.json_schema.report.openai",
    "Report": "frontends.json_schema.report.verdicts",
    "Result": "models.results",
    "Sampling": "decoding",
    "Stream": "models.streaming",
    "Tool": "tools.tool",
    "ToolCall": "tools.tool",
    "Explanation": "frontends.lark.report.explanation",
    "Finding": "frontends.lark.report.findings",
    "FrozenArena": "frozen",
    "FrozenConstraint": "frozen",
    "GrammarReport": "frontends.lark.report.findings",
    "check": "frontends.types.report",
    "check_lark": "frontends.lark.report.check",
    "check_openai_strict": "frontends.json_schema.report.openai",
    "draw_lark": "frontends.lark.report.railroads",
    "explain_lark": "frontends.lark.report.explanation",
    "gbnf": "frontends.gbnf",
    "grammar": "frontends.types.python",
    "json_schema": "frontends.json_schema",
    "json_value": "frontends.json_schema",
    "lark": "frontends.lark",
    "llguidance": "frontends.llguidance",
    "load": "frontends.lark",
    "output": "models.decorators",
    "regex": "frontends.regex",
    "run_tools": "models.tool_loop",
    "arun_tools": "models.tool_loop",
    "Conversation": "models.tool_loop",
    "ToolLimitExceeded": "models.tool_loop",
    "tool": "tools.sources",
    "structural_tag": "tools.structural_tags",
    "schema": "frontends.types.decorator",
    "use": "models.decorators",
}


def __getattr__(name: str) -> object:
    with importing:
        if name in _LATER:
            value = getattr(import_module(f"grammarspec.{_LATER[name]}"), name)
        elif name == "types":
            value = import_module("grammarspec.types")
        elif name == "__version__":
            value = import_module("importlib.metadata").version("grammarspec")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _type_grammar(type: Any) -> Grammar[Any]:
    """What a type, or a compiled regular expression, stands for as an operand; front-ends are imported on first use."""
    if isinstance(type, re.Pattern):
        with importing:
            from grammarspec.frontends.regex import regex
        return regex(type)
    with importing:
        from grammarspec.frontends.types.python import grammar
    return grammar(type)


read_types_by(_type_grammar)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
