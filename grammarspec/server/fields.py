"""The fields of a request's body, taken one by one: what is left over was not understood, and is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from grammarspec.server.refusals import Refused

__all__ = ["RequestFields"]

_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "a boolean", list: "an array", dict: "an object"}


class RequestFields:
    """The members of an object of a request. A member that is ``null`` counts as one that is not there.

    Args:
        value: the object.
        where: its name, for errors: ``response_format.json_schema``, say.

    Raises:
        Refused: it is no object.
    """

    def __init__(self, value: Any, where: str = "") -> None:
        if not isinstance(value, dict):
            raise Refused(f"{where or 'the body'} must be an object", where or None)
        self._left = {name: member for name, member in value.items() if member is not None}
        self._where = where

    def name(self, field: str) -> str:
        """The whole name of a member."""
        return f"{self._where}.{field}" if self._where else field

    def take(self, field: str, *kinds: type, default: Any = None) -> Any:
        """A member, whose value is of one of some types of JSON (``int`` is taken where ``float`` is one).

        Args:
            field: its name.
            kinds: the types; none: any.
            default: what is returned if it is not there.

        Raises:
            Refused: it is of another type, or no finite number.
        """
        if field not in self._left:
            return default
        value = self._left.pop(field)
        number = float in kinds and isinstance(value, int) and not isinstance(value, bool)
        if kinds and not number and not any(type(value) is kind for kind in kinds):
            wanted = " or ".join(_NAMES[kind] for kind in kinds)
            raise Refused(f"{self.name(field)} must be {wanted}", self.name(field))
        if isinstance(value, float) and not math.isfinite(value):
            raise Refused(f"{self.name(field)} must be a finite number", self.name(field))
        return value

    def need(self, field: str, *kinds: type) -> Any:
        """A member that must be there; see :meth:`take`.

        Raises:
            Refused: it is not, or of another type.
        """
        if field not in self._left:
            raise Refused(f"{self.name(field)} is missing", self.name(field))
        return self.take(field, *kinds)

    def among(self, field: str, values: Iterable[str], default: str) -> str:
        """A member that is one of some words.

        Raises:
            Refused: it is not.
        """
        value = self.take(field, default=default)
        known = tuple(values)
        if value not in known:
            raise Refused(f"{self.name(field)} must be one of {', '.join(known)}", self.name(field))
        return str(value)

    def within(self, field: str, least: int, most: int, default: int) -> int:
        """A member that is an integer within bounds.

        Raises:
            Refused: it is not.
        """
        value = self.take(field, int, default=default)
        if not least <= value <= most:
            raise Refused(f"{self.name(field)} must be from {least} to {most}, not {value}", self.name(field))
        return int(value)

    def __contains__(self, field: str) -> bool:
        return field in self._left

    def done(self, hints: dict[str, str] | None = None) -> None:
        """Refuse what is left.

        Args:
            hints: what to do instead, for some fields.

        Raises:
            Refused: there is a field that is unknown, or that this server does not support.
        """
        for field in self._left:
            hint = (hints or {}).get(field)
            name = self.name(field)
            text = f"the field {name} is not supported" + (f"\n  hint: {hint}" if hint else "")
            raise Refused(text, name, "unsupported_field")
