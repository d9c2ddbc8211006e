"""Prompt lookup against a search by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from grammarspec.decoding.proposers import Lookup  # noqa: E402
from grammarspec.decoding.sequence_state import SequenceState  # noqa: E402
from tests.oracles.drafting import END, allowed_of, batch_of, draft_for, matcher_of, sequence  # noqa: E402


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


def looked_up(proposer: Lookup, row: SequenceState, room: int = 8) -> str:
    draft = draft_for([row], room)
    proposer.start(batch_of([row]))
    proposer.propose(draft, [0])
    assert draft.sources[0] == ["lookup"] * len(draft.tokens[0])
    assert not any(draft.drawn[0])
    return bytes(draft.tokens[0]).decode()


def test_lookup_takes_the_longest_match() -> None:
    # "bc" came up twice, later the one behind "a"; "abc" only there.
    assert looked_up(Lookup(), sequence(b"abcX...zbcY...abc"), 1) == "X"
    assert looked_up(Lookup(longest=2), sequence(b"abcX...zbcY...abc"), 1) == "Y"


def test_lookup_takes_the_latest_match() -> None:
    assert looked_up(Lookup(), sequence(b" ab1 ab2 ab3 ab"), 1) == "3"
    assert looked_up(Lookup(), sequence(b" ab1 ab2 ab3 ab"), 4) == "3 ab"
    # Unless more stands behind an earlier one.
    assert looked_up(Lookup(), sequence(b" ab1 ab2 ab3 ab"), 8) == "2 ab3 ab"
    assert looked_up(Lookup(), sequence(b" ab1 ab2 ab3 ab"), 20) == "1 ab2 ab3 ab"


def test_lookup_takes_what_the_constraint_allows() -> None:
    text = b" ab12x ab3ab 77yy ab"
    assert looked_up(Lookup(), sequence(text), 3) == "3ab"
    assert looked_up(Lookup(), sequence(text, matcher_of("[0-9]+y?")), 3) == "12"
    # Of what is allowed as far, the latest.
    assert looked_up(Lookup(), sequence(text, matcher_of("[0-9]+")), 1) == "3"
    assert looked_up(Lookup(), sequence(text, matcher_of("[z]+"))) == ""
    # A shorter match is looked at where no occurrence of the longer one is allowed.
    assert looked_up(Lookup(), sequence(b"..b9 ab1 ab", matcher_of("9[0-9 ]*"))) == "9 "


def test_lookup_looks_no_further_than_it_is_told() -> None:
    text = b" ab1 ab2 ab3 ab"
    assert looked_up(Lookup(tries=2), sequence(text, matcher_of("1.*"))) == ""
    assert looked_up(Lookup(tries=3), sequence(text, matcher_of("1.*"))) == "1 ab2 ab"
    assert looked_up(Lookup(shortest=3), sequence(b"ab1 cab")) == ""
    assert looked_up(Lookup(), sequence(b"abcdef")) == ""


def test_lookup_ends_at_the_end_of_a_text() -> None:
    row = sequence([*b"ab1", END, *b"xx ab"])
    draft = draft_for([row], 8)
    proposer = Lookup()
    proposer.start(batch_of([row]))
    proposer.propose(draft, [0])
    assert draft.tokens[0] == [*b"1", END]


@pytest.mark.parametrize(("longest", "shortest"), [(3, 0), (0, 0), (2, 3), (3, -1)])
def test_lookup_refuses(longest: int, shortest: int) -> None:
    with pytest.raises(ValueError, match=rf"shortest must be from 1 to longest \({longest}\), not {shortest}"):
        Lookup(longest, shortest)


LETTERS = st.lists(st.sampled_from(b"abc"), max_size=14)


@given(data=st.data())
def test_lookup_equals_a_search(data: st.DataObject) -> None:
    """Over texts that grow, rows that are dropped, and drafts that others began."""
    longest = data.draw(st.integers(1, 4))
    shortest, tries = data.draw(st.integers(1, longest)), data.draw(st.integers(1, 4))
    proposer = Lookup(longest, shortest, tries)
    patterns = data.draw(st.lists(st.sampled_from([None, "[abc]*", "(ab?c?){0,9}", "(a|bc)*"]), min_size=1, max_size=3))
    sequences = [
        sequence([ord("a"), *data.draw(LETTERS)], None if pattern is None else matcher_of(pattern))
        for pattern in patterns
    ]
    proposer.start(batch_of(sequences))
    batch: Any = proposer._batch
    for _ in range(3):
        draft = draft_for(sequences, [data.draw(st.integers(1, 6)) for _ in sequences])
        for row in range(len(sequences)):
            draft.extend(row, data.draw(LETTERS)[: data.draw(st.integers(0, 3))], "other")
        rows = draft.open()
        begun = [list(tokens) for tokens in draft.tokens]
        forks = [None if row.matcher is None else row.matcher.fork() for row in sequences]
        proposer.propose(draft, rows)
        for row in range(len(sequences)):
            text = sequences[row].tokens + begun[row]
            expected: list[int] = []
            for length in range(longest, shortest - 1, -1):
                ends = [
                    end
                    for end in range(len(sequences[row].tokens) - 1, length - 1, -1)
                    if length <= len(text) and text[end - length : end] == text[len(text) - length :]
                ]
                room = draft._room[row] - len(begun[row])
                found = [allowed_of(forks[row], text[end : end + room]) for end in ends[:tries]]
                expected = max(found, key=len, default=[])
                if expected:
                    break
            assert draft.tokens[row] == begun[row] + (expected if row in rows else [])
            draft.rollback(row)
        for row in sequences:
            for token in allowed_of(row.matcher, data.draw(LETTERS)):
                row.commit(token)
        if len(sequences) > 1 and data.draw(st.booleans()):
            kept = data.draw(st.permutations(range(len(sequences))))[: len(sequences) - 1]
            sequences = batch.sequences = [sequences[row] for row in kept]
            proposer.select(kept)
