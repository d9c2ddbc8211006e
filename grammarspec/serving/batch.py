"""Writes the masks of a batch of sequences, and of their drafts, into rows; each sequence can fail by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grammarspec._compiler import Matcher, fill_each
from grammarspec.errors import GrammarspecError

__all__ = ["fill_bitmasks"]


def fill_bitmasks(
    matchers: Sequence[Matcher],
    rows: Any,
    *,
    rows_index: Sequence[int] | None = None,
    drafts: Sequence[Sequence[int]] | None = None,
    threads: int = 0,
) -> list[int | GrammarspecError]:
    """Write the masks of many sequences, and of the drafts that some of them have, into rows of a bitmask.

    A sequence with a draft of ``k`` tokens has ``k + 1`` rows, as :meth:`.Matcher.fill_draft_bitmasks` writes them.
    Masks that are not known yet are computed without the GIL, those of different constraints in parallel.

    An error of one sequence (a limit that was exceeded, a cancelled constraint) is returned as the result of that
    sequence and does not affect the others. The rows of that sequence then allow every token, so that the sampler
    finds one, and the engine must end the sequence.

    Args:
        matchers: one for each sequence.
        rows: ``int32[n, words]``, as for :meth:`.Matcher.fill_bitmask`.
        rows_index: the first row of each sequence; by default, rows follow one another in the order of the matchers.
        drafts: the draft of each sequence; by default, there are none.
        threads: the number of threads; 0: one for each core.

    Returns:
        For each sequence, how many tokens of its draft are allowed, from the first on; or its error.

    Raises:
        TypeError: a matcher or a draft is of another type, or ``rows`` is not int32 memory.
        IndexError: there are too few rows.
        ValueError: rows are too narrow, two sequences have the same row, or there are not as many drafts or indices as
            matchers.
    """
    given = [()] * len(matchers) if drafts is None else drafts
    firsts = rows_index
    if firsts is None:
        firsts, next_row = [], 0
        for draft in given:
            firsts.append(next_row)
            next_row += len(draft) + 1
    return fill_each(list(matchers), rows, firsts, given, threads)
