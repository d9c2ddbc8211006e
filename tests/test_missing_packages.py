"""Without an optional package, what needs it says which command installs it, and all else works."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import tiers

PROBE = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import grammarspec as gs
for statement in {statements!r}:
    try:
        exec(statement)
    except gs.MissingPackage as error:
        assert isinstance(error, ImportError)
        print(error)
    print({after!r})
"""
AFTER = "-" * 9
STRUCT = "gs.grammar(type('S', (), {'__struct_fields__': ()}))"


def said(blocked: str, statements: list[str]) -> list[str]:
    """What each of the statements prints, or the error of a missing package: all in one process."""
    probe = PROBE.format(blocked=blocked.split(), statements=statements, after=AFTER)
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.split(f"{AFTER}\n")[:-1]


@pytest.mark.parametrize(
    ("blocked", "statements", "install"),
    [
        (
            "torch",
            [
                "gs.Sampling",
                "gs.Model",
                "gs.Stream, gs.use, gs.Model.from_pretrained('x')",
                "import grammarspec.decoding",
                "import grammarspec.integrations.transformers",
            ],
            "'grammarspec[transformers]'",
        ),
        tiers.slow(
            "transformers",
            ["gs.Vocabulary.from_pretrained('x')", "gs.Model", "import grammarspec.integrations.transformers"],
            "'grammarspec[transformers]'",
        ),
        (
            "numpy",
            [
                "gs.allocate_bitmask(1, 8)",
                "gs.compile(gs.regex('a'), gs.Vocabulary.bytes()).freeze()",
                "gs.FrozenArena(9)",
            ],
            "numpy",
        ),
        (
            "safetensors",
            [
                "gs.FrozenConstraint.load('x')",
                "gs.compile(gs.regex('a'), gs.Vocabulary.bytes()).freeze().save('x')",
            ],
            "'grammarspec[frozen]'",
        ),
        (
            "pydantic",
            [
                "gs.grammar(int)",
                "gs.literal('a') + int",
                "gs.check(int)",
                "def f(a: int) -> int: ...\ngs.tool(f).parameters",
            ],
            "'grammarspec[types]'",
        ),
        ("pydantic_core", ["gs.grammar(int)"], "'grammarspec[types]'"),
        ("msgspec", [STRUCT], "msgspec"),
        (
            "lark lark.load_grammar",
            [f"gs.{name}('start: \"a\"')" for name in ("lark", "check_lark")]
            + ["gs.explain_lark('start: \"a\"', 'a')"],
            "'grammarspec[lark]'",
        ),
        ("railroad", ["gs.draw_lark('start: \"a\"')"], "'grammarspec[railroads]'"),
        ("referencing", ["from grammarspec.cli.files import registry; registry(['x'], '{}')"], "referencing"),
    ],
)
def test_what_to_install(blocked: str, statements: list[str], install: str) -> None:
    answers = said(blocked, statements)
    assert len(answers) == len(statements)
    for answer in answers:
        assert answer.endswith(f"\n  hint: pip install {install}\n")
        assert f"the package {blocked.split(maxsplit=1)[0]} is missing" in answer


@pytest.mark.slow
@pytest.mark.parametrize("blocked", ["uvicorn", "starlette", "prometheus_client"])
def test_the_server_says_what_to_install(blocked: str) -> None:
    probe = f"import sys; sys.modules[{blocked!r}] = None; from grammarspec.cli import main; sys.exit(main(['serve']))"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert run.returncode == 2 and run.stdout == ""
    [line] = run.stderr.splitlines()
    assert line.startswith(f"grammarspec: error: the server: the package {blocked} is missing")
    assert line.endswith("hint: pip install 'grammarspec[server]' [missing-package]")


@pytest.mark.parametrize("blocked", ["torch", tiers.slow("transformers")])
def test_commands_say_what_to_install(blocked: str) -> None:
    """All that run a model say the same."""
    commands = [
        ["generate", "--regex", "a", "b"],
        ["generate", "--regex", "a", "--draft", "eagle:missing", "b"],
        ["bench", "speculative"],
    ]
    probe = f"import sys; sys.modules[{blocked!r}] = None; from grammarspec.cli import main; sys.exit(main({{}}))"
    for command in commands:
        run = subprocess.run([sys.executable, "-c", probe.format(command)], capture_output=True, text=True, check=False)
        assert run.returncode == 2 and run.stdout == ""
        [line] = run.stderr.splitlines()
        assert line.startswith(f"grammarspec: error: generating texts: the package {blocked} is missing")
        assert line.endswith("hint: pip install 'grammarspec[transformers]' [missing-package]")


def test_what_needs_no_package() -> None:
    statement = (
        "import re; word = gs.regex('a') + re.compile('B', re.I); "
        "gs.compile(word, gs.Vocabulary.bytes()).matcher().accept_tokens(b'ab'); print(word.matches('ab')); "
        "gs.json_schema({'type': 'integer'}).parse('1'); gs.run_tools, gs.ToolLimitExceeded"
    )
    assert said("torch transformers numpy pydantic pydantic_core lark referencing msgspec", [statement]) == ["True\n"]
