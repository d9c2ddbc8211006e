"""Random texts of a grammar, for trying it out."""

from __future__ import annotations

import random

from grammarspec.grammars import marks
from grammarspec.grammars.reading import Readable

__all__ = ["sample"]

_ENDS = 0.3
"""The probability that a text ends where it may."""
_PLAIN = 0.7
"""The probability that only letters, digits and blanks are considered where one of them may come next."""
_PLAIN_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ")


def sample(grammar: Readable, seed: int | None, max_bytes: int) -> str:
    """A random text of the language, the same for the same seed. The distribution is not specified.

    Args:
        max_bytes: after so many bytes the text is completed in the shortest way.

    Raises:
        Unsatisfiable: the language has no texts.
        GrammarError: the grammar cannot be compiled.
    """
    rng = random.Random(seed)
    constraint = grammar.byte_constraint
    matcher = constraint.matcher()
    written = bytearray()
    while len(written) < max_bytes:
        following, may_end = matcher.next_bytes()
        if not following or (may_end and rng.random() < _ENDS):
            break
        plain = [byte for byte in following if byte in _PLAIN_BYTES]
        byte = rng.choice(plain if plain and rng.random() < _PLAIN else following)
        matcher.accept_token(byte)
        written.append(byte)
    if not matcher.is_accepting:
        written += bytes(token for token in constraint.shortest_completion(matcher.state) if token < 256)
    return marks.named(bytes(written)).decode()
