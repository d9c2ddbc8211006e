"""The settings of a server."""

from __future__ import annotations

from dataclasses import dataclass, field

from grammarspec.grammars.engine import Limits
from grammarspec.serving.bounds import check_whole

__all__ = ["LIMITS", "Settings"]

LIMITS = Limits(max_call_steps=1_000_000, max_memory=128 << 20, timeout=10.0)
"""The default limits of a server: the work, memory and time that the grammar of one request may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The name of the model, limits and bounds of a server.

    Attributes:
        name: the name of the model, which requests must have in ``model``.
        max_batch: the largest number of texts in the batch.
        max_waiting: the largest number of requests that wait or are being prepared; more are refused with status 429.
        max_tokens: the largest number of tokens of one text, and the number if a request does not give one.
        max_body: the largest number of bytes of a request's body.
        body_timeout: the seconds in which a request's body must arrive; may be infinite.
        limits: the limits of each request's grammar: for the front-end, for compiling, and for each mask and step.
        cache_bytes: the largest number of bytes of all constraints in the cache together.
        api_key: clients must send ``Authorization: Bearer KEY`` with this key; ``None``: no key is needed.

    Raises:
        TypeError: a number is not a number, or not a whole one (except ``body_timeout``).
        ValueError: a number is out of range: ``cache_bytes`` is at least 0, ``body_timeout`` above 0, the others are at
            least 1; or the name or the key is empty.
    """

    name: str
    max_batch: int = 16
    max_waiting: int = 64
    max_tokens: int = 2048
    max_body: int = 4 << 20
    body_timeout: float = 30.0
    limits: Limits = field(default=LIMITS)
    cache_bytes: int = 512 << 20
    api_key: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_waiting", "max_tokens", "max_body"):
            check_whole(name, getattr(self, name), 1)
        check_whole("cache_bytes", self.cache_bytes, 0)
        if isinstance(self.body_timeout, bool) or not isinstance(self.body_timeout, int | float):
            raise TypeError(f"body_timeout must be a number of seconds, not {self.body_timeout!r:.60}")
        if not self.body_timeout > 0:
            raise ValueError(f"body_timeout must be above 0 seconds, not {self.body_timeout}")
        if not self.name:
            raise ValueError("the model's name must not be empty")
        if self.api_key == "":
            raise ValueError("the API key must not be empty")
