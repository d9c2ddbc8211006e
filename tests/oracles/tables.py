"""Models that look their logits up by the text so far, small languages, and the exact distribution of their texts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

import grammarspec as gs
from grammarspec.decoding import Sampling
from tests.oracles.distributions import naive_distribution

TOKENS = [b"a", b"b", b"ab", b"ba", b"c", b"abc", b"cc"]
END = len(TOKENS)
WIDTH = END + 1
LONGEST = 5  # tokens, the end included, of the texts in the tables
PROMPT = [END, 0, 3, 1, 4, 2, 0, 4, 1, 0]  # begins what lookup may find, and holds some tokens only
VOCABULARY = gs.Vocabulary.from_tokens([*TOKENS, None], [END])
_SIZE = sum(WIDTH**length for length in range(LONGEST + 1))


def number(tokens: Iterable[int]) -> int:
    """The row of a table for a text: every text up to the longest has its own, longer ones share."""
    value = 0
    for token in tokens:
        value = (value * WIDTH + token + 1) % _SIZE
    return value


class TableConfig(PretrainedConfig):
    model_type = "table"

    def __init__(self, num_hidden_layers: int = 2, **options: Any) -> None:
        super().__init__(**options)
        self.vocab_size = WIDTH
        self.hidden_size = 1
        self.num_hidden_layers = num_hidden_layers


class Table(nn.Module):
    """One layer: it finds the text in its cache, whose keys are the tokens, and adds its logits."""

    def __init__(self, index: int, logits: torch.Tensor) -> None:
        super().__init__()
        self.index = index
        self.register_buffer("logits", logits)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, cache: Any) -> tuple[torch.Tensor, torch.Tensor]:
        keys = ids[:, None, :, None].to(torch.float64)
        seen, _ = cache.update(keys, keys, self.index)
        text = seen[:, 0, :, 0].to(torch.int64)
        rows = torch.zeros_like(positions)
        # Tables know the text, not the prompt.
        for place in range(len(PROMPT), text.shape[1]):
            rows = torch.where(place <= positions, (rows * WIDTH + text[:, place, None] + 1) % _SIZE, rows)
        return self.logits[rows], rows


class TableModel(PreTrainedModel):
    """The sum of the logits of its layers; its hidden state is the number of the text."""

    config_class = TableConfig
    _can_compile_fullgraph = True
    _supports_sdpa = True

    def __init__(self, tables: list[torch.Tensor]) -> None:
        super().__init__(TableConfig(num_hidden_layers=len(tables)))
        self.layers = nn.ModuleList(Table(index, logits) for index, logits in enumerate(tables))
        self.anchor = nn.Parameter(torch.zeros(1))  # a model's device and dtype are those of its parameters

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        past_key_values: Any,
        use_cache: bool = True,
        logits_to_keep: int = 0,
        output_hidden_states: bool = False,
    ) -> CausalLMOutputWithPast:
        parts = [layer(input_ids, position_ids, past_key_values) for layer in self.layers]
        logits = sum(part[0] for part in parts)
        hidden = parts[0][1][..., None].double()
        return CausalLMOutputWithPast(logits=logits[:, -logits_to_keep:], hidden_states=(hidden,))


class TableHead:
    """A head on the hidden state of a table model."""

    draft_to_target: torch.Tensor | None = None

    def __init__(self, logits: torch.Tensor) -> None:
        self._logits = logits

    def __call__(self, hidden: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = (hidden[:, 0].long() * WIDTH + tokens + 1) % _SIZE
        return self._logits[rows], rows[:, None].double()


def tables(seed: int, deviation: float) -> list[torch.Tensor]:
    """The two layers of a target, of which the first alone is a fair draft, and another draft model's layer."""
    generator = torch.Generator().manual_seed(seed)

    def noise() -> torch.Tensor:
        return torch.randn(_SIZE, WIDTH, generator=generator, dtype=torch.float64)

    first = deviation * noise()
    return [first, 0.7 * noise(), first + 0.9 * noise()]


def language(seed: int) -> tuple[list[str], gs.Constraint]:
    """Some short texts, and their constraint."""
    choose = random.Random(seed)
    texts = {"".join(choose.choices("abc", k=choose.randint(1, 4))) for _ in range(choose.randint(4, 12))}
    return sorted(texts), gs.compile(gs.choice(sorted(texts)), VOCABULARY)


def exact_distribution(
    logits: Callable[[int], list[float]], constraint: gs.Constraint, what: Sampling
) -> dict[tuple[int, ...], float]:
    """The probability of each sequence of tokens, the end included, that can be generated, by enumeration."""
    distribution: dict[tuple[int, ...], float] = {}

    def visit(state: int, text: list[int], probability: float) -> None:
        following = {token: after for token in range(WIDTH) if (after := constraint.step(state, token)) is not None}
        each = naive_distribution(logits(number(text)), set(following), PROMPT, text, what)
        for token, after in following.items():
            if each[token] == 0:
                continue
            if token == END:
                distribution[(*text, token)] = probability * each[token]
            else:
                visit(after, [*text, token], probability * each[token])

    visit(constraint.start, [], 1.0)
    return distribution


def valid_texts(
    logits: Callable[[int], list[float]], constraint: gs.Constraint, what: Sampling
) -> dict[tuple[int, ...], float]:
    """The probability of each valid sequence of tokens under the model without a mask, by enumeration.

    They add up to ``p(valid)``. A text without its end is valid if it is whole where ``max_tokens`` cuts it; with
    ``on_limit="raise"``, only if nothing but the end could follow.
    """
    found: dict[tuple[int, ...], float] = {}

    def visit(state: int, text: list[int], probability: float) -> None:
        if len(text) == what.max_tokens:
            ends = constraint.step(state, END) is not None
            goes_on = any(constraint.step(state, token) is not None for token in range(END))
            if ends and not (goes_on and what.on_limit == "raise"):
                found[tuple(text)] = probability
            return
        each = naive_distribution(logits(number(text)), set(range(WIDTH)), PROMPT, text, what)
        for token in range(WIDTH):
            after = constraint.step(state, token)
            if after is None or each[token] == 0:
                continue
            if token == END:
                found[(*text, token)] = probability * each[token]
            else:
                visit(after, [*text, token], probability * each[token])

    visit(constraint.start, [], 1.0)
    return found
