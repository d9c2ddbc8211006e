"""Validation in functions: what the functions of Pydantic and of types of its kind ask, as JSON Schemas.

A function schema of Pydantic's (``function-after`` and the like) goes in. For a function of the user nothing comes out:
it runs after generation. For a function of a library that is known, the JSON Schema of texts that it takes comes out;
any other function of a library, or of a type that validates by itself, is refused, since a schema without it would have
texts that are no values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from inspect import getclosurevars
from typing import Any

from grammarspec.errors import UnsupportedType
from grammarspec.frontends.types.texts_of_formats import (
    ASCII_IN_BASE64,
    BASE64,
    BYTE_SIZE,
    EMAIL,
    LOWER_CASE,
    UPPER_CASE,
    url_safe,
)

__all__ = ["added_schema", "known_schema"]

_LIBRARIES = ("pydantic", "pydantic_extra_types")

_IP_ADDRESSES = [{"format": "ipv4"}, {"format": "ipv6"}]
_KNOWN: dict[str, dict[str, Any]] = {
    "pydantic.networks.EmailStr._validate": {"type": "string", "pattern": EMAIL},
    "pydantic.networks.IPvAnyAddress._validate": {"type": "string", "anyOf": _IP_ADDRESSES},
    "pydantic.networks.IPvAnyInterface._validate": {
        "type": "string", "anyOf": [{"format": "ipv4interface"}, {"format": "ipv6"}],
    },
    "pydantic.networks.IPvAnyNetwork._validate": {
        "type": "string", "anyOf": [{"format": "ipv4network"}, {"format": "ipv6"}],
    },
    "pydantic.types.ByteSize._validate": {
        "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": BYTE_SIZE}],
    },
}  # fmt: skip
"""Functions of types, by module and name, with what they take."""

_HARMLESS = (
    "_path_schema.<locals>.path_validator", "_BaseUrl.__get_pydantic_core_schema__.<locals>.wrap_val",
    "_BaseMultiHostUrl.__get_pydantic_core_schema__.<locals>.wrap_val", "Secret.__get_pydantic_core_schema__.",
    "SecretStr", "SecretBytes", "sequence_validator", "SkipValidation.__get_pydantic_core_schema__.",
    "pattern_either_validator", "pattern_str_validator", "pattern_bytes_validator",
)  # fmt: skip
"""Functions of Pydantic's own that refuse nothing beyond the schema they stand around, or are refused by a format."""

_PREDICATES: dict[Any, dict[str, Any]] = {
    str.islower: {"pattern": LOWER_CASE},
    str.isupper: {"pattern": UPPER_CASE},
    str.isdigit: {"pattern": "^[0-9]+$"},
    str.isascii: {"pattern": "^[\\x00-\\x7f]*$"},
    math.isfinite: {},  # as all numbers of JSON are
}
_BOUNDS = {"ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "max_digits", "decimal_places"}
_SIZES = {
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}


def known_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    """The JSON Schema of what a function takes, in place of the schema around which it stands.

    Returns:
        ``None`` if the schema around which it stands is as good as before, with :func:`added_schema`.

    Raises:
        UnsupportedType: it decodes in an unknown way.
    """
    owner = getattr(function, "__self__", None)
    encoder = getattr(owner, "encoder", None)
    if encoder is not None and _name(function).startswith("pydantic.types.Encoded"):
        pattern = ASCII_IN_BASE64 if "EncodedStr" in _name(function) else BASE64
        match getattr(encoder, "__name__", ""):
            case "Base64Encoder":
                return {"type": "string", "pattern": pattern}
            case "Base64UrlEncoder":
                return {"type": "string", "pattern": url_safe(pattern)}
        raise UnsupportedType(f"the encoding {getattr(encoder, '__name__', encoder)!s}")
    return _KNOWN.get(_name(function))


def added_schema(function: Callable[..., Any], type: Any) -> dict[str, Any]:
    """What a function asks beyond the schema around which it stands; nothing if it is the user's.

    Args:
        type: the type of JSON of that schema (``"array"``), if it has one.

    Raises:
        UnsupportedType: the function is a library's, or that of a type with its own validation, and not known.
    """
    if isinstance(function, partial):
        return _bounds(function, type)
    name = _name(function)
    if name.endswith("apply_known_metadata.<locals>.val_func"):
        return _predicate(getclosurevars(function).nonlocals)
    owner = getattr(function, "__self__", None)
    validates_itself = hasattr(owner, "__get_pydantic_core_schema__") and not hasattr(owner, "__pydantic_decorators__")
    library = name.partition(".")[0] in _LIBRARIES
    if (not library and not validates_itself) or any(harmless in name for harmless in _HARMLESS):
        return {}
    said = getattr(owner, "__name__", None) or getattr(function, "__qualname__", repr(function))
    raise UnsupportedType(
        f"{said} validates in a function of its own, which no schema describes",
        hint="write what it asks as constraints, or in a validator of your own, which runs after generation",
    )


def _name(function: Callable[..., Any]) -> str:
    """The module and the name of a function."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"


def _bounds(function: partial[Any], type: Any) -> dict[str, Any]:
    """The keywords of constraints that Pydantic checks in functions: those on sizes can be said.

    Raises:
        UnsupportedType: it is another constraint.
    """
    if not _name(function.func).startswith("pydantic.") or not _BOUNDS & function.keywords.keys():
        return {}
    keywords = _SIZES.get(type, {}) if isinstance(type, str) else {}
    for constraint in function.keywords:
        if constraint not in keywords:
            hint = "it is checked by a function: write it before validators, and on each type of a union"
            raise UnsupportedType(f"the constraint {constraint} on such a type", hint=hint)
    return {keywords[constraint]: bound for constraint, bound in function.keywords.items()}


def _predicate(closure: Any) -> dict[str, Any]:
    """What ``annotated_types.Predicate`` or ``Not`` asks; nothing if its function is the user's.

    Raises:
        UnsupportedType: it is a function of Python's that no schema describes.
    """
    annotation = closure.get("annotation")
    asked: Any = getattr(annotation, "func", None)
    negated = type(annotation).__name__ == "Not"
    if type(asked).__name__ == "Not":
        asked, negated = asked.func, not negated
    try:
        known = None if negated else _PREDICATES.get(asked)
    except TypeError:  # it has no hash, so it is none of them
        known = None
    if known is not None:
        return known
    if getattr(asked, "__module__", None) in (None, "math", "builtins"):
        said = getattr(asked, "__qualname__", repr(asked))
        raise UnsupportedType(f"the predicate {'not ' if negated else ''}{said}", hint="write a pattern or bounds")
    return {}
