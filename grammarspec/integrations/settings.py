"""The settings of adapters: limits of requests, bounds of the cache. Processes get them as environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import ClassVar, Final, Self

from grammarspec.constraint import Limits

__all__ = ["NAME", "EngineSettings", "SettingsError"]

NAME: Final = "grammarspec"
"""The name of the backend in every engine."""


class SettingsError(ValueError):
    """An environment variable has a wrong value."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Limits and bounds. Each can be given as an environment variable: a prefix and its name in capitals.

    Attributes:
        prefix: the prefix of the names of the environment variables.
        max_steps: the limit of steps of a request's front-end, and of compiling: half a second to a second by default.
        max_call_steps: the limit of steps of one mask or token, for which the whole engine waits: a fifth of a second
            by default.
        max_memory: the limit of bytes of one constraint.
        cache_bytes: the largest number of bytes of all constraints in the cache together.
        cache_directory: a folder for lowered requests; empty: none.
        compile_threads: the number of threads of the cache's ``submit``; 0: one for every two cores.
    """

    prefix: ClassVar[str]

    max_steps: int = 4_000_000
    max_call_steps: int = 1_000_000
    max_memory: int = 128 << 20
    cache_bytes: int = 1 << 30
    cache_directory: str = ""
    compile_threads: int = 0

    @classmethod
    def of_environment(cls) -> Self:
        """The settings in the environment variables, with defaults for those that are not set.

        Raises:
            SettingsError: a variable is not a whole number, or is 0 where that is not allowed.
        """
        given: dict[str, int | str] = {}
        for field in fields(cls):
            text = os.environ.get(cls.prefix + field.name.upper())
            if text is None:
                continue
            if field.name == "cache_directory":
                given[field.name] = text
            elif text.strip().isdecimal():
                given[field.name] = int(text)
            else:
                raise SettingsError(f"{cls.prefix}{field.name.upper()} must be a whole number, not {text!r:.60}")
        settings = cls(**given)  # type: ignore[arg-type]
        try:
            _ = settings.limits
        except ValueError as error:
            raise SettingsError(f"{cls.prefix}…: {error}") from None
        return settings

    def export(self) -> None:
        """Set the environment variables, so that processes which the engine starts have the same settings."""
        for field in fields(self):
            os.environ[self.prefix + field.name.upper()] = str(getattr(self, field.name))

    @property
    def limits(self) -> Limits:
        """The limits of one request.

        Raises:
            ValueError: one of them is 0.
        """
        return Limits(max_steps=self.max_steps, max_call_steps=self.max_call_steps, max_memory=self.max_memory)
