"""Checks what an adapter relies on in an engine: the version, and functions with their parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from grammarspec.errors import MissingPackage, UnsupportedFeature

__all__ = ["Engine", "Expected"]


class Expected(NamedTuple):
    """A function of an engine, and the names of its parameters."""

    module: str
    name: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine, and the range of its versions for which the adapter was made.

    Attributes:
        name: the name of the engine, as its authors write it.
        package: the name of its package, and of the extra of grammarspec that installs it.
        first: the first version in the range.
        after: the first version after the range.
    """

    name: str
    package: str
    first: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def install(self) -> str:
        """The command that installs a version in the range."""
        return f"pip install 'grammarspec[{self.package}]'"

    def found(self, module: str, name: str) -> Any:
        """The value of a name in a module of the engine.

        Raises:
            UnsupportedFeature: there is no such name.
        """
        try:
            value = import_module(module)
            for part in name.split("."):
                value = getattr(value, part)
        except (ImportError, AttributeError) as error:
            raise self.refused(f"{module}.{name} is missing ({error})") from None
        return value

    def check_version(self) -> None:
        """Check that the engine is installed, in a version for which the adapter was made.

        Raises:
            MissingPackage: the engine is not installed.
            UnsupportedFeature: its version is outside the range.
        """
        try:
            version = str(import_module(self.package).__version__)
        except ImportError as error:
            message = f"the backend for {self.name}: the package {self.package} is missing ({error})"
            raise MissingPackage(message, hint=self.install) from None
        numbers = tuple(int(part) for part in re.findall(r"\d+", version)[: len(self.first)])
        if not self.first <= numbers < self.after:
            raise self.refused(f"the version of {self.name} is {version}")

    def check_parameters(self, expected: Iterable[Expected]) -> None:
        """Check that functions exist and have the expected parameters.

        Raises:
            UnsupportedFeature: a function is missing or has other parameters; the message names it.
        """
        for module, name, parameters in expected:
            there = tuple(inspect.signature(self.found(module, name)).parameters)
            if there != parameters:
                raise self.refused(f"{module}.{name} takes ({', '.join(there)}), not ({', '.join(parameters)})")

    def refused(self, what: str) -> UnsupportedFeature:
        """The error, to be raised by the caller, that says why the adapter cannot be used."""
        first, after = (".".join(map(str, version)) for version in (self.first, self.after))
        hint = f"the supported versions of {self.name} are {first} and later, below {after}: {self.install}"
        return UnsupportedFeature(f"grammarspec does not support this {self.name}: {what}", hint=hint)
