"""What can be set: limits for requests, bounds of the cache. Processes are told by environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import ClassVar, Final, Self

from grammarspec.constraint import Limits

__all__ = ["NAME", "EngineSettings", "SettingsError"]

NAME: Final = "grammarspec"
"""The name of the backend, in each engine."""


class SettingsError(ValueError):
    """An environment variable has a value that it cannot have."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Limits and bounds. Each can be given as an environment variable: its name in capitals behind a prefix.

    Attributes:
        prefix: what the names of the environment variables begin with.
        max_steps: steps that a request's front-end may take, and compiling it: half a second to a second by default.
        max_call_steps: steps of a mask or a token, for which the whole engine waits: a fifth of a second by default.
        max_memory: bytes that one constraint may hold.
        cache_bytes: bytes that the constraints of the engine may hold together.
        cache_directory: a folder where lowered requests are kept; empty: there is none.
        compile_threads: how many threads compile, where the engine has none of its own; 0: one for every two cores.
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
        """The settings that the environment gives.

        Raises:
            SettingsError: a variable is no number, or one that cannot be.
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
        """Put the settings into the environment, where the engine's processes find them."""
        for field in fields(self):
            os.environ[self.prefix + field.name.upper()] = str(getattr(self, field.name))

    @property
    def limits(self) -> Limits:
        """The limits of one request.

        Raises:
            ValueError: one of them is 0.
        """
        return Limits(max_steps=self.max_steps, max_call_steps=self.max_call_steps, max_memory=self.max_memory)
