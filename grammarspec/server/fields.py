"""The fields of a request's body, read one by one: fields that nothing has read are not supported, and are refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from grammarspec.server.refusals import Refused

__all__ = ["RequestFields"]

_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "a boolean", list: "an array", dict: "an object"}


class RequestFields:
    """The members of a JSON object in a request. A member that is ``null`` is treated as absent.

    Args:
        value: the object.
        where: the name of the object for errors, such as ``response_format.json_schema``; empty for the whole body.

    Raises:
        Refused: the value is not an object.
    """

    def __init__(self, value: Any, where: str = "") -> None:
        if not isinstance(value, dict):
            raise Refused(f"{where or 'the body'} must be an object", where or None)
        self._left = {name: member for name, member in value.items() if member is not None}
        self._where = where

    def name(self, field: str) -> str:
        """The full name of a member, with the name of the object before it."""
        return f"{self._where}.{field}" if self._where else field

    def take(self, field: str, *kinds: type, default: Any = None) -> Any:
        """The value of a member, which must be of one of the given types; the member then counts as read.

        Args:
            field: the name of the member.
            kinds: the types that are allowed, all if none is given. ``float`` allows ``int``, too.
            default: what is returned if the member is absent.

        Raises:
            Refused: the value is of another type, or a number that is not finite.
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
        """The value of a member that must be present; see :meth:`take`.

        Raises:
            Refused: the member is absent, or its value is of another type.
        """
        if field not in self._left:
            raise Refused(f"{self.name(field)} is missing", self.name(field))
        return self.take(field, *kinds)

    def among(self, field: str, values: Iterable[str], default: str) -> str:
        """The value of a member that must be one of some strings.

        Raises:
            Refused: the value is something else.
        """
        value = self.take(field, default=default)
        known = tuple(values)
        if value not in known:
            raise Refused(f"{self.name(field)} must be one of {', '.join(known)}", self.name(field))
        return str(value)

    def within(self, field: str, least: int, most: int, default: int) -> int:
        """The value of a member that must be an integer within bounds.

        Raises:
            Refused: the value is not an integer, or out of bounds.
        """
        value = self.take(field, int, default=default)
        if not least <= value <= most:
            raise Refused(f"{self.name(field)} must be from {least} to {most}, not {value}", self.name(field))
        return int(value)

    def drop(self, field: str, value: Any) -> None:
        """Accept a member that is not supported, if it has the value that changes nothing."""
        if field in self._left and self._left[field] == value:
            del self._left[field]

    def __contains__(self, field: str) -> bool:
        return field in self._left

    def done(self, hints: dict[str, str] | None = None) -> None:
        """Refuse the members that have not been read.

        Args:
            hints: for some names of fields, what to use instead.

        Raises:
            Refused: there is such a member: it is unknown, or this server does not support it.
        """
        for field in self._left:
            hint = (hints or {}).get(field)
            name = self.name(field)
            text = f"the field {name} is not supported" + (f"\n  hint: {hint}" if hint else "")
            raise Refused(text, name, "unsupported_field")
