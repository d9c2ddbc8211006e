"""The settings of adapters: every value is checked, where it is given and where it is read from the environment."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

import pytest

from grammarspec.integrations.settings import EngineSettings, SettingsError
from grammarspec.integrations.sglang.settings import Settings as OfSGLang
from grammarspec.integrations.vllm.settings import Settings as OfVLLM

ADAPTERS = [OfSGLang, OfVLLM]
NUMBERS = [field.name for field in fields(EngineSettings) if field.name != "cache_directory"]


@pytest.mark.parametrize("settings", ADAPTERS)
@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_is_checked(settings: type[EngineSettings], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    least = 0 if name in ("cache_bytes", "mask_threads") else 1
    assert getattr(settings(**{name: least}), name) == least  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"{name} must be at least {least}, not {least - 1}"):
        settings(**{name: least - 1})  # type: ignore[arg-type]
    for kind in ("3", 1.5, None, True):
        with pytest.raises(TypeError, match=f"{name} must be a whole number"):
            settings(**{name: kind})  # type: ignore[arg-type]
    variable = settings.prefix + name.upper()
    for wrong, said in (
        (str(least - 1), f"must be at least {least}, not {least - 1}"),
        ("many", "must be a whole number, not 'many'"),
        ("", "must be a whole number"),
        ("1.5", "must be a whole number"),
        ("9" * 5000, "must be a whole number"),
    ):
        monkeypatch.setenv(variable, wrong)
        with pytest.raises(SettingsError, match=f"^{variable} {said}"):
            settings.of_environment()
    monkeypatch.setenv(variable, " 7 ")
    assert getattr(settings.of_environment(), name) == 7


@pytest.mark.parametrize("settings", ADAPTERS)
def test_settings_come_back_from_the_environment(
    settings: type[EngineSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {name: 11 + at for at, name in enumerate(NUMBERS)}
    made = settings(**given, cache_directory="a folder")
    for field in fields(settings):
        monkeypatch.setenv(settings.prefix + field.name.upper(), "1")  # is put back at the end
    made.export()
    assert settings.of_environment() == made
    with pytest.raises(TypeError, match="cache_directory must be a string"):
        settings(cache_directory=None)  # type: ignore[arg-type]


def test_the_threads_for_masks_have_a_default() -> None:
    assert OfVLLM(mask_threads=5).mask_thread_count == 5
    assert OfVLLM().mask_thread_count == max(1, min((os.cpu_count() or 1) // 2, 8))


@pytest.mark.parametrize("settings", ADAPTERS)
def test_unknown_variables_are_refused(settings: type[EngineSettings], monkeypatch: pytest.MonkeyPatch) -> None:
    for field in fields(settings):
        monkeypatch.delenv(settings.prefix + field.name.upper(), raising=False)
    settings.check_environment()
    monkeypatch.setenv(settings.prefix + "MAX_STEPS", "5")
    monkeypatch.setenv("GRAMMARSPEC_ANOTHER_MAX_STEP", "5")  # another prefix
    settings.check_environment()
    monkeypatch.setenv(settings.prefix + "MAX_STEP", "5")
    with pytest.raises(SettingsError) as error:
        settings.check_environment()
    said = str(error.value)
    assert said.startswith(f"{settings.prefix}MAX_STEP is not a setting of grammarspec. Did you mean ")
    assert all(settings.prefix + field.name.upper() in said for field in fields(settings))
    monkeypatch.delenv(settings.prefix + "MAX_STEP")
    monkeypatch.setenv(settings.prefix, "1")
    with pytest.raises(SettingsError, match="is not a setting"):
        settings.check_environment()
    monkeypatch.delenv(settings.prefix)
    monkeypatch.setenv(settings.prefix + "MAX_STEPS", "none")
    with pytest.raises(SettingsError, match="MAX_STEPS must be a whole number"):
        settings.check_environment()
