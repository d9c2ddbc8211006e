"""The plain constrained decoding loop: a model's forward passes with their KV cache, under a matcher's masks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from grammarspec._compiler import Matcher
from grammarspec.decoding.metrics import Statistics
from grammarspec.decoding.sampling import Sampling, draw, law
from grammarspec.kernels.bitmask import allocate_bitmask
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

__all__ = ["Generation", "generate"]


@dataclass(frozen=True, slots=True)
class Generation:
    """A generated text.

    Attributes:
        tokens: what was generated, with the token that ended it.
        text: what those tokens say. Where ``finish_reason`` is ``"length"``, a character cut in two becomes U+FFFD.
        finish_reason: ``"stop"``: the text is whole; ``"length"``: the budget of tokens or the model's context ran out.
        statistics: what it cost.
    """

    tokens: list[int]
    text: str
    finish_reason: Literal["stop", "length"]
    statistics: Statistics


class _Reader:
    """A causal language model together with the keys and values of what it has read."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._cache: Any = None
        # Models that know this option compute no logits for the other positions of a long prompt.
        knows_option = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._options = {"logits_to_keep": 1} if knows_option else {}

    def read(self, tokens: Sequence[int]) -> torch.Tensor:
        """Read further tokens; the logits behind the last of them, ``[1, width]``."""
        import torch

        ids = torch.tensor([tokens], dtype=torch.int64, device=self._model.device)
        output = self._model(input_ids=ids, past_key_values=self._cache, use_cache=True, **self._options)
        self._cache = output.past_key_values
        logits: torch.Tensor = output.logits[:, -1]
        return logits


def generate(
    model: PreTrainedModel,
    prompt: Sequence[int],
    matcher: Matcher,
    vocabulary: Vocabulary,
    *,
    sampling: Sampling | None = None,
    forced: Literal["sample", "feed"] = "sample",
    on_text: Callable[[bytes], None] | None = None,
) -> Generation:
    """Generate a text of the matcher's language with a causal language model of transformers.

    A position where the mask leaves a single token takes it without asking the model, which changes no probability;
    the model reads such tokens in one pass together with the next that it is asked about.

    Args:
        prompt: the tokens before the text; at least one.
        matcher: where the text begins; it is left where the text ends.
        vocabulary: the one that the matcher's constraint was compiled for.
        sampling: how tokens are chosen; the most probable allowed ones if not given.
        forced: ``"sample"`` scores every token that has an alternative. ``"feed"`` also appends text that the grammar
            forces, in the spelling of ``matcher.forced_tokens()``, without scoring it: the same texts are possible,
            but their probabilities are not those of the masked model, which may prefer another tokenisation.
        on_text: called with the bytes of each token as it is chosen; a character may be split between calls.

    Raises:
        ValueError: the prompt is empty or fills the model's context, or the vocabulary is larger than the model's.
    """
    import torch

    sampling = sampling or Sampling()
    budget = _budget(model, prompt, vocabulary, sampling)
    generator = None if sampling.seed is None else torch.Generator(model.device).manual_seed(sampling.seed)
    reader = _Reader(model)
    rows = allocate_bitmask(1, vocabulary.size)
    statistics = Statistics(prompt_tokens=len(prompt))
    history, unread = list(prompt), list(prompt)

    def commit(token: int) -> None:
        if not matcher.accept_token(token):
            raise RuntimeError(f"the mask allows token {token}, which the matcher refuses")
        history.append(token)
        unread.append(token)
        statistics.tokens += 1
        if on_text is not None and (text := vocabulary.token_bytes(token)):
            on_text(text)

    started = perf_counter()
    scored = None
    with torch.inference_mode():
        while not matcher.is_terminated and statistics.tokens < budget:
            run = matcher.forced_tokens()[: budget - statistics.tokens] if forced == "feed" else []
            if not run:
                mask_started = perf_counter()
                matcher.fill_bitmask(rows)
                statistics.mask_seconds.append(perf_counter() - mask_started)
                run = _only_token(rows[0])
            if run:
                statistics.forced_tokens += len(run)
                for token in run:
                    commit(token)
                continue
            logits = reader.read(unread)
            unread.clear()
            statistics.forward_passes += 1
            commit(int(draw(law(logits, rows, [history], sampling), sampling, generator)))
            scored = scored or perf_counter()
    ended = perf_counter()
    statistics.prefill_seconds = (scored or ended) - started
    statistics.decode_seconds = ended - (scored or ended)
    tokens = history[len(prompt) :]
    text = vocabulary.decode(tokens).decode(errors="replace")
    return Generation(tokens, text, "stop" if matcher.is_terminated else "length", statistics)


def _budget(model: PreTrainedModel, prompt: Sequence[int], vocabulary: Vocabulary, sampling: Sampling) -> int:
    """How many tokens may be generated."""
    if not prompt:
        raise ValueError("the prompt must have at least one token")
    config = model.config.get_text_config()
    if vocabulary.size > config.vocab_size:
        raise ValueError(
            f"the vocabulary has {vocabulary.size} tokens, the model {config.vocab_size}: "
            "build it with the size of the model's logits (size=...)"
        )
    context: int | None = getattr(config, "max_position_embeddings", None)
    if context is None:
        return sampling.max_tokens
    if len(prompt) >= context:
        raise ValueError(f"the prompt has {len(prompt)} tokens, the model's context only {context}")
    # The last token is never read, so that it needs no position.
    return min(sampling.max_tokens, context - len(prompt) + 1)


def _only_token(row: NDArray[np.int32]) -> list[int]:
    """The one token that a mask row allows, or nothing if it allows several."""
    import numpy as np

    words = np.flatnonzero(row)
    if len(words) != 1:
        return []
    bits = int(row[words[0]]) & 0xFFFF_FFFF
    return [int(words[0]) * 32 + bits.bit_length() - 1] if bits & (bits - 1) == 0 else []
