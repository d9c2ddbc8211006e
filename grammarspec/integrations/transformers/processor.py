"""``ConstraintLogitsProcessor``: grammar masks in the decoding loop of ``generate`` of transformers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import LogitsProcessor

from grammarspec._compiler import Constraint, fill_bitmasks
from grammarspec.bitmask import allocate_bitmask, apply_bitmask
from grammarspec.integrations.following import FollowedText

__all__ = ["ConstraintLogitsProcessor"]

_ANOTHER_TEXT = (
    "these tokens do not continue the text that this processor has followed so far: make a processor for each call of "
    "generate, or call reset() in between (an assistant model with a tokenizer of its own is not supported)"
)


class ConstraintLogitsProcessor(LogitsProcessor):
    """A logits processor that masks scores, so that ``generate`` generates texts that a constraint allows.

    ``model.generate(**inputs, logits_processor=LogitsProcessorList([ConstraintLogitsProcessor(constraint)]))`` works
    with greedy search and sampling, batches, ``num_return_sequences``, beam search, ``assistant_model`` and
    ``prompt_lookup_num_tokens``. The end-of-text tokens of the constraint's vocabulary should be those at which
    ``generate`` stops.

    The masks depend only on the generated tokens that are passed to a call, and not on earlier calls: between calls,
    rows may be reordered, shortened, or extended by several tokens.

    * After the end of a text (in a finished row, which ``generate`` pads), only the token that ended it is allowed.
    * After a token that the constraint refuses, every token is allowed: such rows are drafts that will be rejected, or
      beams with the score -inf. If another processor forces a token against the mask, this looks the same; therefore
      put this processor last.

    Args:
        constraint: one for all rows, or one per prompt, with ``None`` for a prompt whose rows are unconstrained. The
            rows of one prompt (beams, returned sequences) must follow each other, as they do in ``generate``.
        prompt_length: the number of tokens before the generated ones, padding included. By default it is the length of
            the first input; then a processor can be used for one call of ``generate``, or for several with
            :meth:`reset` in between. Without ``reset``, another prompt is an error (unless it consists of the earlier
            tokens and one more, which looks like a continuation). With ``prompt_length``, a processor can be used for
            any number of calls of ``generate``, and prompts are not compared.

    Raises:
        TypeError: ``constraint`` is not a constraint, nor a sequence of constraints and ``None``.
        ValueError: no constraint is given, or ``prompt_length`` is negative.
        LimitExceeded: the first mask of a constraint exceeds one of its limits.
    """

    supports_continuous_batching = False  # continuous batching packs the tokens of all requests into one row

    def __init__(
        self, constraint: Constraint | Sequence[Constraint | None], *, prompt_length: int | None = None
    ) -> None:
        constraints = [constraint] if isinstance(constraint, Constraint) else list(constraint)
        for each in constraints:
            if each is not None and not isinstance(each, Constraint):
                raise TypeError(f"expected a Constraint or None, not {type(each).__name__}")
        if not constraints:
            raise ValueError("no constraint was given")
        if prompt_length is not None and prompt_length < 0:
            raise ValueError(f"prompt_length must not be negative, not {prompt_length}")
        self._constraints = constraints
        self._prompt_length = prompt_length
        # The size of the vocabulary follows from the length of a mask, up to a word.
        self._width = max((8 * len(each.mask(each.start)) for each in constraints if each is not None), default=0)
        self.reset()

    def reset(self) -> None:
        """Forget all tokens: the next call belongs to another call of ``generate``."""
        self._prompt: torch.Tensor | None = None
        self._rows: list[FollowedText | None] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores with -inf for each token that the constraint of its row does not allow next.

        Args:
            input_ids: integers ``[rows, length]``, the prompts and the generated tokens.
            scores: ``[rows, width]``, of any floating dtype, device and width; not changed.

        Returns:
            a new tensor of the shape, dtype and device of the scores.

        Raises:
            ValueError: the number of rows is not a multiple of the number of constraints, the input is shorter than
                ``prompt_length``, or it belongs to another call of ``generate`` than the previous input.
            LimitExceeded: a step or a mask exceeds a limit of its constraint.
        """
        rows = self._follow(self._generated(input_ids))
        chosen = [-1] * len(rows)
        active: list[FollowedText] = []
        for index, row in enumerate(rows):
            if row is not None and (row.accepted == len(row.tokens) or row.matcher.is_terminated):
                chosen[index] = len(active)
                active.append(row)
        # The scores are copied in any case: prompt lookup passes the same tensor for each token of a draft.
        result = scores.clone()
        if active:
            masks = allocate_bitmask(len(active), self._width)
            fill_bitmasks([row.matcher for row in active], masks)
            for row, mask in zip(active, masks, strict=True):
                row.allow_end_again(mask)  # beam search continues ended texts if it has too few others
            apply_bitmask(result, masks, chosen)
        return result

    def _generated(self, input_ids: torch.Tensor) -> NDArray[np.int64]:
        """The generated tokens, without the prompts."""
        length = self._prompt_length
        if length is None:
            if self._prompt is None:
                self._prompt = input_ids.clone()
            length = self._prompt.shape[1]
            # The draft model and the target may be on different devices.
            if not torch.equal(input_ids[:, :length], self._prompt.to(input_ids.device)):
                raise ValueError(_ANOTHER_TEXT)
        elif input_ids.shape[1] < length:
            raise ValueError(f"an input of {input_ids.shape[1]} tokens is shorter than prompt_length={length}")
        generated: NDArray[np.int64] = input_ids[:, length:].to("cpu", torch.int64, copy=True).numpy()
        return generated

    def _follow(self, generated: NDArray[np.int64]) -> list[FollowedText | None]:
        """Move the rows from the tokens of the last call to these tokens, by accepting and rolling back tokens."""
        # If an error interrupts this, matchers may be at any place of their texts: the next call then makes new ones.
        old, self._rows = self._rows, []
        if len(old) != len(generated):
            old = self._start(len(generated))
        # All rows are chosen, and forked if need be, before any is advanced.
        pairs = zip(old, generated, strict=True)
        rows = [None if row is None else row.closest(old, tokens) for row, tokens in pairs]
        for row, tokens in zip(rows, generated, strict=True):
            if row is None:
                continue
            new = len(tokens) - row.shared(tokens)
            row.follow(tokens)
            # Within one call of generate, each input is an earlier input and at most one more token. The prompt of
            # another call may begin with the whole text, as in a conversation; a refused token then shows that.
            if self._prompt_length is None and new > 1 and row.accepted < len(tokens):
                raise ValueError(_ANOTHER_TEXT)
        self._rows = rows
        return rows

    def _start(self, count: int) -> list[FollowedText | None]:
        """New rows, for a batch with this number of rows."""
        per_prompt, remainder = divmod(count, len(self._constraints))
        if remainder:
            raise ValueError(f"{count} rows for {len(self._constraints)} constraints")
        constraints = [constraint for constraint in self._constraints for _ in range(per_prompt)]
        return [
            None if constraint is None else FollowedText(constraint, constraint.matcher()) for constraint in constraints
        ]
