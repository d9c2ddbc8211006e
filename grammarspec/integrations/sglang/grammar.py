"""The grammar of one sequence, which SGLang's scheduler calls: it accepts tokens and fills mask rows.

:meth:`SequenceGrammar.accept_token` raises a ``ValueError`` for a token that is refused; SGLang expects that, and ends
the request. The other methods keep errors instead of raising them, as an error would end the scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grammarspec.bitmask import apply_bitmask
from grammarspec.serving import GuardedMatcher

if TYPE_CHECKING:
    import torch

__all__ = ["SequenceGrammar", "allocate_vocab_mask", "apply_vocab_mask", "move_vocab_mask"]


def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any = None) -> torch.Tensor:
    """``int32[batch_size, ceil(vocab_size / 32)]`` in the memory of the host, all bits set.

    Args:
        vocab_size: the number of logits.
        batch_size: the number of rows.
        device: the device to which the mask is copied later. For a CUDA device the mask is in pinned memory, so that
            it can be copied asynchronously; for another one, or ``None``, in ordinary memory.
    """
    import torch

    pinned = device is not None and torch.device(device).type == "cuda" and torch.cuda.is_available()
    return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32, pin_memory=pinned)


def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
    """A copy of the mask on a device, which is made asynchronously."""
    return vocab_mask.to(device, non_blocking=True)


def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Set the logits of tokens that are not allowed to -inf, in place.

    Args:
        logits: floating ``[rows, vocabulary]``, on any device.
        vocab_mask: ``int32[rows, words]``.
    """
    apply_bitmask(logits, vocab_mask)


class SequenceGrammar:
    """The methods of a ``BaseGrammarObject`` of SGLang, for one sequence; :mod:`.backend` makes a class of the two.

    Attributes:
        guarded: the matcher.
        mask_threads: the number of threads that compute the masks of a batch; 0: one for each core.
        current_token: the last accepted token; ``None`` if there is none. When a request is scheduled again, SGLang
            finds by it whether the grammar has accepted the last token of the request.
    """

    guarded: GuardedMatcher
    mask_threads: int
    current_token: int | None

    @classmethod
    def of(cls, guarded: GuardedMatcher, mask_threads: int = 0) -> SequenceGrammar:
        """The grammar of a matcher."""
        made = cls()  # the other base class has the initialiser, which takes nothing
        made.guarded, made.mask_threads = guarded, mask_threads
        return made

    def copy(self) -> SequenceGrammar:
        """An independent copy, with the same tokens accepted."""
        copied = type(self).of(self.guarded.fork(), self.mask_threads)
        copied.current_token = self.current_token
        return copied

    # ------------------------------------------------------------------ tokens
    def accept_token(self, token: int) -> None:
        """Accept a token. After the end of the text, every token is ignored.

        Raises:
            ValueError: the token is not allowed, or the sequence has failed. SGLang then ends the request.
        """
        if self.guarded.is_terminated:
            return
        if not self.guarded.accept_tokens([token]):
            failure = self.guarded.failure
            raise ValueError(f"token {token} is not allowed here" if failure is None else str(failure))
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Roll back the last ``k`` accepted tokens, or all of them if there are fewer."""
        self.guarded.rollback(k)

    def is_terminated(self) -> bool:
        """Whether a token that ends the text was accepted."""
        return self.guarded.is_terminated

    # ------------------------------------------------------------------ masks
    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any = None) -> torch.Tensor:
        """As :func:`allocate_vocab_mask`."""
        return allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the mask of the next token into a row; all bits if that fails."""
        self.guarded.fill_bitmask(vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
        """Write the masks of a batch into rows; masks that are not known yet are computed in parallel.

        Args:
            entries: objects of SGLang's ``GrammarRow``; some of their grammars may be wrapped, or of another backend.
            vocab_mask: ``int32[rows, words]``, on the host. Rows without an entry do not change.
        """
        together = [entry for entry in entries if isinstance(entry.grammar, SequenceGrammar)]
        for entry in entries:
            if not isinstance(entry.grammar, SequenceGrammar):
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
        GuardedMatcher.fill_bitmasks(
            [entry.grammar.guarded for entry in together],
            vocab_mask.numpy(),
            [entry.row for entry in together],
            max((entry.grammar.mask_threads for entry in together), default=0),
        )

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow every token in all rows."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """As :func:`move_vocab_mask`."""
        return move_vocab_mask(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """As :func:`apply_vocab_mask`."""
        apply_vocab_mask(logits, vocab_mask)

    # ------------------------------------------------------------------ forced text
    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The tokens that the grammar forces next, with an empty text; ``None`` if no token is forced."""
        tokens = self.guarded.forced_tokens()
        return (tokens, "") if tokens else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of :meth:`try_jump_forward`, and -1, as there is no state to pass on."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: Sequence[int], new_output_ids: Sequence[int], next_state: int
    ) -> None:
        """Roll back to the longest common prefix of the old and the new output, and accept the rest of the new one.

        Raises:
            ValueError: one of them is not allowed.
        """
        shared = 0
        while shared < min(len(old_output_ids), len(new_output_ids)):
            if old_output_ids[shared] != new_output_ids[shared]:
                break
            shared += 1
        self.rollback(len(old_output_ids) - shared)
        for token in new_output_ids[shared:]:
            self.accept_token(token)
