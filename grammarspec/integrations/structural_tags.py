"""Structural tags as engines have them: the text of an engine's request comes in, a request goes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from grammarspec.errors import GrammarSyntaxError
from grammarspec.serving import Request

__all__ = ["structural_tag_request"]


def structural_tag_request(text: Any, options: Mapping[str, Any], special_tokens: Mapping[str, int]) -> Request:
    """The request of a structural tag.

    It has the special tokens that the tag may name; all of them if it names tokens by their numbers.

    Args:
        text: the tag, as JSON or its text.
        options: the options for JSON; those that structural tags have are taken.
        special_tokens: of the model, by name.

    Raises:
        GrammarSyntaxError: the tag is no JSON.
    """
    try:
        tag = json.loads(text) if isinstance(text, str) else text
        shown = json.dumps(tag, ensure_ascii=False)
    except (ValueError, RecursionError, TypeError) as error:
        raise GrammarSyntaxError(f"the structural tag is no JSON: {error}") from None
    by_number = "token" in shown
    named = {name: number for name, number in special_tokens.items() if by_number or name in shown}
    whitespace = {"whitespace": options["whitespace"]} if "whitespace" in options else {}
    return Request.structural_tag(text if isinstance(text, str) else tag, special_tokens=named, **whitespace)
