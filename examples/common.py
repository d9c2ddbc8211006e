"""What the examples share: options of commands, proposers by name, the trace of a run, grammars beside judges, tables.

It is no example itself. `proposers_named` knows `rounded:BITS`, which stands for a smaller model where there is none:
a copy of the target whose weights are rounded. It agrees with the target as often as a draft model does, but a pass of
it costs as much as one of the target, so that times are those of a draft that is far too slow.
"""

from __future__ import annotations

import copy
import re
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

import grammarspec as gs
from grammarspec.decoding.proposers import BatchView, DraftModel, EarlyExit, Forced, Lookup, Proposer
from grammarspec.models import load_draft

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from grammarspec.decoding.draft import Draft

__all__ = ["Round", "Trace", "command", "judged", "load", "proposers_named", "rounded", "shown", "table", "text_of"]

GROUP = 64
"""Weights that are rounded on one scale."""
NUMBER = re.compile(r"[-+]?[0-9][0-9.]*%?|-")
DRAFTS = "forced, lookup, early-exit:LAYERS, rounded:BITS, or a model with the same tokens; several with commas"


def command(documentation: str | None) -> ArgumentParser:
    """The parser of a command, with the options that all examples with a model have."""
    parser = ArgumentParser(description=documentation, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="a directory, a .gguf file or a name (%(default)s)")
    parser.add_argument("--threads", type=int, help="of torch (all cores)")
    return parser


def load(options: Namespace) -> gs.Model:
    """The model that a command was asked to run."""
    if options.threads:
        torch.set_num_threads(options.threads)
    return gs.Model.from_pretrained(options.model, packed=False)  # `rounded` changes the weights of a copy


def proposers_named(names: str, model: gs.Model) -> list[Proposer]:
    """Proposers by their names, as `DRAFTS` lists them.

    Raises:
        DraftMismatch: a model has other tokens than the target.
        OSError, ValueError: there is no such model.
    """
    return [_proposer(name.strip(), model) for name in names.split(",") if name.strip()]


def _proposer(name: str, model: gs.Model) -> Proposer:
    kind, _, number = name.partition(":")
    match kind:
        case "forced":
            return Forced()
        case "lookup":
            return Lookup()
        case "early-exit":
            return EarlyExit(model.model, int(number))
        case "rounded":
            return DraftModel(rounded(model.model, int(number)))
    return DraftModel(load_draft(name, model.vocabulary))


def rounded(model: PreTrainedModel, bits: int) -> PreTrainedModel:
    """A copy of a model with the weights of its layers rounded, each group of them on a scale of its own."""
    small = copy.deepcopy(model)
    with torch.no_grad():
        for name, weights in small.named_parameters():
            if weights.ndim == 2 and "embed" not in name and weights.numel() % GROUP == 0:
                groups = weights.view(-1, GROUP)
                step = groups.abs().amax(1, keepdim=True).clamp(min=1e-12) / (2 ** (bits - 1) - 0.5)
                groups.copy_((groups / step).round().clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * step)
    return small


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a text.

    Attributes:
        drafted, sources: the draft tokens, and the names of their proposers.
        accepted: how many of them were committed.
        bonus: the token that the target's pass gave behind them; none behind an accepted end of the text.
    """

    drafted: list[int]
    sources: list[str]
    accepted: int
    bonus: list[int]


class Trace:
    """A proposer that drafts nothing, and notes each round of the first text of a batch.

    Attributes:
        rounds: what it has noted.
    """

    name = "trace"
    runs_model = False
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self._read = 0

    def start(self, batch: BatchView) -> None:
        self._read = len(batch.sequences[0].tokens)

    def select(self, rows: Sequence[int]) -> None:
        """Nothing is kept by rows."""

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        """Nothing is drafted."""

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        tokens = draft.sequences[0].tokens
        behind = self._read + accepted[0]
        self.rounds.append(Round(list(draft.tokens[0]), list(draft.sources[0]), accepted[0], tokens[behind:]))
        self._read = len(tokens)


def judged(grammar: gs.Grammar[Any], judge: Callable[[str], bool], groups: Mapping[str, Iterable[str]]) -> str:
    """A table of texts, by groups: what a grammar says of each, and what someone says who does not know it."""
    rows = [
        [group, shown(text, 60), *("yes" if verdict else "no" for verdict in (grammar.matches(text), judge(text)))]
        for group, texts in groups.items()
        for text in texts
    ]
    return table(["texts", "text", "grammar", "judge"], rows)


def text_of(vocabulary: gs.Vocabulary, tokens: Iterable[int]) -> str:
    """Tokens as text, with a sign where the text ends."""
    ends = vocabulary.eos_token_ids
    return b"".join(b"<end>" if one in ends else vocabulary.decode([one]) for one in tokens).decode(errors="replace")


def shown(text: str, width: int = 40) -> str:
    """A text on one line, cut short."""
    line = repr(text)[1:-1]
    return line if len(line) <= width else f"{line[: width - 3]}..."


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows below a head, in columns; numbers stand on the right."""
    cells = [[_cell(one) for one in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    numeric = [all(map(NUMBER.fullmatch, column)) for column in zip(*cells, strict=True)]
    sides = numeric or [False] * len(head)
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, sides, strict=True)
        )
        for line in [list(head), *cells]
    ]
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
