"""The options of a model call: defaults are filled in, unknown names and values out of range refused, once a call."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

import grammarspec as gs
from grammarspec import models

pytest.importorskip("torch")

from grammarspec.models.options import CallOptions, Options, resolve


def test_defaults() -> None:
    found = resolve({})
    assert found == CallOptions(sampling=gs.Sampling())
    assert (found.tool_choice, found.parallel, found.reasoning, found.retries) == ("auto", True, "auto", 0)
    assert resolve({"sampling": None, "template": None, "system": None}) == found
    with pytest.raises(FrozenInstanceError):
        found.retries = 2  # type: ignore[misc]


def test_every_option_is_resolved() -> None:
    assert set(CallOptions.__dataclass_fields__) == Options.__optional_keys__
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


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"temperature": 1}, TypeError, "there is no option temperature"),
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
