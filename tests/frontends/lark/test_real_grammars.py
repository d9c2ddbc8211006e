"""Real ``.lark`` files, unchanged: what lark and we say of their inputs, of mutations of them, and of our samples.

How many grammars load, and how many verdicts agree, is kept in tests/ratchet.json and may only rise; none may differ.
"""

from __future__ import annotations

from typing import Any

import pytest

import grammarspec as gs
from tests import ratchet, tiers

pytest.importorskip("lark")
real = pytest.importorskip("tests.frontends.lark.real")

pytestmark = pytest.mark.suite

ROWS = real.read()
QUOTAS = real.Quotas(real=20, mutated=60, sampled=10)
"""As few as find what there is to find: lark takes its time. ``python -m tests.frontends.lark.real`` judges more."""
EXCEEDING = {"asciidoc", "asciidoc-inline"}
"""Grammars whose masks take more than the default limits allow."""


@pytest.mark.property
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_real_grammar(row: real.Real, pytestconfig: pytest.Config) -> None:
    if not row.file.is_file():
        pytest.skip("make grammars-test fetches real grammars")
    result = real.run(row, QUOTAS, seed=tiers.seed(1))
    print(result.line())
    counts = {"loads": 0, "inputs that lark takes": result.taken[0]}
    if result.score is not None:
        assert result.score.differing == []
        counts["loads"] = 1
        # Which mutations get a verdict in time depends on the machine, and of samples on the engine: few may be lost.
        agreed = {kind: result.score.agreed[kind] for kind in real.judge.KINDS}
        counts["inputs that agree"] = agreed["real"]
        assert agreed["mutated"] + agreed["sampled"] >= result.score.undecided.total()
    ratchet.check(pytestconfig, f"real grammars, {row.name}", counts)


@pytest.mark.property
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_masks_stay_within_the_default_limits(row: real.Real, tekken: Any) -> None:
    if not row.file.is_file():
        pytest.skip("make grammars-test fetches real grammars")
    try:
        grammar = real.judge.open_ours(row.file, row.options())
    except gs.UnsupportedFeature:
        return  # how many load is counted above
    vocabulary = gs.Vocabulary.from_tokenizer(tekken)
    constraint = gs.compile(grammar, vocabulary)
    bitmask = gs.allocate_bitmask(1, vocabulary.size)
    for text in row.inputs(3)[:3]:
        matcher = constraint.matcher()
        try:
            for token in tekken.encode(text, bos=False, eos=False)[:20]:
                matcher.fill_bitmask(bitmask)
                is_allowed = bool(int(bitmask[0][token >> 5]) >> (token & 31) & 1)
                assert matcher.accept_token(token) == is_allowed
                if not is_allowed:  # lark refuses some of the inputs, too
                    break
        except gs.LimitExceeded:
            if row.name in EXCEEDING:
                pytest.xfail("exceeds the default limits")
            raise


def test_names_are_unique() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_every_grammar_has_inputs_that_lark_takes() -> None:
    assert len(ROWS) >= 50
    assert [row.name for row in ROWS if not {"texts", "files", "strings", "find"} & row.row.keys()] == []
