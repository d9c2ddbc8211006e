"""What can be set for vLLM."""

from __future__ import annotations

from dataclasses import dataclass

from grammarspec.integrations.settings import NAME, EngineSettings, SettingsError

__all__ = ["NAME", "Settings", "SettingsError"]


@dataclass(frozen=True, kw_only=True)
class Settings(EngineSettings):
    """Limits and bounds. Each can be given as an environment variable, such as ``GRAMMARSPEC_VLLM_MAX_STEPS``.

    Attributes:
        mask_threads: how many threads compute the masks of a step that are not known yet, where there are no drafts; 0:
            one for every two cores, and 8 at most.
    """

    prefix = "GRAMMARSPEC_VLLM_"

    mask_threads: int = 0
