"""Grammars of short answers, for the scripts that run an engine itself."""

from __future__ import annotations

import grammarspec as gs

__all__ = ["PERSON", "SCHEMA", "SUM"]

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PERSON = gs.json_schema(SCHEMA, whitespace="compact")
SUM = gs.lark('start: NUMBER (" + " NUMBER) ~ 1..2\nNUMBER: /[1-9][0-9]?/\n')
