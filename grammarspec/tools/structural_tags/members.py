"""The members of a JSON object, read one by one: each is of its type, and none is left unread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.grammars.budget import Budget
from grammarspec.positions import pointer_token

__all__ = ["Members"]

T = TypeVar("T")

_TYPES = {str: "a text", bool: "true or false", int: "a whole number", list: "a list", dict: "an object"}
_MISSING: Any = object()


@dataclass
class Members:
    """An object of JSON at a place.

    Attributes:
        value: its members.
        where: the place, as a JSON pointer.
        budget: the work that may be done.
    """

    value: Mapping[str, Any]
    where: str
    budget: Budget
    _read: set[str] = field(default_factory=set)

    @staticmethod
    def of(value: Any, where: str, budget: Budget) -> Members:
        """A value that must be an object.

        Raises:
            GrammarSyntaxError: it is none.
        """
        budget.spend(50, where)
        if not isinstance(value, Mapping):
            raise GrammarSyntaxError(f"an object is expected, not {value!r:.60}", where)
        return Members(value, where, budget)

    def at(self, *names: str | int) -> str:
        """The place of a member, or of a part of it."""
        return self.where + "".join(f"/{pointer_token(str(name))}" for name in names)

    def get(self, name: str, kind: type[T], default: T = _MISSING) -> T:
        """The value of a member; the default stands for one that is missing or ``null``.

        Raises:
            GrammarSyntaxError: it is of another type; or it is missing, and there is no default.
        """
        self._read.add(name)
        found = self.value.get(name)
        if found is None and default is not _MISSING:
            return default
        if name not in self.value:
            raise GrammarSyntaxError(f"the member {name!r} is missing", self.where)
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise GrammarSyntaxError(f"{_TYPES[kind]} is expected, not {found!r:.60}", self.at(name))
        return found

    def raw(self, name: str) -> Any:
        """The value of a member of any type.

        Raises:
            GrammarSyntaxError: it is missing.
        """
        self._read.add(name)
        if name not in self.value:
            raise GrammarSyntaxError(f"the member {name!r} is missing", self.where)
        return self.value[name]

    def member(self, name: str) -> Members:
        """A member that is an object.

        Raises:
            GrammarSyntaxError: it is missing, or none.
        """
        return Members.of(self.raw(name), self.at(name), self.budget)

    def objects(self, name: str) -> Iterator[Members]:
        """A member that is a list of objects.

        Raises:
            GrammarSyntaxError: it is missing, or no such list.
        """
        for number, value in enumerate(self.get(name, list)):
            yield Members.of(value, self.at(name, number), self.budget)

    def texts(self, name: str, default: list[str] = _MISSING) -> list[str]:
        """A member that is a list of texts, none of them empty.

        Raises:
            GrammarSyntaxError: it is no such list; or it is missing, and there is no default.
        """
        found = self.get(name, list, default)
        for number, text in enumerate(found):
            self.budget.spend(20, self.where)
            if not isinstance(text, str) or not text:
                raise GrammarSyntaxError(f"a text of some length is expected, not {text!r:.60}", self.at(name, number))
        return found

    def refuse(self, name: str, what: str, hint: str, *, unless: object = None) -> None:
        """Refuse a member that is not enforced, unless it is missing or has the value that asks for nothing.

        Raises:
            UnsupportedFeature: it asks for something.
        """
        self._read.add(name)
        if self.value.get(name) not in (None, unless):
            raise UnsupportedFeature(what, self.at(name), hint)

    def end(self) -> None:
        """Check that every member was read.

        Raises:
            UnsupportedFeature: one was not: its name is not known.
        """
        unknown = [name for name in self.value if name not in self._read]
        if unknown:
            hint = f"known here: {', '.join(sorted(self._read))}"
            raise UnsupportedFeature(f"the member {unknown[0]!r:.60} is not known", self.at(unknown[0]), hint)
