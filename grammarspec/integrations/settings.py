"""The settings of adapters: limits of requests, bounds of the cache. Processes get them as environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import ClassVar, Final, Self

from grammarspec.constraint import Limits
from grammarspec.serving.bounds import check_whole

__all__ = ["NAME", "EngineSettings", "SettingsError"]

NAME: Final = "grammarspec"
"""The name of the backend in every engine."""


class SettingsError(ValueError):
    """An environment variable has a wrong value, or is none that the adapter knows."""


_LEAST: Final = {"cache_bytes": 0, "mask_threads": 0}
"""The smallest values of those numbers that may be less than 1."""


def _check(name: str, shown: str, value: object) -> None:
    """Check a setting; errors call it ``shown``.

    Raises:
        TypeError: the value is of a wrong type.
        ValueError: it is too small.
    """
    if name != "cache_directory":
        check_whole(shown, value, _LEAST.get(name, 1))
    elif not isinstance(value, str):
        raise TypeError(f"{shown} must be a string, not {value!r:.60}")


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
        mask_threads: the number of threads that compute the new masks of a step (in vLLM, of a step without drafts); 0:
            one for every two cores, but at most 8.

    Raises:
        TypeError: a value is of a wrong type.
        ValueError: a number is negative, or a limit is 0.
    """

    prefix: ClassVar[str]

    max_steps: int = 4_000_000
    max_call_steps: int = 1_000_000
    max_memory: int = 128 << 20
    cache_bytes: int = 1 << 30
    cache_directory: str = ""
    mask_threads: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, field.name, getattr(self, field.name))

    @classmethod
    def of_environment(cls) -> Self:
        """The settings in the environment variables, with defaults for those that are not set.

        Raises:
            SettingsError: a variable is not a whole number, or too small.
        """
        given: dict[str, int | str] = {}
        for field in fields(cls):
            variable = cls.prefix + field.name.upper()
            text = os.environ.get(variable)
            if text is None:
                continue
            try:
                value = text if field.name == "cache_directory" else int(text)
            except ValueError:
                raise SettingsError(f"{variable} must be a whole number, not {text!r:.60}") from None
            try:
                _check(field.name, variable, value)
            except ValueError as error:
                raise SettingsError(str(error)) from None
            given[field.name] = value
        return cls(**given)  # type: ignore[arg-type]

    @classmethod
    def check_environment(cls) -> None:
        """Check the environment variables: their values, and that none with the prefix is unknown.

        A misspelt name would leave a limit at its default, which nobody would notice.

        Raises:
            SettingsError: a variable has a wrong value, or is unknown; the message names the known ones.
        """
        cls.of_environment()
        known = [cls.prefix + field.name.upper() for field in fields(cls)]
        if unknown := sorted(name for name in os.environ if name.startswith(cls.prefix) and name not in known):
            close = get_close_matches(unknown[0], known, 1)
            meant = f" Did you mean {close[0]}?" if close else ""
            listed = ", ".join(known)
            raise SettingsError(f"{unknown[0]} is not a setting of grammarspec.{meant} The settings are {listed}")

    def export(self) -> None:
        """Set the environment variables, so that processes which the engine starts have the same settings."""
        for field in fields(self):
            os.environ[self.prefix + field.name.upper()] = str(getattr(self, field.name))

    @property
    def limits(self) -> Limits:
        """The limits of one request."""
        return Limits(max_steps=self.max_steps, max_call_steps=self.max_call_steps, max_memory=self.max_memory)

    @property
    def mask_thread_count(self) -> int:
        """The number of threads that compute the new masks of a step: ``mask_threads``, or its default."""
        return self.mask_threads or max(1, min((os.cpu_count() or 1) // 2, 8))
