"""What the loop is asked for and what it returns: a :class:`Request` goes in, a :class:`Generation` comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from grammarspec._compiler import Matcher
from grammarspec.decoding.metrics import Statistics
from grammarspec.decoding.sampling import Sampling
from grammarspec.errors import BudgetTooSmall, PromptError
from grammarspec.vocabulary import Vocabulary

__all__ = ["FinishReason", "Generation", "Logprob", "Request", "check_requests"]

FinishReason = Literal["stop", "length", "closed", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt and how to continue it.

    Attributes:
        prompt: the tokens before the text; at least one.
        matcher: the state of the constraint where the text begins; ``None`` generates without a constraint. With
            ``n=1`` it advances with the text and ends where the text ends; with more it is forked for each text.
        sampling: how tokens are chosen, and when to stop.
        n: the number of texts to generate. With a seed they differ by their sample number, 0 to ``n - 1``.

    Raises:
        PromptError: the prompt has no tokens.
        ValueError: ``n`` is below 1, or ``on_limit="close"`` is asked for without a constraint.
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

    def budget(self, context: int | None) -> int:
        """The greatest number of tokens that a text may have.

        Args:
            context: how many tokens the model can read, if that is known.

        Raises:
            PromptError: the prompt fills the model's context, or leaves no room in it for any text that could be ended
                (``on_limit="close"``).
            BudgetTooSmall: no text can be ended within ``max_tokens`` (``on_limit="close"``).
            LimitExceeded, Cancelled: raised by the constraint.
        """
        budget = self.sampling.max_tokens
        if context is not None:
            if len(self.prompt) >= context:
                raise PromptError(f"the prompt has {len(self.prompt)} tokens, the model's context only {context}")
            # The last token is never read by the model, so it needs no position in its context.
            budget = min(budget, context - len(self.prompt) + 1)
        if self.sampling.on_limit == "close" and self.matcher is not None:
            shortest = self.matcher.constraint.tokens_to_end(self.matcher.state) + 1
            if shortest > budget:
                message = f"no text can be whole within {budget} tokens: the shortest known takes {shortest}"
                if budget < self.sampling.max_tokens:
                    hint = f"shorten the prompt, whose {len(self.prompt)} tokens leave no more room in the context"
                    raise PromptError(message, hint=hint)
                raise BudgetTooSmall(message, hint="raise max_tokens")
        return budget


class Logprob(NamedTuple):
    """Natural log-probabilities of a generated token; NaN for a token that was appended without being scored.

    Attributes:
        raw: under the softmax of the model's logits as they are.
        masked: under the softmax of the logits after penalties, bias and grammar mask, before temperature, top-k, top-p
            and min-p.
        top: the most probable tokens at this position by the model's logits as they are, with ``raw`` of each, the most
            probable first; as many as ``top_logprobs`` of the sampling asks for. They may be tokens that the grammar
            does not allow.
    """

    raw: float
    masked: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """A generated text.

    Attributes:
        tokens: the generated tokens, the end-of-text token included if there is one.
        text: the same as text, up to a stop text; special tokens within it appear by their names. If the text was cut
            short inside a character, the incomplete character is left out where the text is whole without it, and else
            U+FFFD.
        marked: the text as bytes in which special tokens are marked, so that they cannot be mistaken for text
            (:mod:`grammarspec.grammars.marks`).
        finish_reason: ``"stop"``: the text has ended, or could not go on, or a stop text came up; ``"length"``: the
            budget of tokens or the model's context ran out where the text could go on; ``"closed"``: the text is whole
            because it was steered to an ending before the budget ran out; ``"error"``: an error ended it.
        statistics: what the text cost. Passes and phase times are those of the whole batch.
        logprobs: one entry for each token, if the sampling asks for them.
        stop: the stop text that came up, if one did.
        error: the error that the constraint raised, such as a limit that was exceeded; or
            :class:`~grammarspec.errors.Truncated` (``on_limit="raise"``).
        whole: whether the text belongs to the grammar, if only its end-of-text token is missing; without a constraint,
            whether it has ended before the budget ran out.
        reward: the reward of the whole text, if it was generated with lookaheads.
    """

    tokens: list[int]
    text: str
    marked: bytes
    finish_reason: FinishReason
    statistics: Statistics
    logprobs: list[Logprob] | None = None
    stop: str | None = None
    error: Exception | None = None
    whole: bool = True
    reward: float | None = None


def check_requests(requests: Sequence[Request], vocabulary: Vocabulary, width: int) -> None:
    """Refuse requests that do not fit the model, or each other.

    Args:
        requests: the requests.
        vocabulary: the target's tokens.
        width: the number of its logits.

    Raises:
        ValueError: the vocabulary is larger, or a matcher is given twice.
        PromptError: a prompt has a token that the model does not.
    """
    if vocabulary.size > width:
        raise ValueError(
            f"the vocabulary has {vocabulary.size} tokens, the model {width}: "
            "build it with the size of the model's logits (size=...)"
        )
    for request in requests:
        unknown = next((token for token in request.prompt if not 0 <= token < width), None)
        if unknown is not None:
            raise PromptError(f"the prompt has the token {unknown}, the model only {width}")
    followed = [id(request.matcher) for request in requests if request.matcher is not None and request.n == 1]
    if len(set(followed)) < len(followed):
        raise ValueError("two requests have the same matcher, which follows one text: give each its own (fork())")
