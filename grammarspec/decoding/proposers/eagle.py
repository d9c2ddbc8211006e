"""Drafts by one layer on the target's hidden states (EAGLE: Li et al. 2024, arXiv:2401.15077; EAGLE-3: 2025).

For the token behind position ``i`` the head reads token ``i``, by the target's own embedding, and the target's last
hidden state behind token ``i - 1``. Within a draft, where the target has computed none, it reads its own prediction of
that state. Its logits are the target's output rows of selected tokens.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.nn import functional

from grammarspec.decoding.cache import RaggedCache
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.prepacking import prepack
from grammarspec.decoding.proposers.draft_sampler import DraftSampler
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.decoding.windows import unwrapped
from grammarspec.errors import DraftMismatch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Eagle", "EagleConfig", "EagleHead"]

_WINDOW = 512  # tokens of a prompt that the head reads at most: the last ones


@dataclass(frozen=True, slots=True)
class EagleConfig:
    """The shape of a head.

    Attributes:
        hidden_size: that of the target's hidden states.
        intermediate_size: the width of the inner layer.
        heads, kv_heads, head_dim: of its attention.
        theta: the base of its rotary positions.
        epsilon: of its normalisations.
    """

    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_dim: int
    theta: float = 10000.0
    epsilon: float = 1e-5

    @classmethod
    def like(cls, model: PreTrainedModel, intermediate_size: int) -> EagleConfig:
        """The shape of the target's own layers, with an inner layer of another width.

        Args:
            model: a model of a Llama-like family.
            intermediate_size: the width of the inner layer.
        """
        config = model.config.get_text_config()
        rotary = getattr(config, "rope_parameters", None) or {}
        return cls(
            hidden_size=config.hidden_size,
            intermediate_size=intermediate_size,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
            theta=float(rotary.get("rope_theta", 10000.0)),
            epsilon=float(config.rms_norm_eps),
        )


class EagleHead(nn.Module):
    """A linear layer that joins a token's embedding and a hidden state, and a decoder layer behind it.

    Args:
        config: its shape.

    Attributes:
        config: its shape.
        unknown: ``[hidden size]``, what is read in place of a hidden state that nobody has computed.
    """

    def __init__(self, config: EagleConfig) -> None:
        super().__init__()
        self.config = config
        size, inner = config.hidden_size, config.intermediate_size
        queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self.embedding_norm, self.hidden_norm, self.attention_norm, self.inner_norm, self.final_norm = (
            nn.RMSNorm(size, eps=config.epsilon) for _ in range(5)
        )
        self.join = nn.Linear(2 * size, size, bias=False)
        self.query, self.key = nn.Linear(size, queries, bias=False), nn.Linear(size, keys, bias=False)
        self.value, self.output = nn.Linear(size, keys, bias=False), nn.Linear(queries, size, bias=False)
        self.gate, self.up = nn.Linear(size, inner, bias=False), nn.Linear(size, inner, bias=False)
        self.down = nn.Linear(inner, size, bias=False)
        self.unknown = nn.Parameter(torch.zeros(size))

    def joined(self, embedded: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """What the decoder layer reads.

        Args:
            embedded: ``[rows, new, hidden size]``, the target's embeddings of the tokens.
            hidden: ``[rows, new, hidden size]``, the hidden states behind the tokens before them.

        Returns:
            ``[rows, new, hidden size]``.
        """
        joined: torch.Tensor = self.join(torch.cat((self.embedding_norm(embedded), self.hidden_norm(hidden)), -1))
        return joined

    def heads(self, joined: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values.

        Args:
            joined: ``[rows, new, hidden size]``, of :meth:`joined`.
            positions: ``int64[rows, new]``, of the tokens in their texts.

        Returns:
            ``[rows, heads, new, head dim]`` each; keys and values have fewer heads.
        """
        config, states = self.config, self.attention_norm(joined)
        query, key, value = (
            layer(states).unflatten(-1, (-1, config.head_dim)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        steps = torch.arange(0, config.head_dim, 2, device=positions.device, dtype=torch.float32)
        angles = positions[:, None, :, None] * config.theta ** (-steps / config.head_dim)
        angles = torch.cat((angles, angles), -1)
        cosine, sine = angles.cos(), angles.sin()
        return _rotated(query, cosine, sine), _rotated(key, cosine, sine), value

    def finish(
        self, joined: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """The predicted hidden states behind the tokens.

        Args:
            joined: ``[rows, new, hidden size]``, of :meth:`joined`.
            query, key, value: as of :meth:`heads`; there may be more keys than queries.
            mask: ``bool``, ``[rows, 1, new, keys]`` or what can be broadcast to it: which keys a query sees.

        Returns:
            ``[rows, new, hidden size]``, normalised as the target's last hidden states are.
        """
        groups = self.config.heads // self.config.kv_heads
        key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
        seen = functional.scaled_dot_product_attention(query, key.to(query), value.to(query), attn_mask=mask)
        states = joined + self.output(seen.transpose(1, 2).flatten(2))
        inner = self.inner_norm(states)
        states = states + self.down(functional.silu(self.gate(inner)) * self.up(inner))
        finished: torch.Tensor = self.final_norm(states)
        return finished


def _rotated(states: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """States at their positions (rotary embedding: Su et al. 2021), halves of a head being turned together."""
    first, second = states.chunk(2, -1)
    return (states * cosine + torch.cat((-second, first), -1) * sine).to(states.dtype)


@dataclass(frozen=True, slots=True)
class SavedHead:
    """A head as it is in a file.

    Attributes:
        head: the head, in float32.
        tokens: ``int64[selected]``, the tokens that it can draft.
        card: what is known about it.
    """

    head: EagleHead
    tokens: torch.Tensor
    card: Mapping[str, Any]


class Eagle:
    """Drafts by a head of the EAGLE kind.

    What other proposers have drafted is read in one pass. No hidden states are known there but, behind a token that the
    head has read, its own prediction; :attr:`EagleHead.unknown` stands for the others. After each round the target's
    own hidden states take the place of all predictions.

    The head knows of a text what the target reads while it drafts, and of a prompt the last 512 tokens at most: nothing
    of a prompt that was read before (for several texts at once, but for its last token).

    Args:
        head: the head; it is run in float32.
        model: the target, whose embedding and output layer it shares.
        tokens: ``int64[selected]``, the tokens that the head can draft; ``None``: all of them.
        masked, confidence: as for :class:`~grammarspec.decoding.proposers.DraftModel`.
        card: what is known about the head: how it was trained, and how good it is.

    Attributes:
        card: as given.

    Raises:
        ValueError: ``confidence`` is out of range.
        DraftMismatch: the head is for hidden states of another size; or (when a batch begins) ``tokens`` names tokens
            that the target does not have.
        TypeError: ``model`` is no model of transformers.
    """

    name = "eagle"
    runs_model = True
    hidden_layers: Sequence[int] = (-1,)

    def __init__(
        self,
        head: EagleHead,
        model: PreTrainedModel,
        tokens: torch.Tensor | None = None,
        *,
        masked: bool = True,
        confidence: float = 0.0,
        card: Mapping[str, Any] | None = None,
    ) -> None:
        inner = unwrapped(model)
        if inner is None:
            raise TypeError(f"Eagle takes a model of transformers, not {type(model).__name__}")
        size = inner.config.get_text_config().hidden_size
        if size != head.config.hidden_size:
            raise DraftMismatch(f"the head reads hidden states of {head.config.hidden_size} numbers, not of {size}")
        tokens = None if tokens is None else tokens.to(inner.device, torch.int64)
        self._sampler = DraftSampler(self.name, masked, confidence, tokens)
        if tokens is not None:
            self._sampler.check(inner.config.get_text_config().vocab_size)
        self.card: Mapping[str, Any] = card or {}
        self._embedding = inner.get_input_embeddings()
        rows = cast(Any, inner).get_output_embeddings().weight.detach()
        rows = (rows if tokens is None else rows[tokens]).float()
        self._rows: nn.Module = nn.Linear(size, len(rows), bias=False, device="meta")
        self._rows.weight = nn.Parameter(rows, requires_grad=False)
        self._head = copy.deepcopy(head).to(inner.device, torch.float32).eval()
        parts = nn.ModuleDict({"head": self._head, "rows": self._rows})
        if inner.device.type == "cpu":
            prepack(cast(Any, parts))
            self._rows = parts["rows"]
        self.passes = 0
        self._batch: BatchView

    @classmethod
    def from_file(
        cls, path: str | Path, model: PreTrainedModel, *, masked: bool = True, confidence: float = 0.0
    ) -> Eagle:
        """Load a head.

        Args:
            path: a file that :meth:`save` has written.
            model, masked, confidence: as for :class:`Eagle`.

        Raises:
            OSError: there is no such file.
            DraftMismatch: it is no head, or a head for another target.
            ValueError, TypeError: as for :class:`Eagle`.
        """
        loaded = cls.load(path)
        return cls(loaded.head, model, loaded.tokens, masked=masked, confidence=confidence, card=loaded.card)

    @staticmethod
    def load(path: str | Path) -> SavedHead:
        """What is in a file.

        Args:
            path: a file that :meth:`save` has written.

        Raises:
            OSError: there is no such file.
            DraftMismatch: it is no head.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "pt") as file:
                told = file.metadata() or {}
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no dictionary
        except SafetensorError as error:
            raise DraftMismatch(f"{path} is no file of weights: {error}") from None
        if "eagle" not in told:
            raise DraftMismatch(f"{path} has no head of the EAGLE kind")
        tokens = weights.pop("tokens").long()
        head = EagleHead(EagleConfig(**json.loads(told["eagle"])))
        head.load_state_dict({name: weight.float() for name, weight in weights.items()})
        return SavedHead(head, tokens, json.loads(told.get("card", "{}")))

    @staticmethod
    def save(path: str | Path, head: EagleHead, tokens: torch.Tensor, card: Mapping[str, Any]) -> None:
        """Save a head: its weights in float16, its shape and its card.

        Args:
            path: the file, of the format safetensors.
            head: the head.
            tokens: ``int64[selected]``, the tokens that it can draft.
            card: what is known about it; JSON.
        """
        from safetensors.torch import save_file

        weights = {name: weight.detach().to("cpu", torch.float16) for name, weight in head.state_dict().items()}
        weights["tokens"] = tokens.to("cpu", torch.int32)
        told = {"eagle": json.dumps(asdict(head.config)), "card": json.dumps(card)}
        save_file({name: weight.contiguous() for name, weight in weights.items()}, path, told)

    # ------------------------------------------------------------------ as a proposer
    def start(self, batch: BatchView) -> None:
        """Begin a new batch.

        Raises:
            DraftMismatch: the head drafts tokens that the target does not have.
        """
        self._sampler.check(batch.target.width)
        count, device = len(batch.sequences), batch.target.device
        self._batch, self.passes = batch, 0
        self._cache = RaggedCache()
        # For each row: how many of its tokens come before those that the head knows about, how many of the others the
        # head has read for good, and how many of its draft after them.
        self._origin: list[int | None] = [None] * count
        self._read, self._ahead = [0] * count, [0] * count
        self._seen = list(batch.target.lengths)
        # The target's hidden states that the head has not read, [any, hidden size]; and its own last prediction.
        empty = torch.zeros(0, self._head.config.hidden_size, device=device)
        self._hidden = [empty] * count
        self._own = torch.zeros(count, self._head.config.hidden_size, device=device)

    def select(self, rows: Sequence[int]) -> None:
        self._origin = [self._origin[row] for row in rows]
        self._read, self._ahead = [self._read[row] for row in rows], [self._ahead[row] for row in rows]
        self._seen, self._hidden = [self._seen[row] for row in rows], [self._hidden[row] for row in rows]
        index = torch.tensor(rows, device=self._own.device)
        self._own = self._own[index]
        self._cache.select(index)

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        tokens: list[list[int]] = [[] for _ in draft.sequences]
        for row in rows:
            origin = self._origin[row]
            if origin is not None:
                tokens[row] = draft.text(row)[origin + self._read[row] + self._ahead[row] :]
        rows = [row for row in rows if tokens[row]]
        if rows:
            self._sampler.append(self._pass(tokens), draft, rows, self._batch)

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        hidden = self._batch.target.hidden[-1]
        for row, count in enumerate(accepted):
            known = self._batch.target.lengths[row]
            # The pass padded rows on the left, and read the whole draft.
            end = hidden.shape[1] - len(draft.tokens[row]) + count
            new = min(known - self._seen[row], end)
            states = hidden[row, max(end - new, 0) : end].float()
            if self._origin[row] is None:
                states = states[-_WINDOW:]
                self._origin[row] = known - len(states) + 1
            self._hidden[row] = torch.cat((self._hidden[row], states))
            self._seen[row], self._ahead[row] = known, 0

    # ------------------------------------------------------------------ inside
    def _pass(self, tokens: Sequence[Sequence[int]]) -> torch.Tensor:
        """Read new tokens of each row.

        Args:
            tokens: those of each row that the head has not read; rows may have none, but not all.

        Returns:
            ``[rows, selected]``, the logits behind the last of them.
        """
        device, new = self._own.device, max(map(len, tokens))
        ids = torch.tensor([[0] * (new - len(row)) + list(row) for row in tokens], device=device)
        hidden = self._head.unknown.detach().repeat(len(tokens), new, 1)
        first = []
        for row, text in enumerate(tokens):
            first.append(self._read[row] + self._ahead[row] + len(text) - new)
            if not text:
                continue
            begin, known = new - len(text), min(len(self._hidden[row]), len(text))
            hidden[row, begin : begin + known] = self._hidden[row][:known]
            if not known:  # behind the last token of the draft that the head has read
                hidden[row, begin] = self._own[row]
            self._hidden[row] = self._hidden[row][known:]
            self._read[row] += known
            self._ahead[row] += len(text) - known
        steps, padding = torch.arange(new), torch.tensor([new - len(text) for text in tokens])
        unused = steps < padding[:, None]
        positions = (torch.tensor(first)[:, None] + steps).masked_fill(unused, 0)
        visible = int(positions.max()) + 1
        self._cache.plan(positions.masked_fill(unused, torch.iinfo(torch.int64).max).to(device), visible)
        positions = positions.to(device)
        joined = self._head.joined(self._embedding(ids).float(), hidden)
        query, key, value = self._head.heads(joined, positions)
        key, value = self._cache.update(key, value, 0)
        mask = torch.arange(visible, device=device) <= positions[:, None, :, None]
        states = self._head.finish(joined, query, key, value, mask)[:, -1]
        self.passes += 1
        moved = torch.tensor([bool(text) for text in tokens], device=device)[:, None]
        self._own = torch.where(moved, states, self._own)
        logits: torch.Tensor = self._rows(states)
        return logits
