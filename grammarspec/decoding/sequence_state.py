"""The state of one sequence of the batch: its tokens, its constraint's matcher, and whether and why it has ended."""

from __future__ import annotations

import codecs
import copy
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from time import perf_counter

import torch

from grammarspec.decoding.metrics import Statistics
from grammarspec.decoding.requests import FinishReason, Generation, Logprob, Request
from grammarspec.errors import InvalidLogits, Truncated
from grammarspec.grammars import marks
from grammarspec.vocabulary import Vocabulary

__all__ = ["SequenceState", "invalid_logits", "sequences_of"]


class SequenceState:
    """A row of the batch: one text of one request, while it is generated.

    Attributes:
        request, sample: the number of the request in the batch, and of the text among the request's texts.
        sampling: the request's.
        tokens: the prompt and the text so far.
        prompt_length: how many of them are the prompt.
        matcher: the state of the constraint behind ``tokens`` (while a draft is made: behind the draft); ``None``
            without a constraint.
        finish_reason: why the text has ended; ``None`` while it has not.
        statistics: what the text has cost so far.
    """

    def __init__(
        self,
        number: int,
        sample: int,
        request: Request,
        vocabulary: Vocabulary,
        context: int | None,
        on_text: Callable[[bytes], None] | None,
    ) -> None:
        """Begin a text.

        Args:
            number, sample: see the attributes.
            request: the request that the text is for.
            vocabulary: the target's tokens.
            context: how many tokens the target can read, if that is known.
            on_text: called with each new piece of the text; a character may be split between calls.

        Raises:
            PromptError: the prompt fills the model's context.
            ValueError: the matcher is for another vocabulary, or at the end of a text.
            BudgetTooSmall: no whole text fits the budget (``on_limit="close"``).
        """
        self.request, self.sample = number, sample
        self.sampling = request.sampling
        self.matcher = request.matcher if request.n == 1 or request.matcher is None else request.matcher.fork()
        self.tokens = list(request.prompt)
        self.prompt_length = len(self.tokens)
        self.statistics = Statistics(prompt_tokens=self.prompt_length)
        self._logprobs: list[Logprob] = []
        self.finish_reason: FinishReason | None = None
        self._error: Exception | None = None
        self._whole = False
        self._vocabulary = vocabulary
        self._ends = frozenset(vocabulary.eos_token_ids)
        self._closes = self.sampling.on_limit == "close"
        self._steered = False
        self._stops = [text.encode() for text in self.sampling.stop]
        self._stop: bytes | None = None
        self._text = bytearray()
        self._reported = 0
        self._begin = self._last = perf_counter()
        self._timed = 0
        self._on_text = on_text
        if self.matcher is not None and not self.matcher.constraint.is_for(vocabulary.index):
            raise ValueError("the matcher's constraint was compiled for another vocabulary")
        if self.matcher is not None and self.matcher.is_terminated:
            raise ValueError("the matcher is at the end of a text: reset() it, or take a new one")
        self._budget = request.budget(context)

    def fork(self) -> SequenceState:
        """The same text once more, which goes on by itself from here."""
        other = copy.copy(self)
        other.matcher = None if self.matcher is None else self.matcher.fork()
        other.tokens, other._logprobs, other._text = list(self.tokens), list(self._logprobs), bytearray(self._text)
        other.statistics = copy.deepcopy(self.statistics)
        return other

    @property
    def length(self) -> int:
        """The number of generated tokens so far."""
        return len(self.tokens) - self.prompt_length

    @property
    def room(self) -> int:
        """How many more tokens fit the budget."""
        return self._budget - self.length

    def text_with(self, tokens: Sequence[int]) -> str:
        """What the text would be with some more tokens: up to a stop text, and without an incomplete last character.

        Args:
            tokens: the tokens; nothing is changed.
        """
        data = bytes(self._text) + self._vocabulary.marked(tokens)
        end = min((at for stop in self._stops if (at := data.find(stop)) >= 0), default=len(data))
        return codecs.getincrementaldecoder("utf-8")("replace").decode(marks.named(data[:end]))

    def is_end(self, token: int) -> bool:
        """Whether the token is one of the vocabulary's end-of-text tokens."""
        return token in self._ends

    def commit(self, token: int) -> bool:
        """Append a token, advance the matcher, and end the text if the token ends it.

        Returns:
            ``False`` if no whole text would fit the rest of the budget (``on_limit="close"``); then nothing is changed.

        Raises:
            RuntimeError: the constraint refuses a token that its mask allowed: a bug.
            LimitExceeded, Cancelled, StateCollected: raised by the constraint.
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
            self._whole = True
            self.finish_reason = "closed" if self._steered else "stop"
        elif self._stops and (found := self._first_stop()):
            self._stop = found[1]
            self._whole = self._is_whole(found[0])
            del self._text[found[0] :]
            self.finish_reason = "stop"
        elif self.room == 0:
            self.finish_reason = self._end_of_budget()
        self._report_text()
        return True

    def _end_of_budget(self) -> FinishReason:
        """Why a text ends whose budget is used up: ``"stop"`` if only the end-of-text token could follow.

        The bytes of a character that the budget has cut in half are no text: without them, the text may be whole.
        """
        if self.matcher is None:
            return "length"
        following, self._whole = self.matcher.next_bytes()
        if self._whole and not following:
            return "stop"
        if not self._whole and (cut := _incomplete_character(self._text)):
            self._whole = self._is_whole(len(self._text) - cut)
            if self._whole:
                del self._text[-cut:]
        return "length"

    def _is_whole(self, size: int) -> bool:
        """Whether the first ``size`` bytes of the text are a text of the grammar; without a grammar, any text is."""
        if self.matcher is None:
            return True
        begin, first = len(self._text), len(self.tokens)
        while begin > size:
            first -= 1
            begin -= len(self._vocabulary.marked([self.tokens[first]]))
        self.matcher.rollback(len(self.tokens) - first)
        _, whole = self.matcher.next_bytes(bytes(self._text[begin:size]))
        self.matcher.accept_tokens(self.tokens[first:])
        return whole

    def fail(self, error: Exception) -> None:
        """End the text with an error of its constraint."""
        self._error, self._whole = error, False
        self.finish_reason = "error"
        self._report_text()

    def close(self) -> int:
        """Append a shortest ending, up to a stop text if one comes up in it.

        Returns:
            the number of appended tokens.
        """
        assert self.matcher is not None
        rest = [*self.matcher.constraint.shortest_completion(self.matcher.state), self._vocabulary.eos_token_ids[0]]
        self._closes, self._steered = False, True  # it has been checked that the ending fits
        written = 0
        while self.finish_reason is None:
            self.commit(rest[written])
            written += 1
        return written

    def add_logprobs(self, begin: int, tokens: Sequence[int], logits: torch.Tensor, scores: torch.Tensor) -> None:
        """Record the log-probabilities of the tokens that a round committed.

        Args:
            begin: the position in the text of the first of them.
            tokens: the tokens.
            logits: ``[at least len(tokens), width]``, the model's, one row for each of the tokens.
            scores: the same after penalties, bias and mask.
        """
        self._pad_logprobs(begin)
        index = torch.tensor(tokens, device=logits.device)[:, None]
        by_logits, by_scores = (values[: len(tokens)].float().log_softmax(-1) for values in (logits, scores))
        raw, masked = (values.gather(1, index)[:, 0].tolist() for values in (by_logits, by_scores))
        known = by_logits[:, : self._vocabulary.size]  # models may have more logits than there are tokens
        best = known.topk(min(self.sampling.top_logprobs, known.shape[1]), -1)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        top = [tuple(zip(ids, values, strict=True)) for ids, values in pairs]
        self._logprobs += map(Logprob, raw, masked, top)

    def end_round(self, now: float) -> None:
        """Record the time of a round.

        Args:
            now: when its tokens were committed, in seconds of ``perf_counter``.
        """
        new = self.length - self._timed
        if self._timed == 0:
            self.statistics.prefill_seconds = now - self._begin
        else:
            self.statistics.latencies.append((now - self._last, new))
            self.statistics.decode_seconds += now - self._last
        self._last, self._timed = now, self.length

    def result(self) -> Generation:
        """The generation, once ``finish_reason`` is set."""
        assert self.finish_reason is not None
        marked = bytes(self._text)
        text = marks.named(marked).decode(errors="replace")
        stop = None if self._stop is None else self._stop.decode()
        self._pad_logprobs(self.length)
        logprobs = self._logprobs if self.sampling.logprobs else None
        tokens = self.tokens[self.prompt_length :]
        if self.finish_reason == "length" and self.sampling.on_limit == "raise":
            self._error = Truncated(text)
        return Generation(
            tokens, text, marked, self.finish_reason, self.statistics, logprobs, stop, self._error, self._whole
        )

    def _pad_logprobs(self, length: int) -> None:
        """Fill up with NaN for tokens that were appended without being scored."""
        self._logprobs += [Logprob(float("nan"), float("nan"))] * (length - len(self._logprobs))

    def _to_end(self) -> int:
        """The number of tokens of a short ending from here, the end-of-text token included."""
        assert self.matcher is not None
        return self.matcher.constraint.tokens_to_end(self.matcher.state) + 1

    def _first_stop(self) -> tuple[int, bytes] | None:
        """The first stop text that the last token completed, and its offset in bytes; ``None`` if there is none."""
        longest = max(map(len, self._stops))
        last = len(self._vocabulary.marked(self.tokens[-1:]))
        begin = max(len(self._text) - last - longest + 1, 0)
        found = [(at, stop) for stop in self._stops if (at := self._text.find(stop, begin)) >= 0]
        return min(found, default=None)

    def _report_text(self) -> None:
        """Call ``on_text`` with what is new, but for the last characters if they may begin a stop text."""
        if self._on_text is None:
            return
        held = 0
        if self.finish_reason is None:
            held = max(
                (n for stop in self._stops for n in range(1, len(stop)) if self._text.endswith(stop[:n])), default=0
            )
        if len(self._text) - held > self._reported:
            self._on_text(marks.named(bytes(self._text[self._reported : len(self._text) - held])))
            self._reported = len(self._text) - held


def _incomplete_character(text: bytes | bytearray) -> int:
    """How many bytes at the end of a text in UTF-8 begin a character that is not there as a whole."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(bytes(text[-4:]))
    return len(decoder.getstate()[0])


def sequences_of(
    requests: Sequence[Request],
    vocabulary: Vocabulary,
    context: int | None,
    on_text: Callable[[int, int, bytes], None] | None,
) -> list[SequenceState]:
    """The texts of some requests, in their order.

    Args:
        requests: the requests; each has ``n`` texts.
        vocabulary: the target's tokens.
        context: the model's context length, if it has one.
        on_text: called with the numbers of request and sample, and the next bytes of that text.

    Raises:
        PromptError, ValueError, BudgetTooSmall: as :class:`SequenceState`.
    """

    def sequence(number: int, sample: int) -> SequenceState:
        report = None if on_text is None else partial(on_text, number, sample)
        return SequenceState(number, sample, requests[number], vocabulary, context, report)

    return [sequence(number, sample) for number, request in enumerate(requests) for sample in range(request.n)]


def invalid_logits(highest: float, length: int) -> InvalidLogits:
    """The error for logits by which no token can be chosen.

    Args:
        highest: the greatest of them, NaN if one of them is: those of allowed tokens, with penalties and bias.
        length: how many tokens the text would have had there.
    """
    what = "-inf for every allowed token" if highest == -inf else f"{highest} for an allowed token"
    hint = "numbers may overflow in the model's dtype: load it in another, such as dtype=torch.float32"
    return InvalidLogits(f"the model's logits are {what}", f"token {length} of the text", hint)
