"""JSON Schema: drafts 4, 6, 7, 2019-09 and 2020-12, to grammars of the JSON texts that satisfy a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from grammarspec.errors import GrammarSyntaxError, LimitExceeded
from grammarspec.expressions import Grammar
from grammarspec.frontends.json_schema.analysis import Analysis
from grammarspec.frontends.json_schema.document import Document, load
from grammarspec.frontends.json_schema.lowering import Lowering
from grammarspec.frontends.json_schema.prelude import prelude
from grammarspec.frontends.json_schema.scopes import ScopesNeeded

if TYPE_CHECKING:
    from collections.abc import Mapping

    import referencing

__all__ = ["json_schema"]


def json_schema(
    schema: Mapping[str, Any] | bool | str | bytes,
    *,
    dialect: str | None = None,
    registry: referencing.Registry[Any] | None = None,
    format: Literal["assert", "annotation"] = "assert",
    property_order: Literal["declared", "any"] = "declared",
    whitespace: Literal["flexible", "compact"] = "flexible",
) -> Grammar:
    """The JSON texts that satisfy a schema.

    Every keyword is enforced exactly or refused with its place; ``docs/json-schema.md`` lists which, and the deliberate
    narrowings (the order of properties, the spelling of keys, bounded whitespace), which only ever remove outputs.

    Args:
        schema: a dict, a boolean, or JSON text. Numbers of JSON text are taken exactly, floats of a dict as ``repr``
            writes them.
        dialect: ``"draft2020-12"``, ``"draft2019-09"``, ``"draft7"``, ``"draft6"`` or ``"draft4"``; by default what
            ``$schema`` says, or the latest.
        registry: documents that ``$ref`` may point to. Nothing is fetched but by this registry.
        format: ``"assert"`` enforces the formats of the specification; ``"annotation"`` none.
        property_order: ``"declared"``: declared properties come in the order of ``properties``, others anywhere.
        whitespace: ``"flexible"``: where JSON allows it, up to a limit; ``"compact"``: none.

    Raises:
        GrammarSyntaxError: the text is not JSON, a keyword's value is malformed, or a reference points to nothing.
        UnsupportedFeature: a keyword that is not enforced, or not in this combination; ``where`` is its JSON pointer.
        LimitExceeded: the schema is too large or nested too deeply.
    """
    if format not in ("assert", "annotation"):
        raise ValueError(f'format must be "assert" or "annotation", not {format!r}')
    if whitespace not in ("flexible", "compact"):
        raise ValueError(f'whitespace must be "flexible" or "compact", not {whitespace!r}')
    if property_order not in ("declared", "any"):
        raise ValueError(f'property_order must be "declared" or "any", not {property_order!r}')
    root = load(schema)
    try:
        return _lowered(Document(root, dialect, registry), format, property_order, whitespace)
    except ScopesNeeded:
        return _lowered(Document(root, dialect, registry, dynamic=True), format, property_order, whitespace)


def _lowered(document: Document, format: str, property_order: str, whitespace: str) -> Grammar:
    builder, text = prelude(compact=whitespace == "compact")
    analysis = Analysis(document, assert_formats=format == "assert")
    lowering = Lowering(analysis, builder, text, any_order=property_order == "any")
    try:
        start = lowering.start(document.start)
    except RecursionError:
        raise LimitExceeded("the nesting depth of the schema") from None
    except UnicodeEncodeError as error:
        message = f"a lone surrogate (U+{ord(error.object[error.start]):04X}) cannot be spelled in UTF-8"
        raise GrammarSyntaxError(message) from None
    return Grammar(builder.build(start))
