"""Other engines as judges of texts, over single bytes. Tests are skipped where these are not installed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

__all__ = ["NOT_INSTALLED", "llguidance_judge", "mutated", "xgrammar_judge"]

NOT_INSTALLED = {
    name: f"{name}, which grammars are compared with, is not installed" for name in ("llguidance", "xgrammar")
}
"""Why tests are skipped where a package is missing. Both are large, and no requirement of the tests."""

Judge = Callable[[str], bool]


def llguidance_judge(grammar: str) -> Judge:
    """Whether llguidance takes a text as a whole, by a grammar in its syntax.

    Raises:
        ValueError: llguidance refuses the grammar.
    """
    llguidance = pytest.importorskip("llguidance", reason=NOT_INSTALLED["llguidance"])
    matcher = llguidance.LLMatcher
    made = matcher(llguidance.LLTokenizer("byte"), matcher.grammar_from_lark(grammar), log_level=0)
    if made.is_error():
        raise ValueError(made.get_error())

    def judge(text: str) -> bool:
        own = made.deep_copy()
        return all(own.consume_token(byte) for byte in text.encode()) and own.is_accepting()

    return judge


def xgrammar_judge(grammar: str) -> Judge:
    """Whether XGrammar takes a text as a whole, by a grammar in its EBNF.

    Raises:
        RuntimeError: XGrammar refuses the grammar.
    """
    xgrammar = pytest.importorskip("xgrammar", reason=NOT_INSTALLED["xgrammar"])
    tokens = [bytes([value]) for value in range(256)]
    info = xgrammar.TokenizerInfo([*tokens, b"<eos>"], vocab_size=257, stop_token_ids=[256])
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_grammar(xgrammar.Grammar.from_ebnf(grammar))

    def judge(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return all(map(matcher.accept_token, text.encode())) and bool(matcher.accept_token(256))

    return judge


def mutated(text: str, pool: list[str], draw: Callable[[int], int]) -> str:
    """A text with one character taken out, replaced or added.

    Args:
        pool: what is added.
        draw: a random number below its argument.
    """
    at, chosen = draw(len(text) + 1), pool[draw(len(pool))]
    return text[:at] + (chosen if draw(3) else "") + text[at + draw(2) :]
