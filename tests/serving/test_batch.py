"""Masks of a batch with drafts, errors that stay with their sequence, end tokens of one text, guarded matchers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grammarspec as gs
from grammarspec.serving import GuardedMatcher, fill_bitmasks

VOCABULARY = gs.Vocabulary.from_tokens(
    [*(bytes([value]) for value in range(256)), b"yes", b"no", None, None], eos_token_ids=[258]
)
END, STOP = 258, 259


def bits(row: Any) -> set[int]:
    return {token for token in range(VOCABULARY.size) if row[token // 32] >> (token % 32) & 1}


def compiled(grammar: gs.Grammar[Any], **limits: int) -> gs.Constraint:
    return gs.compile(grammar, VOCABULARY, limits=gs.Limits(**limits), cancel=gs.CancelToken())


def failing() -> gs.Matcher:
    """A matcher whose next mask hits a limit."""
    nested = gs.lark('start: a~1..1000\na: b~1..1000\nb: c~0..1000\nc: "x" | ","\n')
    matcher = compiled(nested, max_call_steps=3000).matcher()
    with pytest.raises(gs.LimitExceeded):
        _ = [matcher.accept_token(token) for token in b"," * 60]
    return matcher


@pytest.mark.parametrize("threads", [0, 1, 2])
@pytest.mark.parametrize("tensors", [False, True])
def test_rows_are_those_of_each_matcher(threads: int, tensors: bool) -> None:
    grammars = [gs.choice(["yes", "no"]), gs.regex("[a-c]{2,3}"), gs.regex("x?")]
    matchers = [compiled(grammar).matcher() for grammar in grammars]
    drafts = [[ord("y"), ord("e"), ord("x")], [], [ord("x"), END]]
    rows: Any = gs.allocate_bitmask(12, VOCABULARY.size)
    if tensors:
        rows = pytest.importorskip("torch").from_numpy(rows)
    found = fill_bitmasks(matchers, rows, rows_index=[8, 0, 4], drafts=drafts, threads=threads)
    assert found == [2, 0, 2]
    expected = gs.allocate_bitmask(4, VOCABULARY.size)
    for matcher, draft, first in zip(matchers, drafts, [8, 0, 4], strict=True):
        matcher.fill_draft_bitmasks(draft, expected)
        assert [bits(row) for row in rows[first : first + len(draft) + 1]] == [
            bits(row) for row in expected[: len(draft) + 1]
        ]
    assert not np.asarray(rows)[[1, 2, 3, 7]].any()
    assert fill_bitmasks(matchers, rows) == [0, 0, 0]
    assert [bits(rows[i]) for i in range(3)] == [bits(_row(matcher)) for matcher in matchers]


def _row(matcher: gs.Matcher) -> Any:
    row = gs.allocate_bitmask(1, VOCABULARY.size)
    matcher.fill_bitmask(row)
    return row[0]


def test_an_error_stays_with_its_sequence() -> None:
    good, bad = compiled(gs.choice(["yes"])).matcher(), failing()
    rows = gs.allocate_bitmask(5, VOCABULARY.size)
    found = fill_bitmasks([good, bad, good], rows, drafts=[[], [ord(",")] * 2, []])
    assert found[0] == found[2] == 0 and isinstance(found[1], gs.LimitExceeded)
    assert bits(rows[0]) == bits(rows[4]) == {ord("y"), 256}
    assert all(bits(row) == set(range(VOCABULARY.size)) for row in rows[1:4])


def test_a_cancelled_constraint_harms_no_other() -> None:
    cancel = gs.CancelToken()
    cancelled = gs.compile(gs.regex("[a-z]+(b|c)*x"), VOCABULARY, cancel=cancel).matcher()
    assert cancelled.accept_token(ord("q"))
    cancel.cancel()
    good = compiled(gs.choice(["yes"])).matcher()
    rows = gs.allocate_bitmask(2, VOCABULARY.size)
    found = fill_bitmasks([cancelled, good], rows)
    assert found[1] == 0 and bits(rows[1]) == {ord("y"), 256}


def test_wrong_arguments_of_a_batch() -> None:
    matcher = compiled(gs.choice(["yes"])).matcher()
    rows = gs.allocate_bitmask(2, VOCABULARY.size)
    assert fill_bitmasks([], rows) == []
    with pytest.raises(IndexError):
        fill_bitmasks([matcher], rows, drafts=[[1, 2]])
    with pytest.raises(IndexError):
        fill_bitmasks([matcher], rows, rows_index=[2])
    with pytest.raises(ValueError, match="as many"):
        fill_bitmasks([matcher], rows, rows_index=[0, 1])
    with pytest.raises(ValueError, match="as many"):
        fill_bitmasks([matcher], rows, rows_index=[0], drafts=[])
    with pytest.raises(ValueError, match="row 1 is to hold the masks of two sequences"):
        fill_bitmasks([matcher, matcher], rows, rows_index=[1, 0], drafts=[[], [1]])
    with pytest.raises(ValueError, match="narrow"):
        fill_bitmasks([matcher], rows[:, :3].copy())
    with pytest.raises(TypeError):
        fill_bitmasks([None], rows)  # type: ignore[list-item]
    with pytest.raises(TypeError):
        fill_bitmasks([matcher], rows, drafts=[["a"]])  # type: ignore[list-item]
    with pytest.raises(OverflowError):
        fill_bitmasks([matcher], rows, rows_index=[-1])


# ---------------------------------------------------------------------- tokens
@pytest.mark.parametrize("token", [-1, -(2**80), 2**31, 2**32 - 1, 2**32, 2**80, 260])
def test_numbers_that_are_no_token_are_not_allowed(token: int) -> None:
    constraint = compiled(gs.regex(".*"))
    matcher = constraint.matcher()
    assert not matcher.accept_token(token)
    assert matcher.accept_tokens([97, token, 97]) == 1
    assert matcher.validate_tokens([97, token]) == 1
    assert matcher.fill_draft_bitmasks([97, token], gs.allocate_bitmask(3, VOCABULARY.size)) == 1
    assert constraint.step(constraint.start, token) is None
    with pytest.raises(TypeError):
        matcher.accept_token(1.5)  # type: ignore[arg-type]


def test_end_tokens_of_one_text() -> None:
    constraint = compiled(gs.choice(["yes", "yesno"]))
    matcher, plain = constraint.matcher(end_token_ids=[STOP]), constraint.matcher()
    assert bits(_row(matcher)) == {ord("y"), 256} and not matcher.accept_token(STOP)
    assert matcher.accept_token(256) and plain.accept_token(256)
    assert bits(_row(matcher)) == {ord("n"), 257, END, STOP} and STOP not in bits(_row(plain))
    assert matcher.validate_tokens([STOP, STOP]) == 1
    rows = gs.allocate_bitmask(3, VOCABULARY.size)
    assert matcher.fill_draft_bitmasks([STOP, 97], rows) == 1
    assert bits(rows[0]) == {ord("n"), 257, END, STOP} and not bits(rows[1]) and not bits(rows[2])
    fork = matcher.fork()
    assert fork.accept_token(STOP) and fork.is_terminated and not matcher.is_terminated
    fork.rollback(1)
    assert fork.accept_token(END) and fork.is_terminated
    assert not plain.accept_token(STOP)
    with pytest.raises(ValueError, match="end_token_ids"):
        constraint.matcher(end_token_ids=[260])
    with pytest.raises(ValueError, match="end_token_ids"):
        constraint.matcher(end_token_ids=[-1])


def test_an_end_token_that_is_text_ends_the_text_only() -> None:
    matcher = compiled(gs.choice(["yes", "yesno"])).matcher(end_token_ids=[257, ord("y")])
    assert bits(_row(matcher)) == {256}  # "y" would end the text, which must not end yet
    assert not matcher.accept_token(ord("y"))
    assert matcher.accept_token(256)
    assert bits(_row(matcher)) == {ord("n"), END, 257, ord("y")}
    assert matcher.accept_token(257) and matcher.is_terminated


def test_end_tokens_that_leave_no_way_on_are_an_error() -> None:
    matcher = compiled(gs.choice(["ab"])).matcher(end_token_ids=[ord("a")])
    rows = gs.allocate_bitmask(1, VOCABULARY.size)
    with pytest.raises(gs.Unsatisfiable, match="end this text"):
        matcher.fill_bitmask(rows)
    (found,) = fill_bitmasks([matcher], rows)
    assert isinstance(found, gs.Unsatisfiable) and bits(rows[0]) == set(range(VOCABULARY.size))


# ---------------------------------------------------------------------- guarded
def test_a_guarded_matcher_follows_a_text() -> None:
    matcher = GuardedMatcher(compiled(gs.choice(["yes", "no"])).matcher())
    assert matcher.validate_tokens([ord("n"), ord("o"), 97]) == [ord("n"), ord("o")]
    assert matcher.accept_tokens([ord("n"), ord("o")]) and not matcher.is_terminated
    assert not matcher.accept_tokens([97]) and matcher.failure is None
    assert matcher.accept_tokens([END, 97, 98]) and matcher.is_terminated  # what comes behind the end is passed over
    matcher.rollback(1)
    assert not matcher.is_terminated
    matcher.rollback(100)
    assert matcher.accept_tokens([256])
    matcher.reset()
    assert matcher.accept_tokens([257])


def test_a_guarded_matcher_keeps_its_failure() -> None:
    told: list[BaseException] = []
    inner = failing()
    inner.reset()
    matcher = GuardedMatcher(inner, told.append)
    rows = gs.allocate_bitmask(1, VOCABULARY.size)
    accepted = 0
    while matcher.accept_tokens(b","):
        accepted += 1
    assert isinstance(matcher.failure, gs.LimitExceeded) and told == [matcher.failure]
    matcher.fill_bitmask(rows)
    assert bits(rows[0]) == set(range(VOCABULARY.size))
    assert not matcher.accept_tokens(b",") and matcher.validate_tokens(b",") == []
    matcher.rollback(0)
    assert matcher.failure is not None
    matcher.rollback(accepted - 1)
    assert matcher.failure is None and matcher.validate_tokens(b",") == [ord(",")]
    matcher.fill_bitmask(rows)
    assert bits(rows[0]) < set(range(VOCABULARY.size))
    matcher.reset()
    assert matcher.accept_tokens(b",")


def test_a_guarded_matcher_keeps_failures_of_forced_tokens() -> None:
    class Panics:
        is_terminated = False

        def forced_tokens(self) -> list[int]:
            raise BaseException("a panic of the compiler")

    told: list[BaseException] = []
    matcher = GuardedMatcher(Panics(), told.append)  # type: ignore[arg-type]
    assert matcher.forced_tokens() == [] == matcher.forced_tokens()
    assert [str(one) for one in told] == ["a panic of the compiler"] and matcher.failure is told[0]
    sound = GuardedMatcher(compiled(gs.literal("ab")).matcher())
    assert sound.forced_tokens() == [97, 98]
    assert sound.accept_tokens([*b"ab", *VOCABULARY.eos_token_ids]) and sound.forced_tokens() == []


def test_a_guarded_matcher_writes_tensors_when_it_fails() -> None:
    torch = pytest.importorskip("torch")
    rows = torch.zeros(2, (VOCABULARY.size + 31) // 32, dtype=torch.int32)
    matcher = GuardedMatcher(compiled(gs.choice(["ab"])).matcher(end_token_ids=[ord("a")]))
    matcher.fill_bitmask(rows, 1)
    assert isinstance(matcher.failure, gs.Unsatisfiable)
    assert (rows[1] == -1).all() and (rows[0] == 0).all()
    assert not matcher.accept_tokens([ord("a")])
