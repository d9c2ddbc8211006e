"""The settings of a server."""

from __future__ import annotations

from dataclasses import dataclass, field

from grammarspec.grammars.engine import Limits

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
        body_timeout: the seconds in which a request's body must arrive.
        limits: the limits of each request's grammar: for the front-end, for compiling, and for each mask and step.
        cache_bytes: the largest number of bytes of all constraints in the cache together.
        api_key: clients must send ``Authorization: Bearer KEY`` with this key; ``None``: no key is needed.

    Raises:
        ValueError: one of the first four numbers is below 1, or the name or the key is empty.
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
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not self.name:
            raise ValueError("the model's name must not be empty")
        if self.api_key == "":
            raise ValueError("the API key must not be empty")
