"""What can be set about a server."""

from __future__ import annotations

from dataclasses import dataclass, field

from grammarspec.grammars.engine import Limits

__all__ = ["LIMITS", "Settings"]

LIMITS = Limits(max_call_steps=1_000_000, max_memory=128 << 20, timeout=10.0)
"""The defaults of a server: what one request may use of its time and memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server takes on.

    Attributes:
        name: the model's name, which requests have to give.
        max_batch: texts that are generated together at most.
        max_waiting: requests that wait, or are being prepared, at most; more are refused with status 429.
        max_tokens: of one text at most, and what a request gets that does not say.
        max_body: bytes of a request's body at most.
        body_timeout: seconds in which a request's body has to arrive.
        limits: what each request's grammar may use: its front-end, compiling it, and each mask and token.
        cache_bytes: what the constraints that are kept may hold together.
        api_key: what clients have to send as ``Authorization: Bearer KEY``; ``None``: nothing.

    Raises:
        ValueError: a number is below 1, or the name or the key is empty.
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
