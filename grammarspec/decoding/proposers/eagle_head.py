"""The network of a head of the EAGLE kind (Li et al. 2024, arXiv:2401.15077): one decoder layer.

Embeddings of tokens and the hidden states behind the tokens before them come in; predicted hidden states come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["EagleConfig", "EagleHead"]

_GREATEST = 1 << 20  # the greatest size of a head that is no mistake


@dataclass(frozen=True, slots=True)
class EagleConfig:
    """The shape of a head.

    Attributes:
        hidden_size: that of the target's hidden states.
        intermediate_size: the width of the inner layer.
        heads, kv_heads, head_dim: of its attention; ``heads`` is a multiple of ``kv_heads``, and ``head_dim`` even.
        theta: the base of its rotary positions.
        epsilon: of its normalisations.

    Raises:
        TypeError: a value is no number.
        ValueError: a value is out of range.
    """

    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_dim: int
    theta: float = 10000.0
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("hidden_size", "intermediate_size", "heads", "kv_heads", "head_dim"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int):
                raise TypeError(f"{name} must be a whole number, not {size!r}")
            if not 1 <= size <= _GREATEST:
                raise ValueError(f"{name} must be from 1 to {_GREATEST}, not {size}")
        for name, greatest in (("theta", 1e30), ("epsilon", 1.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number, not {value!r}")
            if not 0 < value <= greatest:
                raise ValueError(f"{name} must be above 0 and at most {greatest:g}, not {value}")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads must be a multiple of kv_heads, not {self.heads} of {self.kv_heads}")
        if self.head_dim % 2:
            raise ValueError(f"head_dim must be even, not {self.head_dim}")

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
