"""The command ``grammarspec generate``: let a model write a text of a grammar.

Its arguments are a grammar, a model and a prompt. It prints the text that the model writes, or JSON with the text.
"""

from __future__ import annotations

import argparse
import codecs
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grammarspec
from grammarspec.cli.drafts import read_drafts
from grammarspec.cli.files import STDIN, file_text, lark_file, registry, schema_text
from grammarspec.cli.lookaheads import add_lookahead_options, read_lookahead
from grammarspec.cli.options import (
    Commands,
    add_command,
    add_lark_options,
    add_output,
    add_schema_options,
    lark_options,
)

if TYPE_CHECKING:
    from grammarspec.decoding import Evidence, Generation

__all__ = ["add_parser"]

COMPLETE, CUT_SHORT = 0, 1
_EXIT_CODES = """exit codes:
  0    the output is a whole text of the grammar
  1    --max-tokens or the model's context ran out first: the output is a beginning of one
  2    the grammar, a file or an option cannot be used; nothing was generated
  130  interrupted
  141  nobody reads the output any more"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    generate = add_command(
        commands,
        "generate",
        _generate,
        summary="let a model write a text of a grammar",
        description="Let a model write a text of a grammar: a JSON Schema, a regular expression or a grammar.",
        exit_codes=_EXIT_CODES,
    )
    grammar = generate.add_mutually_exclusive_group(required=True)
    grammar.add_argument(
        "--schema", metavar="FILE", type=Path, help="a JSON Schema; - is standard input, here and below"
    )
    grammar.add_argument("--regex", metavar="PATTERN", help="a regular expression in Python's syntax")
    grammar.add_argument(
        "--lark",
        metavar="FILE",
        type=Path,
        help="a grammar in lark's syntax, or the name of a shipped one (json, sql, ...); - is standard input",
    )
    grammar.add_argument("--gbnf", metavar="FILE", type=Path, help="a grammar in GBNF, or XGrammar's EBNF")
    grammar.add_argument("--llguidance", metavar="FILE", type=Path, help="a grammar in llguidance's syntax")
    add_schema_options(generate)
    add_lark_options(generate.add_argument_group("options of --lark", "Those of lark in Python."))
    model = generate.add_argument_group("model")
    model.add_argument("--model", default="smollm2", help="directory, .gguf file or hub name (%(default)s)")
    model.add_argument("--system", metavar="TEXT", help="system message")
    speculation = generate.add_argument_group(
        "speculation",
        "Drafts are verified by one pass of the model; they change what the output costs, not its distribution.",
    )
    speculation.add_argument(
        "--draft",
        metavar="SOURCES",
        help="where drafts come from, in order of preference: forced (what the grammar forces), "
        "lookup (what followed the same tokens before), eagle:FILE (a head that reads the model's hidden states), "
        "layers:N (the model's own first N layers), "
        "a smaller model (directory, .gguf file or hub name), or none "
        "(forced,lookup; none for a model that cannot take tokens back)",
    )
    speculation.add_argument("--gamma", type=int, default=16, help="tokens of a draft at most (%(default)s)")
    add_lookahead_options(generate)
    sampling = generate.add_argument_group("sampling")
    sampling.add_argument("--temperature", type=float, default=0.0, help="0: the most probable token (%(default)s)")
    sampling.add_argument("--top-p", type=float, help="keep the most probable tokens up to this probability together")
    sampling.add_argument("--top-k", type=int, help="keep so many of the most probable tokens")
    sampling.add_argument("--min-p", type=float, help="keep tokens at least so probable, relative to the best one")
    sampling.add_argument("--seed", type=int, help="of the random draws")
    sampling.add_argument("--max-tokens", type=int, default=512, help="generate at most so many (%(default)s)")
    sampling.add_argument(
        "--on-limit",
        choices=("cut", "close"),
        default="cut",
        help="where these run out: cut the text short, or steer it to an ending in time (%(default)s)",
    )
    sampling.add_argument(
        "--forced",
        choices=("sample", "feed"),
        default="sample",
        help="feed: append text that the grammar forces without asking the model; the same texts are possible, "
        "but not with the same probabilities (%(default)s)",
    )
    sampling.add_argument(
        "--law",
        choices=("masked", "conditional"),
        default="masked",
        help="draw from the model's distribution, masked at each token, or given that the whole text is valid; "
        "conditional needs a --temperature (%(default)s)",
    )
    sampling.add_argument(
        "--particles", type=int, help="with --law conditional: write so many texts, and choose among them (8)"
    )
    output = generate.add_argument_group("output")
    add_output(output)
    output.add_argument("--stats", action="store_true", help="counts and times, on standard error or in the JSON")
    generate.add_argument("prompt", metavar="PROMPT", help="what the user says; - is standard input")


def _generate(options: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    files = options.schema, options.lark, options.gbnf, options.llguidance
    if [*map(str, files), options.prompt].count(STDIN) > 1:
        raise ValueError("standard input can stand for one thing only: the grammar or the prompt")
    if options.gamma < 0:
        raise ValueError(f"--gamma must be at least 0, not {options.gamma}")
    if options.law == "masked" and options.particles is not None:
        raise ValueError("--particles is an option of --law conditional")
    if options.law == "conditional" and options.forced == "feed":
        raise ValueError(
            "--forced feed does not score the text that it appends, as --law conditional must: leave it out"
        )
    grammar = _grammar(options)
    prompt = file_text(Path(STDIN)) if options.prompt == STDIN else options.prompt
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # transformers would draw progress bars into files, too
    from grammarspec.decoding import Request, Sampling, generate, generate_conditional
    from grammarspec.decoding.conditional import check_conditional
    from grammarspec.decoding.lookahead import generate_with_lookahead
    from grammarspec.decoding.targets import can_draft
    from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of

    sampling = Sampling(
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        seed=options.seed,
        max_tokens=options.max_tokens,
        on_limit=options.on_limit,
    )
    particles = 8 if options.particles is None else options.particles
    if options.law == "conditional":
        check_conditional(sampling, particles)
    lookahead = read_lookahead(options, sampling)
    drafts = None if options.draft is None else read_drafts(options.draft)
    model, tokenizer = load_model(options.model)
    vocabulary = vocabulary_of(model, tokenizer)
    constraint = grammarspec.compile(grammar, vocabulary)
    if drafts is None and lookahead is None:
        drafts = read_drafts("forced,lookup" if can_draft(model) else "none")
    plain = options.output == "text"
    # On a terminal, the text is shown while it is generated: as the output, or on standard error to show progress.
    live = sys.stdout if plain and sys.stdout.isatty() else sys.stderr if sys.stderr.isatty() else None
    tokens = encode_prompt(tokenizer, prompt, options.system)
    proposers = [make(model, vocabulary) for make in drafts or ()]
    on_text = None if live is None else _writer(live.write, live.flush)
    request = Request(prompt=tokens, matcher=constraint.matcher(), sampling=sampling)
    evidence = None
    if options.law == "conditional":
        live = None  # which of the particles is the text is known at the end only
        [[found]] = generate_conditional(
            model, [request], vocabulary, particles=particles, proposers=proposers, gamma=options.gamma
        )
        result, evidence = found.text, found.evidence
    elif lookahead is not None:
        [[result]] = generate_with_lookahead(
            model,
            [request],
            vocabulary,
            reward=lookahead.reward,
            lookahead=lookahead.how,
            proposers=proposers,
            on_text=None if on_text is None else lambda _request, _sample, data: on_text(data),
        )
    else:
        result = generate(
            model,
            tokens,
            constraint.matcher(),
            vocabulary,
            sampling=sampling,
            proposers=proposers,
            gamma=options.gamma,
            forced=options.forced,
            on_text=on_text,
        )
    if result.error is not None:
        raise result.error
    if live is not None:
        print(file=live)
    if not plain:
        print(json.dumps(_report(result, evidence, options.stats), ensure_ascii=False))
    elif live is not sys.stdout:
        print(result.text)
    if plain and options.stats:
        for name, value in result.statistics.summary().items():
            print(f"{name:23} {value}", file=sys.stderr)
        if evidence is not None:
            for name, value in _figures(evidence).items():
                print(f"{name:23} {value}", file=sys.stderr)
        if result.reward is not None:
            print(f"{'reward':23} {result.reward:.3g}", file=sys.stderr)
    if result.whole:
        return COMPLETE
    print("grammarspec: cut short: the output is not whole; raise --max-tokens", file=sys.stderr)
    return CUT_SHORT


def _grammar(options: argparse.Namespace) -> grammarspec.Grammar[Any]:
    """The grammar that one of ``--schema``, ``--lark``, ``--gbnf``, ``--llguidance`` and ``--regex`` gives."""
    if options.schema is not None:
        with schema_text(options.schema) as text:
            return grammarspec.json_schema(text, whitespace=options.whitespace, registry=registry(options.refs, text))
    if options.lark is not None:
        with lark_file(options.lark) as file:
            named = lark_options(options)
            return grammarspec.lark(file, **named) if isinstance(file, str) else grammarspec.load(file, **named)
    if lark_options(options):
        raise ValueError("--parser, --lexer, --start, --import-path and --strict are options of --lark")
    if options.gbnf is not None:
        return grammarspec.gbnf(file_text(options.gbnf))
    if options.llguidance is not None:
        return grammarspec.llguidance(file_text(options.llguidance))
    return grammarspec.regex(options.regex)


def _report(result: Generation, evidence: Evidence | None, statistics: bool) -> dict[str, object]:
    """The JSON value that ``--output json`` prints."""
    report: dict[str, object] = {"text": result.text, "finish_reason": result.finish_reason, "tokens": result.tokens}
    if evidence is not None:
        report["evidence"] = _figures(evidence)
    if result.reward is not None:
        report["reward"] = result.reward
    return report | {"statistics": result.statistics.summary()} if statistics else report


def _figures(evidence: Evidence) -> dict[str, float]:
    """What particles say of the model's distribution, as ``--output json`` and ``--stats`` print it."""
    return {
        "valid": evidence.valid,
        "effective_particles": round(evidence.effective, 2),
        "particles": evidence.particles,
        "resamplings": evidence.resamplings,
    }


def _writer(write: Callable[[str], object], flush: Callable[[], object]) -> Callable[[bytes], None]:
    """A function that writes bytes as text; a character is written when all of its bytes are there."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def on_text(data: bytes) -> None:
        write(decoder.decode(data))
        flush()

    return on_text
