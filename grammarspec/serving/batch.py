"""The masks of a batch of sequences, each with an error of its own: matchers and drafts come in, rows are written."""

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

    What goes wrong with one sequence (a limit, a cancelled constraint) is its result, and no other's: its rows then
    allow every token, so that a sampler finds one, and the sequence is to be ended by the engine.

    Args:
        matchers: one for each sequence.
        rows: ``int32[n, words]``, as for :meth:`.Matcher.fill_bitmask`.
        rows_index: the first row of each sequence; by default, rows follow one another in the order of the matchers.
        drafts: the draft of each sequence; by default, there are none.
        threads: how many threads work; 0: as many as there are cores.

    Returns:
        For each sequence, how many tokens of its draft are allowed, from the first on; or its error.

    Raises:
        TypeError: a matcher or a draft is none, or ``rows`` no int32 memory.
        IndexError: there are too few rows.
        ValueError: rows are too narrow, or there are not as many drafts or indices as matchers.
    """
    given = [()] * len(matchers) if drafts is None else drafts
    firsts = rows_index
    if firsts is None:
        firsts, next_row = [], 0
        for draft in given:
            firsts.append(next_row)
            next_row += len(draft) + 1
    return fill_each(list(matchers), rows, firsts, given, threads)
