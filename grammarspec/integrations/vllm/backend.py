"""The backend as vLLM calls it: a request's text comes in, masks and verdicts on tokens go out.

The engine's own thread calls all of this. Nothing is raised there that could end it: a sequence whose constraint fails
is refused its next token, which ends that request alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import Any

from grammarspec.integrations.vllm.requests import json_options, request_of_key
from grammarspec.integrations.vllm.settings import Settings
from grammarspec.integrations.vocabularies import vocabulary_of
from grammarspec.serving import GrammarCache, GuardedMatcher

__all__ = ["Backend", "SequenceGrammar"]

_LOG = logging.getLogger("vllm.grammarspec")


class Backend:
    """vLLM's ``StructuredOutputBackend``, of one engine.

    Attributes:
        cache: the constraints.
        mask_threads: how many threads compute the masks of a step.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        """A backend.

        Raises:
            UnsupportedTokenizer, ValueError: as :func:`.vocabulary_of`.
            SettingsError: the environment sets what cannot be.
        """
        self.vllm_config, self.tokenizer, self.vocab_size = vllm_config, tokenizer, vocab_size
        settings = Settings.of_environment()
        vocabulary = vocabulary_of(tokenizer, vocab_size)
        vocabulary.keep(constraints=0, memory=0)  # the cache keeps what is kept
        self._options = json_options(getattr(vllm_config, "structured_outputs_config", None))
        self.cache = GrammarCache(
            vocabulary,
            max_bytes=settings.cache_bytes,
            limits=settings.limits,
            threads=settings.compile_threads or None,
            directory=settings.cache_directory or None,
        )
        self.mask_threads = settings.mask_threads or max(1, min((os.cpu_count() or 1) // 2, 8))
        self._rows: tuple[Any, Any] = (None, None)

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: Iterable[int] | None = None
    ) -> SequenceGrammar:
        """The grammar of a request; vLLM calls this in threads of its own.

        Args:
            request_type: a member of vLLM's ``StructuredOutputOptions``.
            grammar_spec: the declaration; that of a request that was validated is lowered.
            stop_token_ids: the tokens that end this request.

        Raises:
            GrammarspecError, TypeError, ValueError: the request cannot be answered. It was tried before it came here,
                so that this happens where vLLM does not validate.
        """
        special = self.cache.vocabulary.special_tokens
        request = request_of_key(request_type.name, grammar_spec, self._options, special)
        constraint = self.cache.constraint(request)
        ends = sorted(token for token in stop_token_ids or () if 0 <= token < self.vocab_size)
        return SequenceGrammar(self, GuardedMatcher(constraint.matcher(end_token_ids=ends), _told))

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        """``int32[max_num_seqs, ceil(vocabulary / 32)]``, all bits set."""
        import torch

        rows = torch.full((max_num_seqs, (self.vocab_size + 31) // 32), -1, dtype=torch.int32)
        self._rows = (rows, rows.numpy())
        return rows

    def memory_of(self, bitmask: Any) -> Any:
        """The memory of a bitmask, for writing: of the one that was allocated, an array, which costs less to write."""
        known, array = self._rows
        return array if bitmask is known else bitmask

    def destroy(self) -> None:
        """Drop all constraints."""
        self.cache.close()


def _told(error: BaseException) -> None:
    _LOG.warning("a structured output failed, and its request ends: %s", error)


class SequenceGrammar:
    """vLLM's ``StructuredOutputGrammar``, of one sequence. Nothing is raised."""

    __slots__ = ("_backend", "guarded")

    def __init__(self, backend: Backend, guarded: GuardedMatcher) -> None:
        self._backend, self.guarded = backend, guarded

    def accept_tokens(self, request_id: str, tokens: Sequence[int]) -> bool:
        """Go on behind tokens; ``False`` ends the request."""
        accepted = self.guarded.accept_tokens(tokens)
        if not accepted and self.guarded.failure is None:
            _LOG.error("request %s: its grammar allows none of the tokens %s here", request_id, tokens)
        return accepted

    def validate_tokens(self, tokens: Sequence[int]) -> list[int]:
        """Those of the tokens, from the first on, that are allowed."""
        return [] if self.guarded.is_terminated else self.guarded.validate_tokens(tokens)

    def rollback(self, num_tokens: int) -> None:
        """Take back tokens."""
        self.guarded.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        """Write the mask of the next token into a row."""
        self.guarded.fill_bitmask(self._backend.memory_of(bitmask), batch_index)

    def is_terminated(self) -> bool:
        """Whether the text has ended."""
        return self.guarded.is_terminated

    def reset(self) -> None:
        """Take back all tokens."""
        self.guarded.reset()
