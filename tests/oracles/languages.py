"""Small languages over bytes and some longer tokens, each a grammar and a judge of its texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema

import grammarspec as gs

EOS, PAD = 256, 257
WORDS = [b"yes", b"no", b'{"', b'": ', b"12", b"20"]
VOCABULARY = gs.Vocabulary.from_tokens([*(bytes([value]) for value in range(256)), None, None, *WORDS], [EOS])

SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"enum": ["yes", "no", 12]},
        "flags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
    },
    "required": ["answer", "flags"],
    "additionalProperties": False,
}


def matches(pattern: str) -> tuple[gs.Grammar, Callable[[str], object]]:
    return gs.regex(pattern), lambda text: re.fullmatch(pattern, text)


def satisfies(schema: dict[str, Any]) -> tuple[gs.Grammar, Callable[[str], object]]:
    def check(text: str) -> bool:
        jsonschema.validate(json.loads(text), schema)
        return True

    return gs.json_schema(schema, whitespace="compact"), check
