"""Keywords that constrain nothing: annotations, and keywords that name schemas or hold them for references."""

from __future__ import annotations

from grammarspec.frontends.json_schema.keywords.keyword import Holds, Keyword, Role

__all__ = ["KEYWORDS"]

KEYWORDS = (
    *(
        Keyword(name, role=Role.ANNOTATION)
        for name in (
            "title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly",
            "contentEncoding", "contentMediaType",
        )
    ),
    Keyword("contentSchema", role=Role.ANNOTATION, holds=Holds.ONE),
    *(
        Keyword(name, role=Role.IDENTIFIER)
        for name in ("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary")
    ),
    Keyword("id", role=Role.IDENTIFIER, until=4),
    *(Keyword(name, role=Role.IDENTIFIER, holds=Holds.MAP) for name in ("$defs", "definitions")),
)  # fmt: skip
