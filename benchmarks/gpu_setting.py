"""What the benchmarks on a GPU share: models of random weights, a made-up vocabulary, and the results of a run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import transformers

import grammarspec as gs

SHAPES: dict[str, dict[str, int]] = {
    "8B": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_key_value_heads": 8},
    "1B": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_key_value_heads": 8},
    "150M": {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 4, "num_key_value_heads": 8},
}
DRAFT = "150M"
"""The shape of the draft model: about as large as the heads that draft for models of these sizes."""

TOY: dict[str, dict[str, int]] = {
    "toy": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_key_value_heads": 2},
    "toy draft": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_key_value_heads": 2},
}


@dataclass
class Run:
    """What is measured, where, and what came of it.

    Attributes:
        device: where models run.
        vocabulary: the made-up tokens.
        constraint: texts of many records.
        path: the JSON file.
        deadline: in seconds of ``perf_counter``; what does not fit is left out, and named.
        results: by section.
    """

    device: torch.device
    vocabulary: gs.Vocabulary
    constraint: gs.Constraint
    path: Path
    deadline: float
    results: dict[str, Any] = field(default_factory=dict)

    def flush(self) -> None:
        """Write what there is."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.results, indent=1) + "\n")

    def synchronise(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @contextmanager
    def section(self, name: str) -> Iterator[dict[str, Any]]:
        """A section of the results: it is written when it ends, an error within it as well."""
        found: dict[str, Any] = {}
        self.results[name] = found
        begin = perf_counter()
        try:
            yield found
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            found["seconds"] = round(perf_counter() - begin, 1)
            self.flush()
            print(f"{name}: {json.dumps(found)[:300]}", flush=True)


def made_up_vocabulary(size: int) -> gs.Vocabulary:
    """Single bytes, parts of JSON, and words of syllables: as many tokens as that; the last one ends texts."""
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in "aeiou"]
    words = ("".join(parts) for count in (1, 2, 3) for parts in itertools.product(syllables, repeat=count))
    json_parts = [
        '{"',
        '":',
        '": "',
        '", "',
        '"}',
        "}\n",
        "name",
        "age",
        "city",
        '"name',
        '"age',
        '"city',
        ", ",
        '{"name',
    ]
    texts = [bytes([value]) for value in range(256)] + [part.encode() for part in json_parts]
    texts += [word.encode() for word in itertools.islice(words, size - 1 - len(texts))]
    return gs.Vocabulary.from_tokens([*texts, None], [len(texts)], size=size)


def llama(shape: dict[str, int], width: int, device: torch.device, context: int = 4096) -> Any:
    """A Llama with random weights, in bf16 on a GPU and in float32 elsewhere, whose texts do not end by themselves."""
    heads = max(shape["hidden_size"] // 128, shape["num_key_value_heads"])
    config = transformers.LlamaConfig(
        vocab_size=width,
        num_attention_heads=heads,
        max_position_embeddings=context,
        **shape,  # type: ignore[arg-type]
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if device.type == "cuda" else torch.float32)
    try:
        with device:
            model = transformers.LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)
    # The logit of the token that ends texts is 0, and so never the greatest of a whole vocabulary.
    model.lm_head.weight.data[-1] = 0
    return model
