"""The command ``grammarspec serve``: serves a model to clients of OpenAI's HTTP interface, on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from dataclasses import fields
from typing import Any

from grammarspec.cli.drafts import read_drafts
from grammarspec.cli.options import Commands, add_command
from grammarspec.grammars.engine import Limits

__all__ = ["add_parser"]

_EXIT_CODES = """exit codes:
  0    the server was told to stop
  2    the model or an option cannot be used
  3    the address cannot be used"""
_NUMBERS = {field.name for field in fields(Limits)}


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    serve = add_command(
        commands,
        "serve",
        _serve,
        summary="serve a model to clients of OpenAI's HTTP interface",
        description="Serve a model to clients of OpenAI's HTTP interface, on one machine.",
        exit_codes=_EXIT_CODES,
    )
    model = serve.add_argument_group("model")
    model.add_argument("--model", default="smollm2", help="directory, .gguf file or hub name (%(default)s)")
    model.add_argument("--name", help="what requests call it (what --model says)")
    model.add_argument(
        "--draft",
        metavar="SOURCES",
        help="where drafts come from, as in grammarspec generate (forced,lookup; none for a model that cannot "
        "take tokens back)",
    )
    model.add_argument("--gamma", type=int, default=16, help="tokens of a draft at most (%(default)s)")
    address = serve.add_argument_group("address")
    address.add_argument("--host", default="127.0.0.1", help="(%(default)s)")
    address.add_argument("--port", type=int, default=8000, help="(%(default)s)")
    address.add_argument("--api-key", metavar="KEY", help="what clients have to send; or GRAMMARSPEC_API_KEY is")
    limits = serve.add_argument_group("limits")
    limits.add_argument("--max-batch", type=int, default=16, help="texts generated together at most (%(default)s)")
    limits.add_argument("--max-waiting", type=int, default=64, help="requests that wait at most (%(default)s)")
    limits.add_argument("--max-tokens", type=int, default=2048, help="of one text at most (%(default)s)")
    limits.add_argument("--max-body", type=int, default=4 << 20, help="bytes of a request at most (%(default)s)")
    limits.add_argument(
        "--limits",
        metavar="NAME=NUMBER,...",
        help="what the grammar of a request may use: "
        "max_states, max_memory, max_steps, max_call_steps, max_depth, timeout (max_call_steps=1000000,"
        "max_memory=134217728,timeout=10)",
    )
    limits.add_argument("--grace", type=int, default=30, help="seconds for what is under way at the end (%(default)s)")


def _serve(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    from grammarspec.models.model import Model
    from grammarspec.server import Settings, serve

    if not 0 <= options.port < 1 << 16:
        raise ValueError(f"--port must be from 0 to 65535, not {options.port}")
    if options.grace < 0 or options.gamma < 0:
        raise ValueError("--grace and --gamma must not be negative")
    settings = Settings(
        name=options.model if options.name is None else options.name,
        max_batch=options.max_batch,
        max_waiting=options.max_waiting,
        max_tokens=options.max_tokens,
        max_body=options.max_body,
        limits=read_limits(options.limits or ""),
        api_key=os.environ.get("GRAMMARSPEC_API_KEY") if options.api_key is None else options.api_key,
    )
    drafts = None if options.draft is None else read_drafts(options.draft)
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    model = Model.from_pretrained(options.model, gamma=options.gamma, limits=settings.limits)
    if drafts is not None:
        made = [make(model.model, model.vocabulary) for make in drafts]
        model = Model(model.model, model.tokenizer, draft=made, gamma=options.gamma, limits=settings.limits)
    with suppress(KeyboardInterrupt):  # the server has handled the signal already
        serve(model, settings, host=options.host, port=options.port, grace=options.grace)
    return 0


def read_limits(text: str) -> Limits:
    """Read the option ``--limits``; limits that it does not name have the defaults of the server.

    Args:
        text: ``NAME=NUMBER``, or several of these with commas between them.

    Raises:
        ValueError: there is no limit of such a name, or a value is wrong.
    """
    from grammarspec.server.settings import LIMITS

    given: dict[str, Any] = {name: getattr(LIMITS, name) for name in _NUMBERS}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        name = name.strip()
        if name not in _NUMBERS:
            raise ValueError(f"--limits: there is no limit {name!r}, but {', '.join(sorted(_NUMBERS))}")
        try:
            given[name] = float(value) if name == "timeout" else int(value)
        except ValueError:
            raise ValueError(f"--limits: {name} must be a number, not {value!r}") from None
    return Limits(**given)
