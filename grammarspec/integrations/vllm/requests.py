"""From structured outputs of vLLM to a request of :mod:`grammarspec.serving`, and to the text for the engine."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from grammarspec.integrations.structural_tags import structural_tag_request
from grammarspec.serving import Lowered, Request

__all__ = ["PREFIX", "json_options", "request_of", "request_of_key", "sent"]

PREFIX: Final = "grammarspec-lowered:"
"""The beginning of a lowered request, which is sent to the engine in place of the text of a grammar."""


def sent(lowered: Lowered) -> str:
    """A lowered request as text, which is sent to the engine in place of the text of a grammar."""
    return PREFIX + base64.b64encode(lowered.to_bytes()).decode()


def json_options(config: Any) -> dict[str, Any]:
    """The options for JSON, from vLLM's configuration of structured outputs."""
    options: dict[str, Any] = {}
    if getattr(config, "disable_any_whitespace", False):
        options["whitespace"] = "compact"
    if getattr(config, "disable_additional_properties", False):
        options["additional_properties"] = False
    return options


def request_of(params: Any, options: Mapping[str, Any], special_tokens: Mapping[str, int]) -> Request:
    """The request of a client.

    Args:
        params: vLLM's ``StructuredOutputsParams``.
        options: the options for JSON.
        special_tokens: the special tokens of the model, by name.

    Raises:
        GrammarSyntaxError: the declaration is malformed.
        TypeError: no kind of structured output is asked for.
    """
    if params.json is not None or params.json_object:
        pattern = params.whitespace_pattern
        asked = {**options, **({} if pattern is None else {"whitespace_pattern": pattern})}
        return Request.json_object(**asked) if params.json is None else Request.json_schema(params.json, **asked)
    if params.regex is not None:
        return Request.regex(params.regex)
    if params.choice is not None:
        return Request.choice(params.choice)
    if params.grammar is not None:
        return _grammar(params.grammar)
    if params.structural_tag is not None:
        return structural_tag_request(params.structural_tag, options, special_tokens)
    raise TypeError("structured outputs must have a JSON Schema, a regex, a choice, a grammar or a structural tag")


def request_of_key(kind: str, text: str, options: Mapping[str, Any], special_tokens: Mapping[str, int]) -> Request:
    """The request for a key of vLLM's engine: the name of the kind, and a text.

    Raises:
        GrammarSyntaxError, TypeError: as :func:`request_of`.
    """
    if kind == "JSON":
        return Request.json_schema(text, **options)
    if kind == "JSON_OBJECT":
        return Request.json_object(**options)
    if kind == "REGEX":
        return Request.regex(text)
    if kind == "CHOICE":
        return Request.choice(json.loads(text))
    if kind == "GRAMMAR":
        return _grammar(text)
    if kind == "STRUCTURAL_TAG":
        return structural_tag_request(text, options, special_tokens)
    raise TypeError(f"unknown kind of structured outputs: {kind!r:.60}")


def _grammar(text: Any) -> Request:
    if isinstance(text, str) and text.startswith(PREFIX):
        return Request.lowered(text[len(PREFIX) :])
    return Request.grammar(text)
