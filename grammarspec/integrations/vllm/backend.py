"""The backend for vLLM: it compiles requests, checks tokens and fills masks.

The thread of vLLM's engine calls the methods of sequences, so they raise no errors, which could end the engine. If the
constraint of a sequence fails, its next token is refused, which ends this request only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from grammarspec.integrations.vllm.requests import json_options, request_of_key
from grammarspec.integrations.vllm.settings import Settings
from grammarspec.integrations.vocabularies import vocabulary_of
from grammarspec.serving import GrammarCache, GuardedMatcher

__all__ = ["Backend", "SequenceGrammar"]

_LOG = logging.getLogger("vllm.grammarspec")


class Backend:
    """A ``StructuredOutputBackend`` of vLLM, for one engine.

    Attributes:
        cache: the cache of constraints.
        mask_threads: the number of threads that compute the masks of a step.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        """A backend for a model's tokenizer and number of logits.

        Raises:
            UnsupportedTokenizer, ValueError: as :func:`.vocabulary_of`.
            SettingsError: an environment variable has a wrong value.
        """
        self.vllm_config, self.tokenizer, self.vocab_size = vllm_config, tokenizer, vocab_size
        settings = Settings.of_environment()
        vocabulary = vocabulary_of(tokenizer, vocab_size)
        vocabulary.keep(constraints=0, memory=0)  # constraints are kept by the GrammarCache only
        self._options = json_options(getattr(vllm_config, "structured_outputs_config", None))
        self.cache = GrammarCache(
            vocabulary,
            max_bytes=settings.cache_bytes,
            limits=settings.limits,
            directory=settings.cache_directory or None,
        )
        self.mask_threads = settings.mask_thread_count
        self._rows: tuple[Any, Any] = (None, None)

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: Iterable[int] | None = None
    ) -> SequenceGrammar:
        """The grammar of a request; vLLM calls this in its own threads.

        Args:
            request_type: a member of vLLM's ``StructuredOutputOptions``.
            grammar_spec: the declaration; if the request was validated, its lowered form.
            stop_token_ids: further end-of-text tokens of this request.

        Raises:
            GrammarspecError, TypeError, ValueError: the request cannot be compiled. Validation finds such requests
                before, so this only happens where vLLM does not validate.
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
        """An object for writing a bitmask: an array of numpy, which is faster, if this backend has allocated it."""
        known, array = self._rows
        return array if bitmask is known else bitmask

    def destroy(self) -> None:
        """End the threads of the cache, and remove all constraints."""
        self.cache.close()


def _told(error: BaseException) -> None:
    _LOG.warning("the grammar of a request has failed, which ends the request: %s", error)


class SequenceGrammar:
    """A ``StructuredOutputGrammar`` of vLLM, for one sequence. Its methods raise no errors."""

    __slots__ = ("_backend", "guarded")

    def __init__(self, backend: Backend, guarded: GuardedMatcher) -> None:
        self._backend, self.guarded = backend, guarded

    def accept_tokens(self, request_id: str, tokens: Sequence[int]) -> bool:
        """Accept tokens, and return whether all are allowed; if not, vLLM ends the request."""
        accepted = self.guarded.accept_tokens(tokens)
        if not accepted and self.guarded.failure is None:
            _LOG.error("request %s: its grammar does not allow the tokens %s here", request_id, tokens)
        return accepted

    def validate_tokens(self, tokens: Sequence[int]) -> list[int]:
        """The longest prefix of the tokens that is allowed."""
        return [] if self.guarded.is_terminated else self.guarded.validate_tokens(tokens)

    def rollback(self, num_tokens: int) -> None:
        """Roll back the last tokens."""
        self.guarded.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        """Write the mask of the next token into a row."""
        self.guarded.fill_bitmask(self._backend.memory_of(bitmask), batch_index)

    def is_terminated(self) -> bool:
        """Whether the text has ended."""
        return self.guarded.is_terminated

    def reset(self) -> None:
        """Roll back all tokens."""
        self.guarded.reset()
