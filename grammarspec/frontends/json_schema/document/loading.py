"""From JSON text to Python values, with numbers kept exactly."""

from __future__ import annotations

import json
from decimal import Decimal, DecimalException
from typing import Any, NoReturn

from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded

__all__ = ["load"]


def load(schema: Any) -> Any:
    """The schema as Python values; numbers of JSON text that have a fraction or an exponent are ``Decimal``.

    Args:
        schema: JSON text, or what is a Python value already and is returned as it is.

    Raises:
        GrammarSyntaxError: the text is not JSON.
        LimitExceeded: it nests too deeply, or a number in it is too long.
    """
    if not isinstance(schema, str | bytes | bytearray):
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
