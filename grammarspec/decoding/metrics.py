"""What a generation cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Statistics"]


@dataclass(slots=True)
class Statistics:
    """Counts and times of one generation.

    Attributes:
        prompt_tokens: tokens of the prompt.
        tokens: tokens generated, the one that ends the text included.
        forced_tokens: those of them that were appended without being scored by the model.
        forward_passes: passes of the model, that over the prompt included.
        prefill_seconds: until the first token that needed the model was known.
        decode_seconds: from then on.
        mask_seconds: one entry per mask computed (not counting its application to the logits).
    """

    prompt_tokens: int = 0
    tokens: int = 0
    forced_tokens: int = 0
    forward_passes: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    mask_seconds: list[float] = field(default_factory=list)

    @property
    def tokens_per_second(self) -> float:
        """Tokens generated per second of the whole generation, prefill included."""
        seconds = self.prefill_seconds + self.decode_seconds
        return self.tokens / seconds if seconds else 0.0

    def mask_percentile(self, percent: float) -> float:
        """Seconds that this share of the masks took at most (nearest rank); 0 if there was no mask."""
        ordered = sorted(self.mask_seconds)
        return ordered[max(math.ceil(percent / 100 * len(ordered)), 1) - 1] if ordered else 0.0

    def summary(self) -> dict[str, int | float]:
        """The figures to show, times in the units that their names say."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "forced_tokens": self.forced_tokens,
            "forward_passes": self.forward_passes,
            "prefill_ms": round(self.prefill_seconds * 1e3, 1),
            "decode_ms": round(self.decode_seconds * 1e3, 1),
            "tokens_per_second": round(self.tokens_per_second, 1),
            "masks": len(self.mask_seconds),
            "mask_ms": round(sum(self.mask_seconds) * 1e3, 3),
            "mask_p50_us": round(self.mask_percentile(50) * 1e6, 1),
            "mask_p99_us": round(self.mask_percentile(99) * 1e6, 1),
        }
