"""What drafts gain: ``python -m benchmarks.speculation``.

Texts of five kinds (JSON, tool calls, SQL, texts of regular expressions, free texts; at least 60 prompts each) are
generated without drafts, with each proposer, and with drafts whose length is chosen in each round, in turns. Compared
are tokens per pass of the target and wall-clock time, prompts included: the median of the turns for each prompt, with
intervals (bootstrap over the prompts).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import grammarspec as gs
from grammarspec.decoding import Sampling
from grammarspec.decoding.alternation import Case, Measurement, Setting, alternate
from grammarspec.decoding.proposers import Eagle, Forced, Lookup, Proposer
from grammarspec.models.chat import chat_template, encode, render
from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of
from grammarspec.models.turns import turn_of
from grammarspec.tools.sources import as_tool

HERE = Path(__file__).parent
GAMMA = 16
PLAIN = "none"


def settings(tokens: int, head: Eagle | None = None) -> list[Setting]:
    """What is compared; the last one is what a model does that nobody has tuned, but for a head that is given."""
    sampling = Sampling(max_tokens=tokens)
    both: list[Proposer] = [Forced(), Lookup()]
    beside = [Setting("eagle", [*both, head], GAMMA, sampling=sampling)] if head else []
    return [
        Setting(PLAIN, sampling=sampling),
        Setting("forced", [Forced(preferred=False)], GAMMA, adaptive=False, sampling=sampling),
        Setting("forced+preferred", [Forced()], GAMMA, adaptive=False, sampling=sampling),
        Setting("lookup", [Lookup()], GAMMA, adaptive=False, sampling=sampling),
        Setting("forced+lookup", both, GAMMA, adaptive=False, sampling=sampling),
        Setting("auto", both, GAMMA, sampling=sampling),
        *beside,
    ]


def json_cases(model: gs.Model, whitespace: Any) -> list[Case]:
    """Extraction and invention into JSON."""
    return [
        Case(
            encode_prompt(model.tokenizer, entry["prompt"]),
            gs.compile(gs.json_schema(entry["schema"], whitespace=whitespace), model.vocabulary),
        )
        for entry in json.loads((HERE / "prompts.json").read_text("utf-8"))
    ]


def tool_cases(model: gs.Model) -> list[Case]:
    """A call of one of four tools."""
    entries = json.loads((HERE / "tool_prompts.json").read_text("utf-8"))
    tools = {tool.name: tool for tool in map(as_tool, entries["tools"])}
    cases = []
    for entry in entries["prompts"]:
        offered = tuple(tools[name] for name in entry["tools"])
        template = chat_template(model.tokenizer, tools=True)
        turn = turn_of(model.tokenizer, model.vocabulary, gs.text(), offered, "required", False, None, template)
        messages = turn.messages(entry["prompt"], None)
        prompt = render(model.tokenizer, messages, variables=turn.template_variables({}))
        cases.append(Case(encode(model.tokenizer, prompt), gs.compile(turn.grammar, model.vocabulary)))
    return cases


def text_cases(model: gs.Model, kind: str) -> list[Case]:
    """SQL statements, texts of regular expressions, or free texts."""
    sql = gs.compile(gs.load("sql"), model.vocabulary) if kind == "sql" else None
    cases = []
    for entry in json.loads((HERE / "text_prompts.json").read_text("utf-8"))[kind]:
        prompt, constraint = entry, sql
        if kind == "regex":
            prompt, constraint = entry["prompt"], gs.compile(gs.regex(entry["pattern"]), model.vocabulary)
        cases.append(Case(encode_prompt(model.tokenizer, prompt), constraint))
    return cases


KINDS: dict[str, Callable[[gs.Model], list[Case]]] = {
    "compact JSON": lambda model: json_cases(model, "compact"),
    "flexible JSON": lambda model: json_cases(model, "flexible"),
    "tool calls": tool_cases,
    "SQL": lambda model: text_cases(model, "sql"),
    "regex": lambda model: text_cases(model, "regex"),
    "free text": lambda model: text_cases(model, "free"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all kinds of texts under all settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="prompts side by side (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=100, help="of each text (%(default)s)")
    parser.add_argument("--turns", type=int, default=7, help="how often all of it is measured (%(default)s)")
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="kinds of texts (all)")
    parser.add_argument("--only", action="append", help="settings beside that without drafts (all)")
    parser.add_argument("--eagle", type=Path, metavar="FILE", help="a head for the model, to be run behind the others")
    parser.add_argument("--limit", type=int, help="prompts of each kind (all)")
    parser.add_argument("--json", type=Path, help="write all figures here")
    options = parser.parse_args(arguments)
    network, tokenizer = load_model(options.model)
    model = gs.Model(network, tokenizer)
    head = Eagle.from_file(options.eagle, network) if options.eagle else None
    every = settings(options.max_tokens, head)
    compared = [one for one in every if one.name in (PLAIN, *(options.only or [one.name]))]
    report: dict[str, Any] = {}
    for kind in options.kind or KINDS:
        cases = KINDS[kind](model)[: options.limit]
        measured = alternate(
            network, vocabulary_of(network, tokenizer), cases, compared, turns=options.turns, batch=options.batch
        )
        for one in measured:
            print(f"{kind:13} {line(one, measured[0])}", flush=True)
            report[f"{kind}, {one.setting.name}"] = figures(one, measured[0])
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, batch {options.batch}")


def line(one: Measurement, plain: Measurement) -> str:
    """The figures of a setting, beside those without drafts."""
    found = f"{one.setting.name:17} {one.statistics.tokens_per_pass:5.2f} tokens/pass  {one.speedup(plain)} x"
    phases = "  ".join(f"{name} {milliseconds:.2f}" for name, milliseconds in one.phases.items())
    return f"{found}  {one.tokens_per_second:5.1f} tokens/s  {differing(one, plain)} texts differ  ms a pass: {phases}"


def figures(one: Measurement, plain: Measurement) -> dict[str, Any]:
    """All figures of a setting, but for times between rounds, as rounds of other settings were between them."""
    summary = one.statistics.summary()
    own = {name: value for name, value in summary.items() if name == "phase_ms" or not name.endswith("_ms")}
    own["tokens_per_second"] = round(one.tokens_per_second, 1)
    return own | {"seconds": one.seconds, "texts differ": differing(one, plain)}


def differing(one: Measurement, plain: Measurement) -> int:
    """How many texts differ from those without drafts: none, but for rounding in passes of other shapes."""
    return sum(mine.tokens != theirs.tokens for mine, theirs in zip(one.texts, plain.texts, strict=True))


if __name__ == "__main__":
    main()
