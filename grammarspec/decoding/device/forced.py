"""The token to draft where a mask row forces text: found once for each row of an arena's pool, on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

from grammarspec.vocabulary import Vocabulary

__all__ = ["forced_token"]

_MOST = 64  # tokens that a row may allow: forced text is spelled by the few tokens that it begins with


def forced_token(row: NDArray[np.int32], vocabulary: Vocabulary, end_token: int) -> int:
    """The token to draft where a mask row applies: the longest that begins what all allowed tokens begin.

    Text is taken for forced where the allowed tokens are beginnings of one text. Where the text branches, the token
    ends there. That a text may end within the token is not seen in the row: then the draft may be refused, no more.

    Args:
        row: ``int32[words]``, a mask row.
        vocabulary: its tokens.
        end_token: the token that is drafted where only tokens that end the text are allowed.

    Returns:
        the token; -1 if no text is forced, or too many tokens are allowed.
    """
    if not 0 < int.from_bytes(row.tobytes(), "little").bit_count() <= _MOST:
        return -1
    bits = np.unpackbits(np.ascontiguousarray(row, "<i4").view(np.uint8), bitorder="little")
    tokens = np.flatnonzero(bits).tolist()
    if set(tokens) <= set(vocabulary.eos_token_ids):
        return end_token if end_token in tokens else tokens[0]
    if len(tokens) == 1:
        return int(tokens[0])
    texts = {token: vocabulary.marked([token]) for token in tokens}
    if not all(texts.values()):
        return -1  # a token that ends the text, or one without any
    forced = -1
    for token in sorted(tokens, key=lambda each: (len(texts[each]), -each)):
        text = texts[token]
        # Shorter ones have to be its beginnings, longer ones have to go on from it.
        if not all(text.startswith(other) for other in texts.values() if len(other) <= len(text)):
            break
        if not all(other.startswith(text) for other in texts.values() if len(other) > len(text)):
            break
        forced = int(token)
    return forced
