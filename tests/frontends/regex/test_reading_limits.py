"""Reading a pattern is work, too: it counts towards the limit of steps, before it is done."""

from __future__ import annotations

import time

import pytest

import grammarspec as gs


@pytest.mark.parametrize("pattern", ["(" * 500_000, "()" * 500_000, "a|" * 500_000, r"\d" * 500_000])
def test_long_patterns_are_refused_at_once(pattern: str) -> None:
    begin = time.process_time()
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        gs.regex(pattern)
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        gs.json_schema({"type": "string", "pattern": pattern})
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        gs.llguidance(f"%llguidance {{}}\nstart: /{pattern}/")
    assert time.process_time() - begin < 1.5  # reading it takes 3 to 9 seconds


def test_patterns_of_many_signs_are_read() -> None:
    many = "|".join(f"a{number}" for number in range(20_000))
    assert gs.regex(many).matches("a19999")
    assert gs.regex("ab" * 500_000) is not None
