"""Several proposers: the first with something to say is heard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from grammarspec.decoding.batch import Batch  # noqa: E402
from grammarspec.decoding.draft import Draft  # noqa: E402
from grammarspec.decoding.proposers.protocol import propose  # noqa: E402
from tests.oracles.drafting import (  # noqa: E402
    END,
    draft_for,
    matcher_of,
    sequence,
)


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


class Scripted:
    """Says what it was told to say behind a text."""

    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, name: str, script: Callable[[int, list[int]], Sequence[int]]) -> None:
        self.name = name
        self._script = script
        self.asked: list[list[int]] = []

    def start(self, batch: Batch) -> None: ...

    def select(self, rows: Sequence[int]) -> None: ...

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None: ...

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        self.asked.append(sorted(rows))
        for row in rows:
            draft.extend(row, list(self._script(row, draft.tokens[row])), self.name)


def test_the_first_proposer_with_something_to_say_is_heard() -> None:
    """At each place anew."""
    one = Scripted("one", lambda row, text: b"1" if len(text) == row else b"")
    two = Scripted("two", lambda row, text: b"22" if len(text) < 3 else b"")
    three = Scripted("three", lambda row, text: b"" if row == 2 else b"3")
    draft = draft_for([sequence(b"a"), sequence(b"b"), sequence(b"c")], [4, 5, 6])
    propose([one, two, three], draft)
    assert [bytes(tokens) for tokens in draft.tokens] == [b"1223", b"22223", b"221"]
    assert draft.sources == [["one", "two", "two", "three"], ["two"] * 4 + ["three"], ["two", "two", "one"]]
    # Only for rows that nobody before has said anything of, and only as long as there is room.
    assert one.asked == [[0, 1, 2]] * 3
    assert two.asked == [[1, 2], [0, 1], [0, 1, 2]]
    assert three.asked == [[0, 1, 2]]


def test_no_proposer_is_asked_where_there_is_no_room() -> None:
    everything = Scripted("everything", lambda row, text: b"xyz")
    nothing = Scripted("nothing", lambda row, text: b"")
    draft = draft_for([sequence(b"a"), sequence(b"b"), sequence(b"c")], [0, 3, 4])
    propose([nothing, everything, nothing], draft)
    assert [bytes(tokens) for tokens in draft.tokens] == [b"", b"xyz", b"xyzx"]
    assert everything.asked == [[1, 2], [2]]
    draft = draft_for([sequence(b"a")], [3])
    propose([], draft)
    propose([nothing], draft)
    assert draft.tokens == [[]]


def test_what_is_refused_is_not_heard() -> None:
    """Certain tokens that the constraint does not allow are not drafted; the next proposer is asked."""
    wrong = Scripted("wrong", lambda row, text: b"z")
    right = Scripted("right", lambda row, text: b"ab")
    draft = draft_for([sequence([0], matcher_of("(ab)*c?"))], [5])
    propose([wrong, right], draft)
    assert draft.sources == [["right"] * 5]
    assert bytes(draft.tokens[0]) == b"ababa"
    ends = Scripted("ends", lambda row, text: [*b"ab", END, ord("a")])
    draft = draft_for([sequence([0], matcher_of("(ab)*c?")), sequence(b"a")], [8, 8])
    propose([ends, right], draft)
    assert draft.tokens == [[*b"ab", END]] * 2


@given(data=st.data())
def test_rows_are_drafted_for_each_on_its_own(data: st.DataObject) -> None:
    """A row's draft is what it would be if it were alone."""
    rows = data.draw(st.integers(1, 3))
    table = data.draw(
        st.lists(
            st.dictionaries(st.tuples(st.integers(0, rows - 1), st.integers(0, 5)), st.binary(min_size=1, max_size=3)),
            max_size=3,
        )
    )
    rooms = data.draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows))

    def scripted(number: int) -> Scripted:
        return Scripted(str(number), lambda row, text: table[number].get((row, len(text)), b""))

    draft = draft_for([sequence(b"a")] * rows, [*rooms])
    propose([scripted(number) for number in range(len(table))], draft)
    for row, room in enumerate(rooms):
        expected: list[int] = []
        while len(expected) < room:
            said = next((entry[row, len(expected)] for entry in table if (row, len(expected)) in entry), b"")
            if not said:
                break
            expected += said[: room - len(expected)]
        assert draft.tokens[row] == expected
