"""The languages of formats, which are the same in all schemas: each is made once for each spelling, and kept.

They are large: ``date-time`` has more nodes than most schemas. To embed one takes a tenth of the time of making it.
"""

from __future__ import annotations

from functools import lru_cache

from grammarspec._compiler import Grammar as Ir
from grammarspec.frontends.json_schema.formats.table import Formats
from grammarspec.frontends.json_schema.spelling.options import Spelling
from grammarspec.frontends.json_schema.spelling.prelude import new_text

__all__ = ["format_language"]


@lru_cache(maxsize=64)
def format_language(spelling: Spelling, name: str, *, around: bool) -> Ir:
    """The texts that surely are of a format in :data:`.FORMATS`, as they are spelled within strings.

    Args:
        around: texts among which surely are all of the format, instead.
    """
    builder, text = new_text(spelling)
    formats = Formats(builder, text.exact)
    return builder.build(formats.around(name) if around else formats.inside(name))
