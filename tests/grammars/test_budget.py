"""What calls of front-ends may use: steps, time, and a token that cancels them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import grammarspec as gs
from grammarspec.grammars.budget import Budget

CALLS: dict[str, Callable[..., Any]] = {
    "json_schema": lambda **more: gs.json_schema({"anyOf": [{"type": "string"}, {"minimum": 3}]}, **more),
    "regex": lambda **more: gs.regex("a(b|cd)*", **more),
    "lark": lambda **more: gs.lark('start: "a" | "b" start', **more),
    "grammar": lambda **more: gs.grammar(list[int], **more),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_cancelled_call_ends(call: Callable[..., Any]) -> None:
    cancel = gs.CancelToken()
    assert not cancel.is_cancelled
    call(cancel=cancel)
    cancel.cancel()
    assert cancel.is_cancelled
    with pytest.raises(gs.Cancelled):
        call(cancel=cancel)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_call_ends_at_its_deadline(call: Callable[..., Any]) -> None:
    call(limits=gs.Limits(timeout=60))
    with pytest.raises(gs.LimitExceeded, match="timeout"):
        call(limits=gs.Limits(timeout=1e-9))


def test_steps_end_and_the_place_is_named() -> None:
    budget = Budget(gs.Limits(max_steps=100))
    budget.spend(60)
    budget.spend(40)
    assert not budget.is_used_up
    with pytest.raises(gs.LimitExceeded, match=r"max_steps \(limit 100\)") as caught:
        budget.spend(1, "#/a")
    assert caught.value.where == "#/a"
    assert budget.is_used_up
    with pytest.raises(gs.LimitExceeded):  # whoever goes on in spite of the error gets it again
        budget.spend(1)


def test_a_large_declaration_has_further_steps() -> None:
    budget = Budget(gs.Limits(max_steps=100_000))
    budget.allow(lambda: 3)
    budget.spend(100_000 + 3 * 3_000)
    with pytest.raises(gs.LimitExceeded):
        budget.spend(1)


def test_further_steps_are_half_of_the_limit_at_most() -> None:
    budget = Budget(gs.Limits(max_steps=100_000))
    for steps in (120_000, 30_000):
        budget.allow(lambda: 1_000_000)
        budget.spend(steps)
    budget.allow(lambda: 1_000_000)
    with pytest.raises(gs.LimitExceeded):
        budget.spend(1)


def test_what_is_kept_for_later_is_there_later() -> None:
    budget = Budget(gs.Limits(max_steps=100))
    budget.set_aside()
    with pytest.raises(gs.LimitExceeded):
        budget.spend(76)
    budget.take_back()
    assert not budget.is_used_up
    budget.spend(25)
    budget.set_aside()
    budget.take_back()
    with pytest.raises(gs.LimitExceeded):
        budget.spend(1)


def test_what_is_kept_twice_is_there_later() -> None:
    budget = Budget(gs.Limits(max_steps=1600))
    budget.spend(0)
    budget.set_aside()
    budget.set_aside()
    budget.spend(900)
    with pytest.raises(gs.LimitExceeded):
        budget.spend(1)
    budget.take_back()
    budget.spend(700)
    with pytest.raises(gs.LimitExceeded):
        budget.spend(1)


@pytest.mark.parametrize("watched", [{"timeout": 600}, {}], ids=str)
def test_watching_the_clock_changes_no_count(watched: dict[str, Any]) -> None:
    budget = Budget(gs.Limits(max_steps=100_000, **watched), gs.CancelToken())
    for _ in range(100):
        budget.spend(1_000)
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        budget.spend(1)


CHOICES = [{"anyOf": [{"properties": {"a": {"const": i}}}, {"minProperties": i}]} for i in range(20)]


def test_a_schema_may_ask_for_more_steps() -> None:
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        gs.json_schema({"allOf": CHOICES}, limits=gs.Limits(max_steps=1_000))
    gs.json_schema({"allOf": CHOICES[:3]}, limits=gs.Limits(max_steps=100_000))


def test_a_report_names_the_limit() -> None:
    report = gs.check({"allOf": CHOICES}, limits=gs.Limits(max_steps=1_000))
    assert [entry.detail for entry in report.of("refused")] == ["limit exceeded: max_steps (limit 1000)"]
    cancel = gs.CancelToken()
    cancel.cancel()
    with pytest.raises(gs.Cancelled):
        gs.check({"allOf": CHOICES}, cancel=cancel)


TIGHT = [
    (
        lambda: gs.lark('start: "x" WORD\nWORD: /(?=.*q)(?=.*x{99})[a-z]+/'),
        "max_steps",
        300,
        "the rule start of gs.lark(",
    ),
    (
        lambda: gs.lark('start: "x" WORD\nWORD: /(?=.*q)(?=.*x{99})[a-z]+/'),
        "max_memory",
        9_999,
        "the rule start of gs.lark(",
    ),
    (lambda: "<" + gs.regex("(?=.*q)[a-z]{9}"), "max_steps", 30, "the rule start of gs.literal('<') + gs.regex("),
    (lambda: gs.regex("(?:a|b{9})*"), "max_depth", 1, "gs.regex("),
]


@pytest.mark.parametrize(("make", "limit", "value", "where"), TIGHT)
def test_the_error_of_a_compile_says_which_limit_and_where(make: Any, limit: str, value: int, where: str) -> None:
    with pytest.raises(gs.LimitExceeded) as caught:
        gs.compile(make(), gs.Vocabulary.bytes(), limits=gs.Limits(**{limit: value}))
    assert caught.value.message.startswith(f"limit exceeded: {limit}")
    assert caught.value.message.endswith(f"(limit {value})")  # as the caller gave it
    assert caught.value.where.startswith(where)
    assert caught.value.hint == f"make the grammar simpler, or give limits=gs.Limits({limit}=...)"


def test_the_place_in_a_large_grammar_is_short() -> None:
    grammar = gs.json_schema({"items": {"type": "string"}, "title": "a" * 999})
    with pytest.raises(gs.LimitExceeded) as caught:
        gs.compile(grammar, gs.Vocabulary.bytes(), limits=gs.Limits(max_depth=1))
    assert len(caught.value.where) < 200


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_what_is_cancelled_already_is_not_compiled(call: Callable[..., Any]) -> None:
    grammar, cancel = call(), gs.CancelToken()
    gs.compile(grammar, gs.Vocabulary.bytes(), cancel=cancel)
    cancel.cancel()
    with pytest.raises(gs.Cancelled):
        gs.compile(grammar, gs.Vocabulary.bytes(), cancel=cancel)
    with pytest.raises(TypeError, match=r"cancel must be a gs\.CancelToken, not True"):
        gs.compile(grammar, gs.Vocabulary.bytes(), cancel=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_states", "max_memory", "max_steps", "max_call_steps", "max_depth"])
@pytest.mark.parametrize("value", [1.5, "9", True, [9], 0, -1, 2**63, 2**200], ids=repr)
def test_wrong_counts_are_refused_by_name(name: str, value: Any) -> None:
    kind = ValueError if type(value) is int else TypeError
    with pytest.raises(kind, match=f"^{name} must be ") as caught:
        gs.Limits(**{name: value})
    if kind is TypeError:
        assert str(caught.value).endswith(f", not {value!r}")


@pytest.mark.parametrize("value", ["9", True, [9], 0, -1, 10**400, float("nan")], ids=repr)
def test_wrong_times_are_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError if isinstance(value, (str, bool, list)) else ValueError, match=r"^timeout must be "):
        gs.Limits(timeout=value)


def test_the_largest_limits_are_taken() -> None:
    most = 2**63 - 1
    counts = dict.fromkeys(["max_states", "max_memory", "max_steps", "max_call_steps", "max_depth"], most)
    for timeout in (1e300, float("inf"), most):
        constraint = gs.compile(gs.regex("ab*"), gs.Vocabulary.bytes(), limits=gs.Limits(timeout=timeout, **counts))
        assert constraint.matcher().accept_tokens(b"abb") == 3
