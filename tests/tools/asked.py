"""Tiny models of the families: random weights, a chat template with tools, its markers as special tokens or as text."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import grammarspec as gs
from grammarspec.models.loading import load_model
from grammarspec.tools.formats import FORMATS
from tests.tools.rendering import TEMPLATES

CONTEXT = 1 << 14


def tiny(directory: Path, template: Any, special: tuple[str, ...] = (), ends: tuple[str, ...] = ()) -> gs.Model:
    """The model of a directory with this chat template, these special tokens, and those of them that end texts."""
    model, tokenizer = load_model(directory)
    tokenizer.chat_template = template
    tokenizer.add_special_tokens({"additional_special_tokens": [*special]})
    model.resize_token_embeddings(264 + len(special), mean_resizing=False)
    model.config.max_position_embeddings = CONTEXT
    model.generation_config.eos_token_id = [256, *map(tokenizer.convert_tokens_to_ids, ends)]
    return gs.Model(model, tokenizer)


def of_family(directory: Path, name: str, *, special: bool) -> gs.Model:
    """A model of the family of a format."""
    form = FORMATS[name]
    markers = tuple(dict.fromkeys((*form.markers, *chain.from_iterable(form.frames)))) if special else ()
    ends = ("<|call|>", "<|return|>") if special and name == "harmony" else ()
    return tiny(directory, (TEMPLATES / f"{name}.jinja").read_text(), markers, ends)
