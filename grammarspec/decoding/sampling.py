"""The sampling options of a request: how its tokens are chosen, and when its text stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Literal

__all__ = ["Sampling"]

COLDEST = 1e-6  # the least temperature: below it, float32 scores divided by it give the argmax anyway
LARGEST = 1e30  # the greatest magnitude of an option; it and its inverse leave room within the range of float32
_SEEDS = 1 << 64
_INTEGERS = ("top_k", "seed", "max_tokens", "top_logprobs")
_NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
_OPTIONAL = ("top_k", "top_p", "min_p", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are chosen, and when to stop. The defaults choose the most probable allowed token at each position.

    The options apply in this order: repetition, presence and frequency penalty, logit bias, grammar mask, temperature,
    top-k, top-p, min-p.

    Attributes:
        temperature: divides the logits; 0 chooses the most probable token (of equal ones that with the lowest id).
        top_k: keep the ``top_k`` most probable tokens (of equal ones those with the lowest ids), or ``None``.
        top_p: keep the fewest most probable tokens whose probabilities reach ``top_p``, or ``None``
            (nucleus sampling, Holtzman et al. 2020).
        min_p: keep the tokens at least ``min_p`` times as probable as the most probable one, or ``None``
            (Nguyen et al. 2024).
        repetition_penalty: divides the positive logits, and multiplies the negative ones, of tokens that occur in the
            prompt or in the text so far (CTRL, Keskar et al. 2019); 1 changes nothing.
        presence_penalty: subtracted from the logit of each token that occurs in the text so far.
        frequency_penalty: subtracted from the logit of a token for each time that it occurs in the text so far.
        logit_bias: added to the logits of these tokens, by token id.
        seed: of the random numbers, from 0 to 2**64 - 1. With a seed, a draft token is accepted if it is the token that
            the noise of this seed and position chooses (shared Gumbel noise). So the text depends neither on the drafts
            nor on the rest of the batch, but for rounding in the model. Without a seed, draft tokens are accepted with
            the probability of speculative sampling (Leviathan et al. 2023); torch's global generator makes a seed.
        max_tokens: the greatest number of tokens to generate.
        on_limit: what to do when these are used up and the text could go on. ``"cut"`` stops; a
            :class:`grammarspec.Model` returns the text if it is whole so far (free text always is), and otherwise
            raises :class:`~grammarspec.errors.Truncated`. ``"raise"`` stops and gives the generation this error in
            any case.
            ``"close"`` has the model end its text in time: a token after which no ending would fit, with the
            end-of-text token, is replaced by another of the same distribution, and if need be a shortest ending is
            appended. A text to which nothing but the end-of-text token can be added has not been cut short.
        stop: stop where the text holds one of these texts; it ends before them.
        logprobs: record the log-probabilities of the generated tokens.
        top_logprobs: with ``logprobs``, also record those of this many most probable tokens at each position, by the
            model's logits as they are.

    Raises:
        TypeError: an option has a value of another type.
        ValueError: an option is out of range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    max_tokens: int = 512
    on_limit: Literal["cut", "close", "raise"] = "cut"
    stop: Sequence[str] = ()
    logprobs: bool = False
    top_logprobs: int = 0

    def __post_init__(self) -> None:
        for names, kind, what in ((_INTEGERS, Integral, "a whole number"), (_NUMBERS, Real, "a number")):
            for name in names:
                value = getattr(self, name)
                none = value is None and name in _OPTIONAL
                if not none and (isinstance(value, bool) or not isinstance(value, kind)):
                    raise TypeError(f"{name} must be {what}, not {value!r}")
        if self.temperature != 0 and not COLDEST <= self.temperature <= LARGEST:
            raise ValueError(
                f"temperature must be 0 or at least {COLDEST} and at most {LARGEST}, not {self.temperature}"
            )
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {self.top_k}")
        if self.top_p is not None and not 1 / LARGEST <= self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must be from 0 to 1, not {self.min_p}")
        if not 1 / LARGEST <= self.repetition_penalty <= LARGEST:
            raise ValueError(f"repetition_penalty must be above 0 and at most {LARGEST}, not {self.repetition_penalty}")
        for name in ("presence_penalty", "frequency_penalty"):
            if not -LARGEST <= getattr(self, name) <= LARGEST:
                raise ValueError(f"{name} must be from {-LARGEST} to {LARGEST}, not {getattr(self, name)}")
        for token, bias in self.logit_bias.items():
            if not isinstance(token, Integral) or not isinstance(bias, Real):
                raise TypeError(f"logit_bias gives tokens numbers, not {token!r} the value {bias!r}")
            if token < 0 or not -LARGEST <= bias <= LARGEST:
                bounds = f"from {-LARGEST} to {LARGEST}"
                raise ValueError(f"logit_bias must give tokens values {bounds}, not token {token} the value {bias}")
        if self.seed is not None and not 0 <= self.seed < _SEEDS:
            raise ValueError(f"seed must be from 0 to 2**64 - 1, not {self.seed}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.top_logprobs < 0:
            raise ValueError(f"top_logprobs must be at least 0, not {self.top_logprobs}")
        if self.top_logprobs and not self.logprobs:
            raise ValueError(f"top_logprobs={self.top_logprobs} needs logprobs=True")
        if self.on_limit not in ("cut", "close", "raise"):
            raise ValueError(f"on_limit must be 'cut', 'close' or 'raise', not {self.on_limit!r}")
        if isinstance(self.stop, str):
            raise TypeError("stop takes several texts, not a single one: write stop=[text]")
        object.__setattr__(self, "stop", tuple(self.stop))  # an iterator could be read only once
        for text in self.stop:
            if not isinstance(text, str):
                raise TypeError(f"stop takes texts, not {text!r}")
            if not text:
                raise ValueError("stop must not hold an empty text")
            if any("\ud800" <= char <= "\udfff" for char in text):
                raise ValueError(f"stop must not hold lone surrogates, as in {text!r:.60}: no text has them")

    @property
    def nucleus(self) -> float | None:
        """``top_p``, or ``None`` where it keeps all tokens. At 1, rounding would leave out the least probable ones."""
        return None if self.top_p == 1 else self.top_p

    @property
    def penalises(self) -> bool:
        """Whether tokens of the prompt or of the text so far get other scores."""
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (1, 0, 0)
