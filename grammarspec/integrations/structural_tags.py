"""From the structural tag of an engine's request to a request of :mod:`grammarspec.serving`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from grammarspec.errors import GrammarSyntaxError
from grammarspec.serving import Request

__all__ = ["structural_tag_request"]


def structural_tag_request(text: Any, options: Mapping[str, Any], special_tokens: Mapping[str, int]) -> Request:
    """The request for a structural tag.

    The request has the special tokens whose names occur in the tag; all of them if the tag may name tokens by number.

    Args:
        text: the tag, as a JSON value or as JSON text.
        options: the options for JSON; of these, structural tags only have ``whitespace``.
        special_tokens: the special tokens of the model, by name.

    Raises:
        GrammarSyntaxError: the tag is not JSON.
    """
    try:
        tag = json.loads(text) if isinstance(text, str) else text
        shown = json.dumps(tag, ensure_ascii=False)
    except (ValueError, RecursionError, TypeError) as error:
        raise GrammarSyntaxError(f"the structural tag is not valid JSON: {error}") from None
    by_number = "token" in shown
    named = {name: number for name, number in special_tokens.items() if by_number or name in shown}
    whitespace = {"whitespace": options["whitespace"]} if "whitespace" in options else {}
    return Request.structural_tag(text if isinstance(text, str) else tag, special_tokens=named, **whitespace)
