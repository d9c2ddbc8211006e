"""From JSON text to Python values, with numbers kept exactly; and schemas from files and from Pydantic."""

from __future__ import annotations

import json
import sys
from decimal import Decimal, DecimalException
from inspect import isclass
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded

__all__ = ["json_of", "load"]

_JSON = (dict, bool, str, bytes, bytearray)
_TEXT = (str, bytes, bytearray)


def json_of(schema: Any) -> Any:
    """A schema as JSON text or as a Python value of JSON.

    Args:
        schema: either; or a file, a class of Pydantic or its ``TypeAdapter``, which know their JSON Schema.

    Raises:
        OSError: the file cannot be read.
        GrammarSyntaxError: it is not UTF-8.
        TypeError: a class of another kind.
    """
    if type(schema) in _JSON:
        return schema
    if isinstance(schema, PathLike):
        try:
            return Path(schema).read_text("utf-8")
        except UnicodeDecodeError as error:
            raise GrammarSyntaxError(f"{schema}: byte {error.start} is not UTF-8") from None
    of_pydantic = getattr(schema, "model_json_schema" if isclass(schema) else "json_schema", None)
    if of_pydantic is not None:
        if schema is getattr(sys.modules.get("pydantic"), "BaseModel", None):
            raise TypeError(f"{schema!r:.60} has no schema of its own\n  hint: give a class derived from it")
        return of_pydantic()
    if isclass(schema):
        hint = f"gs.grammar({schema.__qualname__}) makes the grammar of a type"
        raise TypeError(f"a schema is a dict, a boolean or JSON text, not {schema!r}\n  hint: {hint}")
    return schema


def load(schema: Any) -> Any:
    """The schema as Python values; numbers of JSON text that have a fraction or an exponent are ``Decimal``.

    Args:
        schema: JSON text, or what is a Python value already and is returned as it is; or what :func:`json_of` takes.

    Raises:
        OSError, TypeError: as :func:`json_of`.
        GrammarSyntaxError: the text is not JSON.
        LimitExceeded: it nests too deeply, or a number in it is too long.
    """
    schema = json_of(schema)
    if not isinstance(schema, _TEXT):
        return schema
    try:
        return json.loads(schema, parse_float=_decimal, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = f"the schema is not JSON: {error.msg}"
        raise GrammarSyntaxError(message, where=f"line {error.lineno}, column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise GrammarSyntaxError(f"the schema is not JSON: {error}") from None
    except RecursionError:
        raise LimitExceeded("the nesting depth of the schema's text is beyond what can be read") from None
    except GrammarError:
        raise
    except ValueError as error:  # an integer of more digits than Python converts
        raise LimitExceeded(f"the number of digits: {error}") from None


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except DecimalException:
        raise LimitExceeded(f"the exponent of the number {text:.40} is beyond what can be computed with") from None


def _refuse_constant(name: str) -> NoReturn:
    raise GrammarSyntaxError(f"the schema is not JSON: {name} is no JSON number")
