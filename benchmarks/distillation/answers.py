"""What the model answers to the prompts: files of its texts, its hidden states and the masks come out, for training.

Each file is a batch of texts (``torch.save``); :func:`benchmarks.distillation.texts.read_texts` reads them.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

import grammarspec as gs
from benchmarks.distillation.prompts import Task, tasks
from grammarspec.decoding import Request, Sampling, generate_batch
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of

__all__ = ["answer"]

LENGTHS = {"free": 96, "grammar": 80}  # tokens of an answer at most


class Recorder:
    """Drafts nothing, and keeps what the target computes: a proposer that listens.

    Attributes:
        hidden: ``float16[tokens read, hidden size]`` for each text of the batch.
        masks: the number of the mask of each token of each text in ``table``; -1 without a grammar.
        table: the different masks, ``int32[words]`` each, as bytes.
    """

    name = "recorder"
    runs_model = False
    hidden_layers: Sequence[int] = (-1,)
    passes = 0

    def start(self, batch: BatchView) -> None:
        count = len(batch.sequences)
        self._batch, self._rows, self._read = batch, list(range(count)), [0] * count
        self._parts: list[list[torch.Tensor]] = [[] for _ in range(count)]
        self.masks: list[list[int]] = [[] for _ in range(count)]
        self.table: dict[bytes, int] = {}

    def select(self, rows: Sequence[int]) -> None:
        self._rows = [self._rows[row] for row in rows]
        self._read = [self._read[row] for row in rows]

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        pass

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        hidden = self._batch.target.hidden[-1].to(torch.float16)
        for row, text in enumerate(self._rows):
            new = self._batch.target.lengths[row] - self._read[row]
            self._parts[text].append(hidden[row, -new:].clone())
            self._read[row] += new
            number = -1
            if draft.sequences[row].matcher is not None:
                number = self.table.setdefault(draft.mask_rows(row)[0].tobytes(), len(self.table))
            self.masks[text].append(number)

    @property
    def hidden(self) -> list[torch.Tensor]:
        return [torch.cat(parts) for parts in self._parts]


class _Output(torch.nn.Module):
    """An output layer of float32 behind a model of bfloat16, whose own logits would often be equal."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self._weight = weight

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(hidden.float(), self._weight)


def _quicken(model: Any) -> None:
    """Run all but the output layer in bfloat16, which recent CPUs multiply several times faster."""
    if model.device.type == "cpu" and torch.cpu._is_amx_tile_supported():
        weight = model.get_output_embeddings().weight.detach().float().clone()
        model.to(torch.bfloat16)
        model.set_output_embeddings(_Output(weight))


def answer(options: argparse.Namespace, folder: Path) -> None:
    """Have the model answer prompts until there are enough tokens, or the time is up; one file for each batch."""
    model, tokenizer = load_model(options.model, packed=False)
    vocabulary = vocabulary_of(model, tokenizer)
    _quicken(model)
    source = tasks(options.seed)
    waiting: dict[bool, list[Task]] = {False: [], True: []}
    begin, tokens = time.perf_counter(), 0
    share, shares = options.share
    for number in range(10**6):
        if tokens >= options.tokens or time.perf_counter() - begin > options.minutes * 60:
            break
        constrained = number % 2 == 0
        while len(waiting[constrained]) < options.rows:
            task = next(source)
            waiting[task.schema is not None or task.pattern is not None].append(task)
        part, waiting[constrained] = waiting[constrained][: options.rows], waiting[constrained][options.rows :]
        path = folder / f"{number:05}.pt"
        if number // 2 % shares != share or path.exists():
            continue
        draw, requests = random.Random(options.seed * 10**6 + number), []
        constraints: dict[tuple[str | None, str | None, str], Any] = {}  # of a few hundred, too much would be kept
        for place, task in enumerate(part):
            matcher = None
            if constrained:
                whitespace: Literal["compact", "flexible"] = draw.choice(("compact", "compact", "flexible"))
                key = task.schema, task.pattern, whitespace
                if key not in constraints:
                    if task.pattern:
                        grammar: gs.Grammar[Any] = gs.regex(task.pattern)
                    else:
                        grammar = gs.json_schema(task.schema or "{}", whitespace=whitespace)
                    constraints[key] = gs.compile(grammar, vocabulary)
                matcher = constraints[key].matcher()
            most = LENGTHS["grammar" if constrained else "free"]
            temperature = draw.choice((0.0, 0.7, 1.0))
            seed = number * options.rows + place
            sampling = Sampling(temperature=temperature, seed=seed, max_tokens=most)
            requests.append(Request(prompt=encode_prompt(tokenizer, task.prompt), matcher=matcher, sampling=sampling))
        recorder, started = Recorder(), time.perf_counter()
        found = generate_batch(model, requests, vocabulary, proposers=[recorder], gamma=1, adaptive=False)
        texts = [[*request.prompt, *text.tokens] for request, [text] in zip(requests, found, strict=True)]
        masks = recorder.masks
        torch.save(
            {
                "kinds": [task.kind for task in part],
                "tokens": [torch.tensor(text, dtype=torch.int32) for text in texts],
                "prompts": [len(request.prompt) for request in requests],
                "hidden": recorder.hidden,
                "masks": [torch.tensor(each, dtype=torch.int32) for each in masks],
                "table": [torch.frombuffer(bytearray(mask), dtype=torch.int32) for mask in recorder.table],
                "temperatures": [request.sampling.temperature for request in requests],
            },
            path.with_suffix(".part"),
        )
        path.with_suffix(".part").rename(path)
        new = sum(map(len, masks))
        tokens += new
        seconds = time.perf_counter() - started
        print(f"{path.name}: {new} tokens, {new / seconds:.0f} tokens/s, {tokens} in all", flush=True)
