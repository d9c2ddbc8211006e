"""One text in the making: its tokens, the state of its constraint, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, NamedTuple

import torch

from grammarspec._compiler import Matcher
from grammarspec.decoding.metrics import Statistics
from grammarspec.decoding.sampling import Sampling
from grammarspec.errors import BudgetTooSmall, PromptError, Truncated
from grammarspec.grammars import marks
from grammarspec.vocabulary import Vocabulary

__all__ = ["Generation", "Lane", "Logprob", "Request"]

FinishReason = Literal["stop", "length", "closed", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be generated.

    Attributes:
        prompt: the tokens before the text; at least one.
        matcher: where the text begins; ``None`` leaves it unconstrained. With ``n=1`` it is left where the text ends.
        sampling: how tokens are chosen, and when to stop.
        n: so many texts; with a seed they differ by their number.
    """

    prompt: Sequence[int]
    matcher: Matcher | None = None
    sampling: Sampling = field(default_factory=Sampling)
    n: int = 1

    def __post_init__(self) -> None:
        if not self.prompt:
            raise PromptError("the prompt must have at least one token")
        if self.n < 1:
            raise ValueError(f"n must be at least 1, not {self.n}")
        if self.sampling.on_limit == "close" and self.matcher is None:
            raise ValueError("on_limit='close' needs a constraint: without one no text is whole")


class Logprob(NamedTuple):
    """Log-probabilities (natural) of a chosen token; NaN where the model was not asked.

    Attributes:
        raw: by the model's logits as they are.
        masked: by the logits after penalties, bias and grammar mask, before temperature, top-k, top-p and min-p.
    """

    raw: float
    masked: float


@dataclass(frozen=True, slots=True)
class Generation:
    """A generated text.

    Attributes:
        tokens: what was generated, with the token that ended it.
        text: what those tokens say, up to a stop text; special tokens within it by their names. Where it was cut short,
            a character cut in two becomes U+FFFD.
        marked: the same as bytes, in which special tokens cannot be mistaken for text
            (:mod:`grammarspec.grammars.marks`).
        finish_reason: ``"stop"``: the text is whole, or a stop text came up; ``"length"``: the budget of tokens or the
            model's context ran out; ``"closed"``: the text is whole because it was steered to an ending in time;
            ``"error"``: the constraint raised one.
        statistics: what it cost; passes and times are those of the whole batch.
        logprobs: one for each token, if asked for.
        stop: the stop text that came up.
        error: what the constraint raised: a limit that was hit, say; or ``Truncated`` (``on_limit="raise"``).
    """

    tokens: list[int]
    text: str
    marked: bytes
    finish_reason: FinishReason
    statistics: Statistics
    logprobs: list[Logprob] | None = None
    stop: str | None = None
    error: Exception | None = None


class Lane:
    """A row of the batch: one text of one request.

    Attributes:
        tokens: those of the prompt and of the text so far.
        matcher: the state of the constraint behind them (during a round: behind the draft).
        finish_reason: why the text has ended; ``None`` while it has not.
    """

    def __init__(
        self,
        request: int,
        sample: int,
        what: Request,
        vocabulary: Vocabulary,
        context: int | None,
        on_text: Callable[[bytes], None] | None,
    ) -> None:
        self.request, self.sample = request, sample
        self.sampling = what.sampling
        self.matcher = what.matcher if what.n == 1 or what.matcher is None else what.matcher.fork()
        self.tokens = list(what.prompt)
        self.prompt_length = len(self.tokens)
        self.statistics = Statistics(prompt_tokens=self.prompt_length)
        self._logprobs: list[Logprob] = []
        self.finish_reason: FinishReason | None = None
        self._error: Exception | None = None
        self._vocabulary = vocabulary
        self._ends = frozenset(vocabulary.eos_token_ids)
        self._budget = self.sampling.max_tokens
        if context is not None:
            if self.prompt_length >= context:
                raise PromptError(f"the prompt has {self.prompt_length} tokens, the model's context only {context}")
            # The last token is never read, so that it needs no position.
            self._budget = min(self._budget, context - self.prompt_length + 1)
        self._closes = self.sampling.on_limit == "close"
        self._steered = False
        self._stops = [text.encode() for text in self.sampling.stop]
        self._stop: bytes | None = None
        self._text = bytearray()
        self._said = 0
        self._begin = self._last = perf_counter()
        self._timed = 0
        self._on_text = on_text
        if self.matcher is not None and not self.matcher.constraint.is_for(vocabulary.index):
            raise ValueError("the matcher's constraint was compiled for another vocabulary")
        if self.matcher is not None and self.matcher.is_terminated:
            raise ValueError("the matcher is at the end of a text: reset() it, or take a new one")
        if self._closes and self._to_end() > self._budget:
            message = f"no text can be whole within {self._budget} tokens: the shortest known takes {self._to_end()}"
            raise BudgetTooSmall(message, hint="raise max_tokens")

    @property
    def length(self) -> int:
        """Tokens of the text so far."""
        return len(self.tokens) - self.prompt_length

    @property
    def room(self) -> int:
        """Tokens that may still come."""
        return self._budget - self.length

    def is_end(self, token: int) -> bool:
        """The token ends a text."""
        return token in self._ends

    def commit(self, token: int) -> bool:
        """Append a token, and end the text if it is time.

        Returns:
            False where the token leaves no room for an ending (``on_limit="close"``); then nothing was done.

        Raises:
            RuntimeError: the constraint refuses a token that its mask allowed: a bug.
        """
        if self.matcher is not None and not self.matcher.accept_token(token):
            raise RuntimeError(f"the mask allows token {token}, which the matcher refuses")
        if self._closes and not self.is_end(token) and self._to_end() > self.room - 1:
            assert self.matcher is not None
            self.matcher.rollback(1)
            self._steered = True
            return False
        self.tokens.append(token)
        self.statistics.tokens += 1
        self._text += self._vocabulary.marked([token])
        if self.is_end(token):
            self.finish_reason = "closed" if self._steered else "stop"
        elif self._stops and (found := self._first_stop()):
            del self._text[found[0] :]
            self._stop = found[1]
            self.finish_reason = "stop"
        elif self.room == 0:
            self.finish_reason = "length"
        self._say()
        return True

    def fail(self, error: Exception) -> None:
        """End the text with an error."""
        self._error = error
        self.finish_reason = "error"
        self._say()

    def close(self) -> int:
        """Write a shortest ending, as far as no stop text comes up in it; how many tokens were written."""
        assert self.matcher is not None
        rest = [*self.matcher.constraint.shortest_completion(self.matcher.state), self._vocabulary.eos_token_ids[0]]
        self._closes, self._steered = False, True  # its room was checked
        written = 0
        while self.finish_reason is None:
            self.commit(rest[written])
            written += 1
        return written

    def report(self, begin: int, tokens: Sequence[int], logits: torch.Tensor, scores: torch.Tensor) -> None:
        """Note the log-probabilities of tokens that a round gave.

        Args:
            begin: where in the text they begin.
            logits, scores: ``[at least len(tokens), width]``, from the first of them on.
        """
        self._pad_logprobs(begin)
        index = torch.tensor(tokens, device=logits.device)[:, None]
        raw, masked = (
            values[: len(tokens)].float().log_softmax(-1).gather(1, index)[:, 0].tolist() for values in (logits, scores)
        )
        self._logprobs += map(Logprob, raw, masked)

    def end_round(self, now: float) -> None:
        """Note when the round's tokens came (``now``, by ``perf_counter``)."""
        new = self.length - self._timed
        if self._timed == 0:
            self.statistics.prefill_seconds = now - self._begin
        else:
            self.statistics.latencies.append((now - self._last, new))
            self.statistics.decode_seconds += now - self._last
        self._last, self._timed = now, self.length

    def result(self) -> Generation:
        """The finished text."""
        assert self.finish_reason is not None
        marked = bytes(self._text)
        text = marks.named(marked).decode(errors="replace")
        stop = None if self._stop is None else self._stop.decode()
        self._pad_logprobs(self.length)
        logprobs = self._logprobs if self.sampling.logprobs else None
        tokens = self.tokens[self.prompt_length :]
        if self.finish_reason == "length" and self.sampling.on_limit == "raise":
            self._error = Truncated(text)
        return Generation(tokens, text, marked, self.finish_reason, self.statistics, logprobs, stop, self._error)

    def _pad_logprobs(self, length: int) -> None:
        """Tokens that the model was not asked about have none."""
        self._logprobs += [Logprob(float("nan"), float("nan"))] * (length - len(self._logprobs))

    def _to_end(self) -> int:
        """Tokens of a short ending, the token that ends the text included."""
        assert self.matcher is not None
        return self.matcher.constraint.tokens_to_end(self.matcher.state) + 1

    def _first_stop(self) -> tuple[int, bytes] | None:
        """The first stop text in the text, of those not seen before the last token, and where it begins."""
        longest = max(map(len, self._stops))
        last = len(self._vocabulary.marked(self.tokens[-1:]))
        begin = max(len(self._text) - last - longest + 1, 0)
        found = [(at, stop) for stop in self._stops if (at := self._text.find(stop, begin)) >= 0]
        return min(found, default=None)

    def _say(self) -> None:
        """Hand on what is new, but for an end that may become a stop text."""
        if self._on_text is None:
            return
        held = 0
        if self.finish_reason is None:
            held = max(
                (n for stop in self._stops for n in range(1, len(stop)) if self._text.endswith(stop[:n])), default=0
            )
        if len(self._text) - held > self._said:
            self._on_text(marks.named(bytes(self._text[self._said : len(self._text) - held])))
            self._said = len(self._text) - held
