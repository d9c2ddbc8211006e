"""The part of the grammar that all schemas of one spelling have: strings, numbers, punctuation, any value.

They are made once for each spelling and kept; the builders of all schemas share their memory, and the grammar of a
schema gets those that it needs.
"""

from __future__ import annotations

from functools import lru_cache

from grammarspec.frontends.json_schema.spelling.builder import AsciiBuilder, SchemaBuilder
from grammarspec.frontends.json_schema.spelling.json_text import JsonText
from grammarspec.frontends.json_schema.spelling.options import Spelling

__all__ = ["new_text", "prelude"]


def new_text(spelling: Spelling) -> tuple[SchemaBuilder, JsonText]:
    """A new builder, and the nodes of a spelling in it, which are made when they are asked for."""
    builder = AsciiBuilder() if spelling.ascii else SchemaBuilder()
    return builder, JsonText(builder, spelling)


@lru_cache(maxsize=32)
def _prototype(spelling: Spelling) -> tuple[SchemaBuilder, JsonText]:
    """What :func:`prelude` copies."""
    builder, text = new_text(spelling)
    text.make_common()
    return builder, text


def prelude(spelling: Spelling) -> tuple[SchemaBuilder, JsonText]:
    """A new builder that holds the common nodes, and these nodes by name."""
    if spelling.notation.excluded:
        return new_text(spelling)  # what one request excludes is not kept
    builder, text = _prototype(spelling)
    own = builder.copy()
    return own, text.over(own)
