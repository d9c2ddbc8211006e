"""What a constraint holds in memory over many calls is what it counts, so that ``max_memory`` bounds it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by Linux's /proc")

_MEMBERS_IN_ANY_ORDER = """
import grammarspec as gs
from tests.hostile.measuring import memory

schema = {"type": "object", "properties": {f"name{i}": {"type": "integer"} for i in range(4_000)}}
grammar = gs.json_schema(schema, property_order="any")
constraint = gs.compile(grammar, gs.Vocabulary.bytes(), limits=gs.Limits(max_memory=32 << 20))
matcher = constraint.matcher()
matcher.accept_tokens(b'{"name0":1')
before = memory("VmRSS")
for i in range(1, 400):
    text = f',"name{i}":1'.encode()
    assert matcher.accept_tokens(text) == len(text)
print(memory("VmRSS") - before)
"""


def test_unions_of_all_members_are_counted() -> None:
    """Each member leaves a question with thousands of alternatives behind, and unions of as many operands."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _MEMBERS_IN_ANY_ORDER], capture_output=True, text=True, cwd=root, check=True
    )
    assert int(done.stdout) < 28 << 20  # it was 45 MB
