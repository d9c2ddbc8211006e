"""The engines, in one shape: compile a schema, then masks and tokens one at a time.

Each is used through the cheapest public call that writes a mask into memory of the caller's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class Sequence(Protocol):
    """One sequence under one constraint."""

    row: np.ndarray

    def fill(self) -> None: ...
    def accept(self, token: int) -> bool: ...


Compile = Callable[[dict[str, Any]], Callable[[], Sequence]]


class _GrammarSpec:
    def __init__(self, matcher: Any, size: int) -> None:
        self.rows = np.zeros((1, (size + 31) // 32), dtype=np.int32)
        self.row, self.matcher = self.rows[0], matcher

    def fill(self) -> None:
        self.matcher.fill_bitmask(self.rows)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


def grammarspec(tokenizer: Any) -> Compile:
    """grammarspec with its defaults."""
    import grammarspec as gs

    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer)

    def compile(schema: dict[str, Any]) -> Callable[[], Sequence]:
        constraint = gs.compile(gs.json_schema(schema), vocabulary)
        return lambda: _GrammarSpec(constraint.matcher(), vocabulary.size)

    return compile


def grammarspec_cold(tokenizer: Any) -> Compile:
    """grammarspec without the caches that grammars of one vocabulary share."""
    import grammarspec as gs

    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer)

    def compile(schema: dict[str, Any]) -> Callable[[], Sequence]:
        constraint = gs.compile(gs.json_schema(schema), vocabulary.without_caches())
        return lambda: _GrammarSpec(constraint.matcher(), vocabulary.size)

    return compile


class _LLGuidance:
    def __init__(self, matcher: Any, size: int) -> None:
        self.row = np.zeros((size + 31) // 32, dtype=np.int32)
        self.matcher = matcher

    def fill(self) -> None:
        self.matcher.unsafe_compute_mask_ptr(self.row.ctypes.data, self.row.nbytes)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.consume_token(token))


def llguidance(tokenizer: Any) -> Compile:
    """llguidance with its defaults."""
    import llguidance as llg
    import llguidance.hf

    wrapped = llguidance.hf.from_tokenizer(tokenizer)

    def compile(schema: dict[str, Any]) -> Callable[[], Sequence]:
        matcher = llg.LLMatcher(wrapped, json.dumps({"grammars": [{"json_schema": schema}]}), log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return lambda: _LLGuidance(matcher.deep_copy(), len(tokenizer))

    return compile


class _XGrammar:
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self.matcher, self.bitmask = matcher, bitmask
        self.row = bitmask.numpy()[0]

    def fill(self) -> None:
        self.matcher.fill_next_token_bitmask(self.bitmask)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


def xgrammar(tokenizer: Any) -> Compile:
    """XGrammar with its defaults, on one thread, its cache between schemas on."""
    import xgrammar as xgr

    info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
    compiler = xgr.GrammarCompiler(info, max_threads=1)

    def compile(schema: dict[str, Any]) -> Callable[[], Sequence]:
        compiled = compiler.compile_json_schema(json.dumps(schema))
        return lambda: _XGrammar(xgr.GrammarMatcher(compiled), xgr.allocate_token_bitmask(1, len(tokenizer)))

    return compile


ENGINES: dict[str, Callable[[Any], Compile]] = {
    "grammarspec": grammarspec,
    "grammarspec_cold": grammarspec_cold,
    "llguidance": llguidance,
    "xgrammar": xgrammar,
}
