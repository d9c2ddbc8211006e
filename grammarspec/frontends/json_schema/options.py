"""The options of :func:`grammarspec.json_schema`: what they may be. A record of how values are spelled goes out.

They stand here and in the signature of :func:`grammarspec.json_schema`, where editors show them with their defaults.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from grammarspec.frontends.json_schema.document.dialects import DIALECTS
from grammarspec.frontends.json_schema.spelling.options import Escapes, Numbers, Spelling, Whitespace, spelling

if TYPE_CHECKING:
    import re

    import referencing

    from grammarspec._compiler import CancelToken
    from grammarspec.grammars.engine import Limits

__all__ = ["DEFAULTS", "Options", "OptionsOfCall", "check_options"]


class Options(TypedDict, total=False):
    """The options of :func:`grammarspec.json_schema`."""

    dialect: str | None
    registry: referencing.Registry[Any] | None
    format: Literal["assert", "annotation"]
    property_order: Literal["declared", "any"]
    additional_properties: bool
    whitespace: Whitespace | re.Pattern[str]
    indent: int | str | None
    separators: tuple[str, str] | None
    ensure_ascii: bool
    escapes: Escapes
    numbers: Numbers
    unsupported: Literal["error", "warn"]


class OptionsOfCall(Options, total=False):
    """The options of :func:`grammarspec.json_schema` that a call may have, with those that are about this call only."""

    limits: Limits | None
    cancel: CancelToken | None


def check_options(
    *,
    dialect: str | None = None,
    registry: referencing.Registry[Any] | None = None,
    format: Literal["assert", "annotation"] = "assert",
    property_order: Literal["declared", "any"] = "declared",
    additional_properties: bool = True,
    whitespace: Whitespace | re.Pattern[str] = "flexible",
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    ensure_ascii: bool = False,
    escapes: Escapes = "any",
    numbers: Numbers = "any",
    unsupported: Literal["error", "warn"] = "error",
) -> Spelling:
    """Check options of :func:`grammarspec.json_schema`, whatever the schema.

    Returns:
        How values are spelled, as those of the options say that are about spelling.

    Raises:
        ValueError: an option cannot have such a value, or two options contradict each other.
        GrammarError: the pattern of whitespace is one that no automaton can decide.
    """
    if dialect is not None and dialect not in DIALECTS:
        raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, not {dialect!r}")
    if format not in ("assert", "annotation"):
        raise ValueError(f'format must be "assert" or "annotation", not {format!r}')
    if property_order not in ("declared", "any"):
        raise ValueError(f'property_order must be "declared" or "any", not {property_order!r}')
    if not isinstance(additional_properties, bool):
        raise ValueError(f"additional_properties must be True or False, not {additional_properties!r:.60}")
    if unsupported not in ("error", "warn"):
        raise ValueError(f'unsupported must be "error" or "warn", not {unsupported!r}')
    return spelling(whitespace, indent, separators, ensure_ascii, escapes, numbers)


DEFAULTS: Final = {name: parameter.default for name, parameter in signature(check_options).parameters.items()}
"""The options with their values where they are not given."""
