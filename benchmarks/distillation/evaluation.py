"""What a head has learnt, measured on texts that it was not trained on: acceptance of its drafts by kind of text."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from benchmarks.distillation.texts import Text, bits, read_texts, side_by_side
from benchmarks.distillation.training import save, steps_of
from grammarspec.decoding.proposers.eagle import Eagle
from grammarspec.decoding.proposers.eagle_head import EagleHead

__all__ = ["evaluate"]


@torch.no_grad()
def measure(
    head: EagleHead, model: Any, tokens: torch.Tensor, texts: Sequence[Text], table: torch.Tensor, depth: int = 4
) -> dict[str, Any]:
    """What is accepted of the head's drafts where the grammar leaves a choice.

    Args:
        head: the head.
        model: the target.
        tokens: ``int64[selected]``, the tokens that the head can draft.
        texts: the texts.
        table: ``int32[masks, words]``, the masks.
        depth: the number of draft tokens.

    Returns:
        by kind of text, and for all: the acceptance at temperature 1, the mean of ``sum(min(p, q))``, and how often the
        most probable tokens are the same, each for drafts of one to ``depth`` tokens of the text itself; and the number
        of tokens.
    """
    rows = model.get_output_embeddings().weight.detach()
    every = torch.arange(len(rows))
    free = bits(table, every).sum(-1) > 1
    sums: dict[str, torch.Tensor] = {}
    order = sorted(texts, key=lambda text: len(text.tokens))
    for place in range(0, len(order), 8):
        part = order[place : place + 8]
        examples = side_by_side(part, free)
        counted = examples.counted.clone()
        for row, text in enumerate(part):
            counted[row, : max(text.prompt - 1, depth)] = False  # nothing is drafted before the model's first token
        if not counted.any():
            continue
        used, numbers = examples.masks[counted].unique(return_inverse=True)
        mask = bits(table[used], every)[numbers]
        p = functional.linear(examples.following[counted], rows).masked_fill(~mask, -torch.inf).softmax(-1)
        kinds = [kind for kind, line in zip(examples.kinds, counted, strict=True) for _ in range(int(line.sum()))]
        embedded = model.get_input_embeddings()(examples.tokens).float()
        figures = []
        for found in steps_of(head, embedded, examples.hidden, depth):
            scores = functional.linear(found[counted], rows[tokens]).masked_fill(~mask[:, tokens], -torch.inf)
            some = scores.softmax(-1).nan_to_num()  # where the head knows none of the tokens
            accepted = torch.minimum(p[:, tokens], some).sum(-1)
            same = tokens[scores.argmax(-1)] == p.argmax(-1)
            figures += [accepted, same.float() * (some.sum(-1) > 0)]
        lines = torch.stack([*figures, torch.ones(len(p))], -1).double()
        for kind in {*kinds}:
            chosen = torch.tensor([each == kind for each in kinds])
            sums[kind] = sums.get(kind, 0) + lines[chosen].sum(0)
    sums["all"] = torch.stack([*sums.values()]).sum(0)
    result = {}
    for kind, line in sorted(sums.items()):
        means = (line[:-1] / line[-1]).tolist()
        result[kind] = {
            "acceptance": [round(value, 3) for value in means[::2]],
            "greedy": [round(value, 3) for value in means[1::2]],
            "tokens": int(line[-1]),
        }
    return result


def evaluate(options: argparse.Namespace, model: Any, folder: Path) -> None:
    """Measure the head on the texts that were held out, print it, and write the weights with their card."""
    path = options.work / "head.safetensors"
    eagle = Eagle.load(path)
    rows = model.get_output_embeddings().weight
    _, held, table = read_texts(folder, (len(rows) + 31) // 32)
    found = measure(eagle.head, model, eagle.tokens, held, table)
    for kind, figures in found.items():
        print(kind, json.dumps(figures), flush=True)
    card = {**eagle.card, "held out": {"texts": len(held), "kinds": found}}
    if options.output:
        save(options.output, eagle.head, eagle.tokens, card)
        options.output.with_suffix(".json").write_text(json.dumps(card, indent=1) + "\n", "utf-8")
