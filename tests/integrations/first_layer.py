"""A copy of a model that has its first layer only: ``python -m tests.integrations.first_layer MODEL_DIRECTORY COPY``.

Its texts mean nothing, but its tokens cost little: an engine that serves it waits for grammars rather than for the
model. It runs in vLLM's environment, or in any other with transformers.
"""

from __future__ import annotations

import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(directory: str, copy: str) -> None:
    """Write the model and its tokenizer into the directory of the copy."""
    model = AutoModelForCausalLM.from_pretrained(directory, num_hidden_layers=1, dtype=torch.float32)
    model.save_pretrained(copy)
    AutoTokenizer.from_pretrained(directory).save_pretrained(copy)


if __name__ == "__main__":
    main(*sys.argv[1:])
