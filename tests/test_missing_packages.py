"""Without an optional package, what needs it says which command installs it, and all else works."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import grammarspec as gs
try:
    {statement}
except gs.MissingPackage as error:
    assert isinstance(error, ImportError)
    print(error)
"""


def said(blocked: str, statement: str) -> str:
    probe = PROBE.format(blocked=blocked.split(), statement=statement)
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize(
    ("blocked", "statement", "install"),
    [
        ("torch", "gs.Sampling", "'grammarspec[transformers]'"),
        ("torch", "gs.Model", "'grammarspec[transformers]'"),
        ("torch", "gs.Stream, gs.use, gs.Model.from_pretrained('x')", "'grammarspec[transformers]'"),
        ("torch", "import grammarspec.decoding", "'grammarspec[transformers]'"),
        ("torch", "import grammarspec.integrations.transformers", "'grammarspec[transformers]'"),
        ("transformers", "gs.Model", "'grammarspec[transformers]'"),
        ("transformers", "import grammarspec.integrations.transformers", "'grammarspec[transformers]'"),
        ("transformers", "gs.Vocabulary.from_pretrained('x')", "'grammarspec[transformers]'"),
        ("numpy", "gs.allocate_bitmask(1, 8)", "numpy"),
        ("pydantic", "gs.grammar(int)", "'grammarspec[types]'"),
        ("pydantic", "gs.literal('a') + int", "'grammarspec[types]'"),
        ("pydantic", "gs.check(int)", "'grammarspec[types]'"),
        ("pydantic", "exec('def f(a: int) -> int: ...'); gs.tool(f).parameters", "'grammarspec[types]'"),
        ("pydantic_core", "gs.grammar(int)", "'grammarspec[types]'"),
        ("msgspec", "import msgspec_struct", "msgspec"),
        ("lark lark.load_grammar", "gs.lark('start: \"a\"')", "'grammarspec[lark]'"),
        ("referencing", "from grammarspec.cli.files import registry; registry(['x'], '{}')", "referencing"),
    ],
)
def test_what_to_install(blocked: str, statement: str, install: str) -> None:
    if statement == "import msgspec_struct":
        statement = "gs.grammar(type('S', (), {'__struct_fields__': ()}))"
    answer = said(blocked, statement)
    assert answer.endswith(f"\n  hint: pip install {install}\n")
    assert f"the package {blocked.split(maxsplit=1)[0]} is missing" in answer


def test_what_needs_no_package() -> None:
    statement = (
        "import re; word = gs.regex('a') + re.compile('B', re.I); "
        "gs.compile(word, gs.Vocabulary.bytes()).matcher().accept_tokens(b'ab'); print(word.matches('ab')); "
        "gs.json_schema({'type': 'integer'}).parse('1'); gs.run_tools, gs.ToolLimitExceeded"
    )
    assert said("torch transformers numpy pydantic pydantic_core lark referencing msgspec", statement) == "True\n"
