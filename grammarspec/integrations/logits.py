"""``SequenceLogitsProcessor``: masks for engines that run one sequence and call Python with its logits.

llama-cpp-python calls ``f(input_ids, scores)`` with arrays of numpy, MLX-LM ``f(tokens, logits)`` with arrays of MLX.
For transformers, which runs batches and beams, there is another processor
(:mod:`grammarspec.integrations.transformers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammarspec._compiler import Constraint
from grammarspec.bitmask import allocate_bitmask, apply_bitmask
from grammarspec.errors import needed_by
from grammarspec.integrations.following import FollowedText
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

with needed_by("logits processors"):
    import numpy as np

__all__ = ["SequenceLogitsProcessor"]

_ANOTHER_TEXT = (
    "these tokens are not those of an earlier call and one more: make a processor for each answer, or call reset() in "
    "between (draft models of llama-cpp-python, whose drafts are among the tokens, are not supported)"
)


class SequenceLogitsProcessor:
    """Masks the logits of one sequence, so that an engine generates a text that the constraint allows.

    The tokens of the first call are the prompt; each later call has the tokens of an earlier call and one more. After
    the end of the text, only the token that ended it is allowed.

    An error is raised, and also kept in ``failure``. llama-cpp-python calls the processor from C code, which prints
    errors and ignores them. Therefore an error also ends the text: if the logits are an array of numpy, they are
    overwritten so that only end-of-text tokens are possible. Call :meth:`check` when the answer is complete.

    Attributes:
        failure: the error that ended the text; ``None`` if there was none.
    """

    def __init__(self, constraint: Constraint, vocabulary: Vocabulary) -> None:
        """A processor for one answer.

        Args:
            constraint: the constraint of the text.
            vocabulary: the vocabulary of the model, for which the constraint was compiled.

        Raises:
            TypeError: an argument is not a constraint, or not a vocabulary.
            ValueError: the constraint was compiled for another vocabulary.
        """
        if not isinstance(constraint, Constraint):
            raise TypeError(f"expected a Constraint, not {type(constraint).__name__}")
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(f"expected a Vocabulary, not {type(vocabulary).__name__}")
        if not constraint.is_for(vocabulary.index):
            raise ValueError("the constraint was compiled for another vocabulary")
        self._constraint, self._ends = constraint, vocabulary.eos_token_ids
        self._rows = allocate_bitmask(1, vocabulary.size)
        self.reset()

    def reset(self) -> None:
        """Forget all tokens and the failure: the next call begins another answer."""
        self.failure: Exception | None = None
        self._prompt: NDArray[np.int64] | None = None
        self._text = FollowedText(self._constraint, self._constraint.matcher())

    def check(self) -> None:
        """Raise the error that ended the text, if there was one."""
        if self.failure is not None:
            raise self.failure

    def __call__(self, tokens: Any, scores: Any) -> Any:
        """Scores with -inf for each token that may not come next.

        Args:
            tokens: integers ``[length]``, the prompt and the generated tokens: an array, or a sequence.
            scores: floating ``[width]`` or ``[1, width]``: an array of numpy, or of a library whose arrays can be made
                from those of numpy, can be added, and have ``astype`` (MLX).

        Returns:
            a new array of the type, shape and dtype of the scores.

        Raises:
            TypeError: the tokens are not integers.
            ValueError: the tokens do not continue those of an earlier call, or one of them is not allowed.
            LimitExceeded, Cancelled: as :class:`.Matcher`. After an error, each call raises it again.
        """
        try:
            self.check()
            self._fill(tokens)
        except Exception as error:
            self.failure = error
            if isinstance(scores, np.ndarray):
                self._allow_end(scores)
            raise
        if isinstance(scores, np.ndarray):
            masked = scores.copy()
            apply_bitmask(masked, self._rows)
            return masked
        bias = np.zeros((1, scores.shape[-1]), np.float32)
        apply_bitmask(bias, self._rows)
        return scores + type(scores)(bias.reshape(scores.shape)).astype(scores.dtype)

    def _fill(self, tokens: Any) -> None:
        """Write the mask of the next token, after these tokens, into the row."""
        array = np.asarray(tokens)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise TypeError(f"tokens must be integers of the shape [length], not {array.dtype} {list(array.shape)}")
        given = array.astype(np.int64)  # a copy: engines change theirs
        if self._prompt is None:
            self._prompt = given
        length = len(self._prompt)
        text = self._text
        generated = given[length:]
        if not np.array_equal(given[:length], self._prompt) or len(generated) - text.shared(generated) > 1:
            raise ValueError(_ANOTHER_TEXT)
        text.follow(generated)
        if text.accepted < len(generated) and not text.matcher.is_terminated:
            token = int(generated[text.accepted])
            raise ValueError(f"token {token} is not allowed, but was generated: make this processor the last one")
        text.matcher.fill_bitmask(self._rows)
        text.allow_end_again(self._rows[0])

    def _allow_end(self, scores: NDArray[Any]) -> None:
        """Overwrite scores: the tokens that end a text are equally likely, all others are impossible."""
        scores[...] = -np.inf
        for end in self._ends:
            if end < scores.shape[-1]:
                scores[..., end] = 0.0
