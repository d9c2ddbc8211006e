"""The model's answers as tensors: the files that were written come in, texts to train on and to measure with go out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

__all__ = ["Examples", "Text", "bits", "read_texts", "side_by_side"]

HELD_OUT = 32  # of so many texts, one is not trained on


@dataclass(frozen=True)
class Text:
    """A prompt and its answer, as the model has read it.

    Attributes:
        kind: what was asked for.
        tokens: ``int64[read]``, all but the last token of the answer.
        hidden: ``float16[read, hidden size]``, the hidden states behind them.
        prompt: the number of tokens of the prompt.
        masks: ``int64[read]``, the mask behind each token, by its number in the table of all masks; 0 allows any token.
    """

    kind: str
    tokens: torch.Tensor
    hidden: torch.Tensor
    prompt: int
    masks: torch.Tensor


@dataclass(frozen=True)
class Examples:
    """Several texts side by side, padded on the right.

    Attributes:
        tokens: ``int64[rows, length]``.
        hidden: ``float32[rows, length, hidden size]``, behind the tokens before.
        following: ``float32[rows, length, hidden size]``, behind the tokens.
        masks: ``int64[rows, length]``.
        counted: ``bool[rows, length]``, where the model had a choice in its answer.
        kinds: of each text.
    """

    tokens: torch.Tensor
    hidden: torch.Tensor
    following: torch.Tensor
    masks: torch.Tensor
    counted: torch.Tensor
    kinds: list[str]


def read_texts(folder: Path, words: int) -> tuple[list[Text], list[Text], torch.Tensor]:
    """The texts to be trained on, those that are held out, and the table of masks, ``int32[masks, words]``."""
    table: dict[bytes, int] = {b"\xff" * 4 * words: 0}
    train: list[Text] = []
    held: list[Text] = []
    for path in sorted(folder.glob("*.pt")):
        file = torch.load(path, weights_only=True)
        numbers = [0, *(table.setdefault(mask.numpy().tobytes(), len(table)) for mask in file["table"])]
        places = torch.tensor(numbers)
        for row, kind in enumerate(file["kinds"]):
            hidden, prompt = file["hidden"][row], file["prompts"][row]
            masks = torch.zeros(len(hidden), dtype=torch.int64)
            masks[prompt - 1 :] = places[file["masks"][row].long() + 1]
            tokens = file["tokens"][row][: len(hidden)].long()
            (held if row % HELD_OUT == HELD_OUT - 1 else train).append(Text(kind, tokens, hidden, prompt, masks))
    return train, held, torch.frombuffer(bytearray(b"".join(table)), dtype=torch.int32).reshape(len(table), words)


def side_by_side(texts: Sequence[Text], free: torch.Tensor) -> Examples:
    """Texts as tensors.

    Args:
        texts: the texts.
        free: ``bool[masks]``, which masks allow more than one token.
    """
    length, size = max(len(text.tokens) for text in texts) - 1, texts[0].hidden.shape[1]
    shape = len(texts), length
    tokens, masks = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
    hidden, following = torch.zeros(*shape, size), torch.zeros(*shape, size)
    counted = torch.zeros(shape, dtype=torch.bool)
    for row, text in enumerate(texts):
        count = len(text.tokens) - 1
        tokens[row, :count], masks[row, :count] = text.tokens[1:], text.masks[1:]
        hidden[row, :count], following[row, :count] = text.hidden[:-1], text.hidden[1:]
        counted[row, max(text.prompt - 2, 0) : count] = True
    return Examples(tokens, hidden, following, masks, counted & free[masks], [text.kind for text in texts])


def bits(table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Which of some tokens each mask allows: ``bool[masks, tokens]``."""
    return (table[:, tokens // 32] >> (tokens % 32).int()).bitwise_and(1).bool()
