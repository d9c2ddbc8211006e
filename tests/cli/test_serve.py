"""The command that serves: its options, and what it refuses."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import grammarspec as gs
from grammarspec.cli import main

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("uvicorn")

from grammarspec.cli.serve import read_limits
from grammarspec.server import Settings


def test_limits_are_read() -> None:
    usual = Settings(name="x").limits
    assert read_limits("") == usual
    assert read_limits("timeout=0.5, max_steps=7") == gs.Limits(
        max_steps=7, timeout=0.5, max_call_steps=usual.max_call_steps, max_memory=usual.max_memory
    )
    for wrong in ("steps=1", "max_steps", "max_steps=x", "max_steps=0", "timeout=-1", "timeout"):
        with pytest.raises(ValueError, match=r"max_steps|timeout"):
            read_limits(wrong)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-batch", "0"], "max_batch must be at least 1"),
        (["--max-waiting", "0"], "max_waiting must be at least 1"),
        (["--port", "70000"], "--port must be from 0 to 65535"),
        (["--api-key", ""], "the API key must not be empty"),
        (["--grace", "-1"], "must not be negative"),
        (["--draft", "forced,none"], "cannot stand beside others"),
        (["--model", "missing.gguf"], "no such file: missing.gguf"),
    ],
)
def test_what_is_refused(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_as_a_program(tiny_model_directory: Path) -> None:
    """It says where it listens, answers, and ends without an error when it is interrupted."""
    command = [sys.executable, "-m", "grammarspec", "serve", "--model", str(tiny_model_directory), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr
            place = next(found[0] for line in server.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
            asked = {"model": str(tiny_model_directory), "prompt": "x", "structured_outputs": {"choice": ["yes"]}}
            request = urllib.request.Request(
                f"{place}/v1/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert json.load(answer)["choices"][0]["text"] == "yes"
            server.send_signal(signal.SIGINT)
            server.stderr.read()
            assert server.wait(timeout=60) == 0
        finally:
            server.kill()
