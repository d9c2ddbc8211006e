"""Tokenizers by name: from a directory, a ``.gguf`` file or the Hugging Face hub, loaded with transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grammarspec.errors import needed_by

__all__ = ["configured_ends", "load_tokenizer"]


def load_tokenizer(path_or_name: str | Path, **options: Any) -> Any:
    """Load a tokenizer.

    Args:
        path_or_name: a directory, a ``.gguf`` file, or a name on the hub.
        options: passed on to ``AutoTokenizer.from_pretrained``.

    Returns:
        A tokenizer of transformers.

    Raises:
        OSError: there is no such tokenizer.
        MissingPackage: transformers is not installed.
    """
    with needed_by("loading a tokenizer"):
        from transformers import AutoTokenizer, PreTrainedTokenizerFast
    path = Path(path_or_name)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise FileNotFoundError(f"no such file: {path}")
        return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, **options)
    if (path / "tokenizer.json").is_file() and not options:
        # That file has everything. To find out for which class it was made would load torch.
        return PreTrainedTokenizerFast.from_pretrained(path)
    return AutoTokenizer.from_pretrained(path_or_name, **options)


def configured_ends(path_or_name: str | Path, **options: Any) -> list[int]:
    """The end-of-text tokens that a model's ``generation_config.json``, or else its ``config.json``, names.

    Args:
        path_or_name, options: as for :func:`load_tokenizer`. A ``.gguf`` file has no such configuration.
    """
    folder = Path(path_or_name)
    if folder.suffix == ".gguf":
        return []
    ends = None
    if folder.is_dir():
        for file in (folder / "generation_config.json", folder / "config.json"):
            if ends is None and file.is_file():
                ends = json.loads(file.read_text(encoding="utf-8")).get("eos_token_id")
    else:
        from transformers import GenerationConfig, PreTrainedConfig

        where = {key: options[key] for key in ("cache_dir", "local_files_only", "revision", "token") if key in options}
        try:
            ends = GenerationConfig.from_pretrained(path_or_name, **where).eos_token_id
        except OSError:
            try:
                ends = PreTrainedConfig.get_config_dict(path_or_name, **where)[0].get("eos_token_id")
            except OSError:
                ends = None
    if ends is None:
        return []
    return [ends] if isinstance(ends, int) else list(ends)
