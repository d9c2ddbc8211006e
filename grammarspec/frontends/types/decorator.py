"""``@gs.schema``: options of :func:`grammarspec.json_schema` that are kept with a class.

A class and options go in; the class comes out, with the options stored on it for :func:`grammarspec.grammar`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, dataclass_transform, overload

from grammarspec.imports import importing

if TYPE_CHECKING:
    from grammarspec.frontends.json_schema.options import Options

__all__ = ["schema", "stored_options"]

C = TypeVar("C", bound=type)

_OPTIONS = "__grammarspec_options__"
_FIELDS = ("__pydantic_fields__", "__struct_fields__", "__attrs_attrs__", "__total__", "_fields")
"""Attributes by which classes with fields are recognised: Pydantic, msgspec, attrs, ``TypedDict``, ``NamedTuple``."""


@overload
@dataclass_transform(field_specifiers=(dataclasses.field, dataclasses.Field))
def schema(cls: C, /) -> C: ...
@overload
@dataclass_transform(field_specifiers=(dataclasses.field, dataclasses.Field))
def schema(**options: Unpack[Options]) -> Callable[[C], C]: ...
def schema(cls: Any = None, /, **options: Unpack[Options]) -> Any:
    """A decorator that makes a plain class a dataclass, and keeps options for :func:`grammarspec.grammar`.

    Dataclasses, enums, models of Pydantic, structs of msgspec, attrs classes, ``TypedDict`` and ``NamedTuple`` stay as
    they are. The options hold where a grammar is made of the class itself, and not where it is part of another type,
    nor for its subclasses. Options that :func:`grammarspec.grammar` is given take precedence.

    Args:
        options: those of :func:`grammarspec.json_schema`, such as ``whitespace="compact"``.

    Raises:
        TypeError: there is no such option, or what is decorated is no class.
        ValueError: an option cannot have such a value, or two options contradict each other.
        GrammarError: the pattern of whitespace is one that no automaton can decide.
    """
    if options:
        with importing:
            from grammarspec.frontends.json_schema.options import check_options

        check_options(**options)  # wrong options are refused here, and not where the class is used

    def decorate(cls: Any) -> Any:
        if not isinstance(cls, type):
            raise TypeError(f"schema() decorates a class, not {cls!r:.60}")
        own = vars(cls)
        known = issubclass(cls, Enum) or any(hasattr(cls, name) for name in _FIELDS)
        decorated = cls if known or "__dataclass_fields__" in own else dataclasses.dataclass(cls)
        setattr(decorated, _OPTIONS, options)
        return decorated

    return decorate if cls is None else decorate(cls)


def stored_options(type: Any) -> Options:
    """The options that :func:`schema` has stored on a type; empty for any other type."""
    found: Options = getattr(type, "__dict__", {}).get(_OPTIONS, {})
    return found
