"""The settings for vLLM."""

from __future__ import annotations

from dataclasses import dataclass

from grammarspec.integrations.settings import NAME, EngineSettings, SettingsError

__all__ = ["NAME", "Settings", "SettingsError"]


@dataclass(frozen=True, kw_only=True)
class Settings(EngineSettings):
    """Limits and bounds. Each can be given as an environment variable, such as ``GRAMMARSPEC_VLLM_MAX_STEPS``."""

    prefix = "GRAMMARSPEC_VLLM_"
