"""``SequenceLogitsProcessor``: masks for engines that run one sequence and call Python with its logits.

llama-cpp-python calls ``f(input_ids, scores)`` with arrays of numpy, MLX-LM ``f(tokens, logits)`` with its own arrays.
transformers runs batches and beams, and has a processor of its own (:mod:`grammarspec.integrations.transformers`).
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
    """Masks the logits of one sequence, so that an engine generates a text of a constraint.

    The first call's tokens are the prompt; each later call has the tokens of an earlier one, and one more. Behind the
    end of the text only the token that ended it is allowed.

    An error is raised, and kept in ``failure``. llama-cpp-python calls the processor from C, where what is raised is
    printed and passed over. So the text is ended, too: logits of numpy are overwritten with those that allow the end
    alone. Call :meth:`check` when the answer is there.

    Attributes:
        failure: the error that ended the text; ``None``: there was none.
    """

    def __init__(self, constraint: Constraint, vocabulary: Vocabulary) -> None:
        """A processor for one answer.

        Args:
            constraint: of the text.
            vocabulary: that of the model, for which the constraint was compiled.

        Raises:
            TypeError: they are no constraint and no vocabulary.
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
        """Forget all tokens and the failure: the next call is the first one of another answer."""
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
            tokens: integers ``[length]``, the prompt and what was generated: an array, or a sequence.
            scores: floating ``[width]`` or ``[1, width]``: of numpy, or of a library whose arrays are made of numpy's,
                add and have ``astype`` (MLX).

        Returns:
            a new array of the kind, shape and dtype of the scores.

        Raises:
            TypeError: the tokens are no integers.
            ValueError: they do not continue those of an earlier call, or a token among them is not allowed.
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
        """Write the mask behind the tokens into the row."""
        array = np.asarray(tokens)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise TypeError(f"tokens are integers [length], not {array.dtype} {list(array.shape)}")
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
            raise ValueError(f"token {token} is not allowed, but was generated: put this processor behind all others")
        text.matcher.fill_bitmask(self._rows)
        text.allow_end_again(self._rows[0])

    def _allow_end(self, scores: NDArray[Any]) -> None:
        """Overwrite scores: the tokens that end a text are equally likely, all others are impossible."""
        scores[...] = -np.inf
        for end in self._ends:
            if end < scores.shape[-1]:
                scores[..., end] = 0.0
