"""The options of a model call: defaults are filled in, unknown names and values out of range refused, once a call."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

import grammarspec as gs
from grammarspec import models

pytest.importorskip("torch")

from grammarspec.models.options import CallOptions, Options, override, resolve


def test_defaults() -> None:
    found = resolve({})
    assert found == CallOptions(sampling=gs.Sampling())
    assert (found.tool_choice, found.parallel, found.reasoning, found.retries) == ("auto", True, "auto", 0)
    assert resolve({"sampling": None, "template": None, "system": None}) == found
    with pytest.raises(FrozenInstanceError):
        found.retries = 2  # type: ignore[misc]


def test_every_option_is_resolved() -> None:
    fields = set(gs.Sampling.__dataclass_fields__)
    # a choice of tools is resolved into one word and the tools that may be called
    assert (set(CallOptions.__dataclass_fields__) | fields) - {"allowed_tools"} == Options.__optional_keys__
    kinds = {name: kind for name, kind in Options.__annotations__.items() if name in fields}
    declared = {name: field.type for name, field in gs.Sampling.__dataclass_fields__.items()}
    assert {name: getattr(kind, "__forward_arg__", kind) for name, kind in kinds.items()} == declared
    given: Any = {
        "sampling": gs.Sampling(seed=1),
        "system": "Be brief.",
        "template": {"a": 1},
        "reasoning": False,
        "max_reasoning_chars": 0,
        "retries": 2,
        "tool_choice": {"type": "function", "function": {"name": "ping"}},
        "parallel": False,
        "tool_format": "json",
    }
    found = resolve(given, ["ping"])
    assert {name: getattr(found, name) for name in given} == {**given, "tool_choice": "ping"}
    some = {"mode": "required", "tools": [given["tool_choice"]]}
    found = resolve({"tool_choice": {"type": "allowed_tools", "allowed_tools": some}}, ["pong", "ping"])
    assert (found.tool_choice, found.allowed_tools) == ("required", ("ping",))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"temprature": 1}, TypeError, "there is no option temprature\n  hint: did you mean temperature?"),
        ({"temperature": "hot"}, TypeError, "temperature must be a number, not 'hot'"),
        ({"top_p": 2}, ValueError, "top_p must be above 0 and at most 1, not 2"),
        ({"seed": 1, "sampling": gs.Sampling()}, TypeError, "sampling= and seed are given"),
        ({"retrys": 1}, TypeError, "did you mean retries?"),
        ({"tools": []}, TypeError, "tools cannot be given here"),
        ({"sampling": {"seed": 1}}, TypeError, "sampling must be a gs.Sampling"),
        ({"reasoning": "yes"}, ValueError, "reasoning must be 'auto', True or False, not 'yes'"),
        ({"max_reasoning_chars": -1}, ValueError, "max_reasoning_chars must be at least 0, not -1"),
        ({"retries": -1}, ValueError, "retries=-1 must be at least 0"),
        ({"tool_choice": "required"}, ValueError, "of a tool, of which there are none"),
        ({"tool_choice": "pong"}, ValueError, "must be 'auto', 'required', 'none' or the name"),
        ({"tool_choice": {"type": "web_search"}}, ValueError, "a tool is chosen by its name or"),
    ],
)
def test_refused(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("?", r"\?")):
        resolve(options)


def test_the_package_offers_its_public_names() -> None:
    for name in models.__all__:
        assert getattr(models, name) is not None, name
    assert set(models.__all__) <= set(dir(models))
    with pytest.raises(AttributeError, match="no_such_name"):
        models.no_such_name  # noqa: B018


def test_fields_of_a_sampling_are_options() -> None:
    fields: Any = {"temperature": 0.5, "max_tokens": 7, "on_limit": "close", "stop": ["a"]}
    assert resolve(fields).sampling == gs.Sampling(**fields)
    assert resolve({"sampling": None, "seed": 3}).sampling == gs.Sampling(seed=3)


def test_newer_options() -> None:
    seeded, warm = gs.Sampling(seed=1), gs.Sampling(seed=1, temperature=0.5)
    assert override({"sampling": seeded, "retries": 1}, {"temperature": 0.5}) == {"sampling": warm, "retries": 1}
    assert override({"temperature": 0.5, "retries": 1}, {"sampling": seeded}) == {"sampling": seeded, "retries": 1}
    assert override({"temperature": 0.5}, {"seed": 1, "temperature": 1.0}) == {"seed": 1, "temperature": 1.0}
    assert override({"sampling": seeded}, {"sampling": None}) == {"sampling": None}
    assert override({"sampling": None}, {"seed": 1}) == {"sampling": None, "seed": 1}
    with pytest.raises(ValueError, match="temperature must be"):
        override({"sampling": seeded}, {"temperature": -1.0})
