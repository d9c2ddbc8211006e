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
    with pytest.raises(gs.LimitExceeded):
        budget.most(lambda: budget.spend(76))
    budget.spend(25)
    budget.most(lambda: budget.spend(0))
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
