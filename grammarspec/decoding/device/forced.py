"""Finds the token to draft for a mask row that forces text: once for each row of an arena, on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from grammarspec.bitmask import allowed_tokens
from grammarspec.vocabulary import Vocabulary

__all__ = ["forced_token"]

_MOST = 64  # the greatest number of allowed tokens: where text is forced, only its few beginnings are allowed


def forced_token(row: NDArray[np.int32], vocabulary: Vocabulary, end_token: int) -> int:
    """The token to draft for a mask row: the longest one that is forced.

    Text counts as forced if the allowed tokens are all beginnings of one text. If the text branches, the token ends
    before the branch. A mask row does not show whether the text may also end within the token; in that case the draft
    may be refused, which does no harm.

    Args:
        row: ``int32[words]``, a mask row.
        vocabulary: the tokens of the row.
        end_token: the token to draft if only end-of-text tokens are allowed, and it is one of them.

    Returns:
        the token; -1 if no text is forced, or too many tokens are allowed.
    """
    if not 0 < int.from_bytes(row.tobytes(), "little").bit_count() <= _MOST:
        return -1
    tokens = allowed_tokens(row).tolist()
    if set(tokens) <= set(vocabulary.eos_token_ids):
        return end_token if end_token in tokens else tokens[0]
    if len(tokens) == 1:
        return int(tokens[0])
    texts = {token: vocabulary.marked([token]) for token in tokens}
    if not all(texts.values()):
        return -1  # an end-of-text token, or one without text, is among the allowed tokens
    forced = -1
    for token in sorted(tokens, key=lambda each: (len(texts[each]), -each)):
        text = texts[token]
        # Shorter tokens must be beginnings of its text, and its text must be a beginning of longer tokens.
        if not all(text.startswith(other) for other in texts.values() if len(other) <= len(text)):
            break
        if not all(other.startswith(text) for other in texts.values() if len(other) > len(text)):
            break
        forced = int(token)
    return forced
