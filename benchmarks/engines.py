"""The engines behind one interface: compile a schema, then walk texts mask by mask, or fill the masks of a batch.

Each engine is used through its cheapest public calls that write masks into memory of the caller.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Text(Protocol):
    """One sequence under one constraint."""

    row: np.ndarray

    def fill(self) -> None:
        """Write the mask into ``row``: int32, one bit for each token."""

    def accept(self, token: int) -> bool: ...


Compile = Callable[[dict[str, Any]], Callable[[], Any]]
"""Compiles a schema; the result makes texts under it."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine on a vocabulary."""

    compile: Compile
    batch: Callable[[int], Callable[[Sequence[Any]], None]] | None = None
    """Takes a number of threads and returns a function that fills the masks of many texts, if the engine has one."""


def words(tokenizer: Any) -> int:
    """The number of 32-bit words of a mask."""
    return (len(tokenizer) + 31) // 32


class _GrammarSpec:
    def __init__(self, matcher: Any, width: int) -> None:
        self.rows = np.zeros((1, width), dtype=np.int32)
        self.row, self.matcher = self.rows[0], matcher

    def fill(self) -> None:
        self.matcher.fill_bitmask(self.rows)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


def grammarspec(tokenizer: Any, *, caches: bool = True) -> Engine:
    """grammarspec with its defaults."""
    import grammarspec as gs

    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer)

    def compile(schema: dict[str, Any]) -> Callable[[], _GrammarSpec]:
        used = vocabulary if caches else vocabulary.without_caches()
        # that it can be cancelled keeps later rounds from finding it, with its masks
        constraint = gs.compile(gs.json_schema(schema), used, cancel=gs.CancelToken())
        return lambda: _GrammarSpec(constraint.matcher(), words(tokenizer))

    def batch(threads: int) -> Callable[[Sequence[Any]], None]:
        rows = np.zeros((1024, words(tokenizer)), dtype=np.int32)
        return lambda texts: gs.fill_bitmasks([text.matcher for text in texts], rows, threads)

    return Engine(compile, batch)


def grammarspec_cold(tokenizer: Any) -> Engine:
    """grammarspec without the caches that grammars on one vocabulary share."""
    return grammarspec(tokenizer, caches=False)


class _LLGuidance:
    def __init__(self, matcher: Any, width: int) -> None:
        self.row = np.zeros(width, dtype=np.int32)
        self.matcher = matcher

    def fill(self) -> None:
        self.matcher.unsafe_compute_mask_ptr(self.row.ctypes.data, self.row.nbytes)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.consume_token(token))


def llguidance(tokenizer: Any) -> Engine:
    """llguidance with its defaults."""
    import llguidance as llg
    import llguidance.hf

    wrapped = llguidance.hf.from_tokenizer(tokenizer)

    def compile(schema: dict[str, Any]) -> Callable[[], _LLGuidance]:
        matcher = llg.LLMatcher(wrapped, json.dumps({"grammars": [{"json_schema": schema}]}), log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return lambda: _LLGuidance(matcher.deep_copy(), words(tokenizer))

    def batch(threads: int) -> Callable[[Sequence[Any]], None]:
        executor = llg.LLExecutor(num_threads=threads)
        rows = np.zeros((1024, words(tokenizer)), dtype=np.int32)

        def fill(texts: Sequence[Any]) -> None:
            jobs = [(text.matcher, i) for i, text in enumerate(texts)]
            executor.unsafe_compute_mask_ptr(jobs, rows.ctypes.data, rows[0].nbytes, len(rows))

        return fill

    return Engine(compile, batch)


class _XGrammar:
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self.matcher, self.bitmask = matcher, bitmask
        self.row = bitmask.numpy()[0]

    def fill(self) -> None:
        self.matcher.fill_next_token_bitmask(self.bitmask)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


def xgrammar(tokenizer: Any) -> Engine:
    """XGrammar with its defaults, compiling on one thread, its cache between schemas on."""
    import xgrammar as xgr

    info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
    compiler = xgr.GrammarCompiler(info, max_threads=1)

    def compile(schema: dict[str, Any]) -> Callable[[], _XGrammar]:
        compiled = compiler.compile_json_schema(json.dumps(schema))
        return lambda: _XGrammar(xgr.GrammarMatcher(compiled), xgr.allocate_token_bitmask(1, len(tokenizer)))

    def batch(threads: int) -> Callable[[Sequence[Any]], None]:
        filler = xgr.BatchGrammarMatcher(max_threads=threads)
        rows = xgr.allocate_token_bitmask(1024, len(tokenizer))
        return lambda texts: filler.batch_fill_next_token_bitmask([text.matcher for text in texts], rows)

    return Engine(compile, batch)


class _OutlinesCore:
    def __init__(self, guide: Any, width: int) -> None:
        self.row = np.zeros(width, dtype=np.int32)
        self.guide = guide

    def fill(self) -> None:
        self.guide.write_mask_into(self.row.ctypes.data, self.row.size, 4)

    def accept(self, token: int) -> bool:
        self.guide.advance(token, return_tokens=False)
        return True


def outlines_core(tokenizer: Any) -> Engine:
    """outlines-core: the schema as a regular expression, indexed over the whole vocabulary."""
    import outlines_core as oc
    from outlines_core.json_schema import build_regex_from_schema

    import grammarspec as gs

    tokens = gs.Vocabulary.from_tokenizer(tokenizer)
    table: dict[bytes, list[int]] = {}
    for token in range(tokens.size):
        if (text := tokens.token_bytes(token)) is not None:
            table.setdefault(text, []).append(token)
    vocabulary = oc.Vocabulary(tokenizer.eos_token_id, table)

    def compile(schema: dict[str, Any]) -> Callable[[], _OutlinesCore]:
        index = oc.Index(build_regex_from_schema(json.dumps(schema)), vocabulary)
        return lambda: _OutlinesCore(oc.Guide(index), words(tokenizer))

    return Engine(compile)


ENGINES: dict[str, Callable[[Any], Engine]] = {
    "grammarspec": grammarspec,
    "grammarspec_cold": grammarspec_cold,
    "llguidance": llguidance,
    "xgrammar": xgrammar,
    "outlines_core": outlines_core,
}


def from_lark(name: str, tokenizer: Any) -> Callable[[Any], Callable[[], Any]]:
    """Compilers of ``.lark`` files (``benchmarks.grammars.File``), with limits that none of them meets.

    ``grammarspec-sharing`` finds what it has compiled before, as users do, within the default limits.
    ``llguidance-rewritten`` is llguidance on what :func:`without_refused` makes of a file.
    """
    if name in ("grammarspec", "grammarspec-sharing"):
        import grammarspec as gs
        from tests.frontends.lark import judge

        vocabulary = gs.Vocabulary.from_tokenizer(tokenizer)
        shares = name == "grammarspec-sharing"
        limits = gs.Limits() if shares else gs.Limits(max_steps=10**9, max_memory=4 << 30)

        def ours(real: Any) -> Callable[[], _GrammarSpec]:
            grammar = gs.load(real.file, limits=limits, **judge.our_options(real.options()))
            # one that can be cancelled is not found again
            constraint = gs.compile(grammar, vocabulary, limits=limits, cancel=None if shares else gs.CancelToken())
            return lambda: _GrammarSpec(constraint.matcher(), words(tokenizer))

        return ours
    import llguidance as llg
    import llguidance.hf

    wrapped = llguidance.hf.from_tokenizer(tokenizer)

    def theirs(real: Any) -> Callable[[], _LLGuidance]:
        text = real.file.read_text(encoding="utf-8")
        rewritten = without_refused(text) if name == "llguidance-rewritten" else text
        grammar = llg.LLMatcher.grammar_from_lark(rewritten)
        matcher = llg.LLMatcher(wrapped, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return lambda: _LLGuidance(matcher.deep_copy(), words(tokenizer))

    return theirs


def without_refused(text: str) -> str:
    """A ``.lark`` text without priorities and lookarounds, which llguidance refuses; it means something else then."""
    text = re.sub(r"^(\??[A-Za-z_0-9]+)\.-?\d+(?=\s*:)", r"\1", text, flags=re.MULTILINE)
    while begun := re.search(r"\(\?<?[=!]", text):
        end, depth = begun.end(), 1
        while depth and end < len(text):
            part = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|.", re.DOTALL).match(text, end)
            assert part is not None
            depth += {"(": 1, ")": -1}.get(part[0], 0)
            end = part.end()
        text = text[: begun.start()] + text[end:]
    return text
