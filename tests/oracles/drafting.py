"""Drafts without a model: rows, and as much of a batch as proposers look at."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.decoding import Request  # noqa: E402
from grammarspec.decoding.draft import Draft, MaskRows  # noqa: E402
from grammarspec.decoding.sequence_state import SequenceState  # noqa: E402

BYTES = gs.Vocabulary.bytes()
END = 256
WIDTH = 264
CPU = torch.device("cpu")


def sequence(
    tokens: Sequence[int], matcher: Any = None, *, vocabulary: gs.Vocabulary = BYTES, text: Sequence[int] = ()
) -> SequenceState:
    made = SequenceState(0, 0, Request(prompt=tokens, matcher=matcher), vocabulary, None, None)
    for token in text:
        assert made.commit(token)
    return made


def draft_for(
    sequences: Sequence[SequenceState], room: int | Sequence[int], *, vocabulary: gs.Vocabulary = BYTES
) -> Draft:
    rooms = [room] * len(sequences) if isinstance(room, int) else room
    return Draft(
        sequences, rooms, MaskRows(len(sequences), max(rooms), vocabulary.size), CPU, max(WIDTH, vocabulary.size)
    )


def batch_of(sequences: Sequence[SequenceState], *, vocabulary: gs.Vocabulary = BYTES, end: int = END) -> Any:
    """As much of a batch as proposers without a model look at."""
    return SimpleNamespace(sequences=list(sequences), vocabulary=vocabulary, end_token=end)


def matcher_of(pattern: str, vocabulary: gs.Vocabulary = BYTES) -> Any:
    return gs.compile(gs.regex(pattern), vocabulary).matcher()


def allowed_of(matcher: Any, tokens: Sequence[int]) -> list[int]:
    """The leading tokens that a constraint allows, one by one."""
    if matcher is None:
        return list(tokens)
    fork = matcher.fork()
    taken: list[int] = []
    for token in tokens:
        if fork.is_terminated or not fork.accept_token(token):
            break
        taken.append(token)
    return taken
