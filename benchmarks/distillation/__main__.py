"""The command: options come in; the steps are done one after another, each by its module."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks import distillation
from benchmarks.distillation.answers import answer
from benchmarks.distillation.evaluation import evaluate
from benchmarks.distillation.training import train
from grammarspec.models.loading import load_model

STEPS = ("answer", "train", "evaluate")


def _share(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    return int(number), int(count)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.distillation", description=distillation.__doc__)
    parser.add_argument("--work", type=Path, required=True, help="directory for texts and hidden states")
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=32, help="texts that are written side by side (%(default)s)")
    parser.add_argument("--tokens", type=int, default=600_000, help="of answers, to be trained on (%(default)s)")
    parser.add_argument("--minutes", type=float, default=25, help="for writing them, at most (%(default)s)")
    parser.add_argument("--selected", type=int, default=8000, help="tokens that the head can draft (%(default)s)")
    parser.add_argument("--width", type=int, default=1792, help="of the head's inner layer (%(default)s)")
    parser.add_argument("--depth", type=int, default=2, help="draft tokens that the head is trained on (%(default)s)")
    parser.add_argument("--batch", type=int, default=24, help="texts of a step of training (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="the learning rate (%(default)s)")
    parser.add_argument("--regression", type=float, default=0.2, help="weight of hidden states (%(default)s)")
    parser.add_argument("--train-minutes", type=float, default=25, help="for training (%(default)s)")
    parser.add_argument("--every", type=int, default=50, help="steps between two states that are kept (%(default)s)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="train this head on, not a new one")
    parser.add_argument("--only", choices=STEPS, action="append", help="what to do (all)")
    parser.add_argument("--output", type=Path, help="write weights and card here")
    parser.add_argument("--share", type=_share, default=(0, 1), help="K/N: write the K-th of N parts, from 0")
    parser.add_argument("--threads", type=int, help="of torch (all cores)")
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    folder = options.work / "texts"
    folder.mkdir(parents=True, exist_ok=True)
    for step in options.only or STEPS:
        if step == "answer":
            answer(options, folder)
        else:
            model, _ = load_model(options.model, packed=False)
            model.requires_grad_(False)
            (train if step == "train" else evaluate)(options, model, folder)


if __name__ == "__main__":
    main()
