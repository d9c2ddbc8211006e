"""python-jsonschema as a judge: the validator of each draft, as its specification has it.

Not asked about ``unevaluatedItems`` of 2019-09: there 4.26 has ``contains`` evaluate items, as only 2020-12 does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

import jsonschema

from tests.counting import discard

__all__ = ["is_valid", "satisfies"]


class _Whole(Decimal):
    """A number written without fraction and exponent, in draft 4 the only integers."""


def _is_whole(_: Any, value: Any) -> bool:
    """Integers from draft 6 on."""
    if isinstance(value, float):
        return value.is_integer()
    return _is_written_whole(_, value) or (isinstance(value, Decimal) and value == value.to_integral_value())


def _is_written_whole(_: Any, value: Any) -> bool:
    return isinstance(value, int | _Whole) and not isinstance(value, bool)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """``pattern`` as ECMA-262 reads the few patterns of these tests, where Python's ``re`` differs."""
    if isinstance(instance, str) and not _found(pattern, instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


def _found(pattern: str, text: str) -> bool:
    python = pattern.replace("$", r"\Z").replace(".", "[^\n\r\u2028\u2029]")
    return re.search(python, text) is not None


def _additional_items(validator: Any, further: Any, instance: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """``additionalItems``, on which 4.26 fails beside ``"items": true``."""
    if isinstance(schema.get("items"), list):
        yield from _CLASSES[7].VALIDATORS["additionalItems"](validator, further, instance, schema)


_CLASSES = {
    4: jsonschema.Draft4Validator,
    6: jsonschema.Draft6Validator,
    7: jsonschema.Draft7Validator,
    2019: jsonschema.Draft201909Validator,
    2020: jsonschema.Draft202012Validator,
}
_VALIDATORS = {
    year: jsonschema.validators.extend(
        base,
        {"pattern": _pattern} | ({"additionalItems": _additional_items} if year < 2020 else {}),
        type_checker=base.TYPE_CHECKER.redefine("integer", _is_whole if year > 4 else _is_written_whole),
    )
    for year, base in _CLASSES.items()
}

# In 2019-09, python-jsonschema (4.26) takes members that a schema in additionalProperties is for as unevaluated,
# against core, section 9.3.2.3. Its keyword of 2020-12 does not, and says the same otherwise where no $recursiveRef is.
_VALIDATORS[2019] = jsonschema.validators.extend(
    _VALIDATORS[2019], {"unevaluatedProperties": _CLASSES[2020].VALIDATORS["unevaluatedProperties"]}
)


def is_valid(schema: Any, value: Any, year: int = 2020) -> bool:
    """The verdict of python-jsonschema, with the formats of all drafts.

    What it cannot tell is skipped: it follows some references into the same value for ever.
    """
    try:
        return bool(_VALIDATORS[year](schema, format_checker=_CLASSES[2020].FORMAT_CHECKER).is_valid(value))
    except RecursionError:
        discard("an endless recursion of the judge")


def satisfies(schema: Any, text: str | bytes, year: int = 2020) -> bool:
    """The verdict on the value that a text spells, exactly (exponents beyond those of Decimal are skipped)."""
    exact = json.loads(json.dumps(schema), parse_float=Decimal)
    with localcontext(prec=1000):
        try:
            return is_valid(exact, json.loads(text, parse_int=_Whole, parse_float=Decimal), year)
        except InvalidOperation:
            discard("an exponent that the judge does not know")
