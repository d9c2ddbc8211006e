"""The settings of a server: every number is checked when they are made."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("transformers")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from grammarspec.server import Settings, serve

WHOLE = ("max_batch", "max_waiting", "max_tokens", "max_body", "cache_bytes")


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers(name: str) -> None:
    least = 0 if name == "cache_bytes" else 1
    assert getattr(Settings(name="x", **{name: least}), name) == least
    for wrong in (least - 1, -5):
        with pytest.raises(ValueError, match=f"{name} must be at least {least}, not {wrong}"):
            Settings(name="x", **{name: wrong})
    for kind in (1.5, "3", None, True):
        with pytest.raises(TypeError, match=f"{name} must be a whole number"):
            Settings(name="x", **{name: kind})


def test_the_time_for_a_body() -> None:
    assert Settings(name="x", body_timeout=inf).body_timeout == inf
    for wrong in (-1, 0, 0.0, nan, -inf):
        with pytest.raises(ValueError, match="body_timeout must be above 0"):
            Settings(name="x", body_timeout=wrong)
    for kind in ("3", None, True):
        with pytest.raises(TypeError, match="body_timeout must be a number"):
            Settings(name="x", body_timeout=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(("options", "said"), [
    ({"port": -1}, "port must be at least 0"),
    ({"port": 1 << 16}, "port must be at most 65535"),
    ({"port": "80"}, "port must be a whole number"),
    ({"grace": -1}, "grace must be at least 0"),
])  # fmt: skip
def test_the_address_and_the_grace_period(options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        serve(None, Settings(name="x"), **options)  # type: ignore[arg-type]  # no model is looked at
