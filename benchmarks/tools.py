"""Tool calls on fixed prompts, constrained and free: ``python -m benchmarks.tools``.

Each of 100 prompts comes with four tools, one of which it asks for. With ``required`` the model must call one, with
``auto`` it chooses between calls and free text, with ``free`` nothing is constrained. Counted are the prompts whose
answer has a call at all, a well-formed call (of a tool that there is, with valid arguments), a call of the right tool,
and the right call. Free texts are read leniently: any JSON in them with a name and arguments counts as a call.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema

import grammarspec as gs
from grammarspec.models.chat import chat_template
from grammarspec.models.turns import turn_of
from grammarspec.tools.sources import as_tool
from grammarspec.tools.tool import Tool

PROMPTS = Path(__file__).with_name("tool_prompts.json")
MODES = ("required", "auto", "free")

Call = tuple[str, dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every mode on every prompt, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--format", help="of calls (that of the chat template, or else plain JSON)")
    parser.add_argument("--max-tokens", type=int, default=96, help="of each text (%(default)s)")
    parser.add_argument("--limit", type=int, help="prompts to run (all)")
    parser.add_argument("--json", type=Path, help="write all answers here")
    options = parser.parse_args(arguments)
    model = gs.Model.from_pretrained(options.model)
    entries = json.loads(PROMPTS.read_text("utf-8"))
    tools = {tool.name: tool for tool in map(as_tool, entries["tools"])}
    cases: list[dict[str, Any]] = entries["prompts"][: options.limit]
    for mode in MODES:
        counts = dict.fromkeys(("a call", "well-formed", "right tool", "right call"), 0)
        for case in cases:
            offered = {name: tools[name] for name in case["tools"]}
            limit = gs.Sampling(max_tokens=options.max_tokens, on_limit="close")
            if mode == "free":
                chosen = tuple(offered.values())
                template = chat_template(model.tokenizer, tools=True)
                turn = turn_of(
                    model.tokenizer, model.vocabulary, gs.text(), chosen, "auto", False, options.format, template
                )
                variables = turn.template_variables({})
                text = model(turn.messages(case["prompt"], None), template=variables, sampling=limit)
                calls = list(calls_in(text))
            else:
                result = model.run(
                    case["prompt"],
                    tools=list(offered.values()),
                    tool_choice="required" if mode == "required" else "auto",
                    parallel=False,
                    tool_format=options.format,
                    sampling=limit,
                )
                text, calls = result.text, [(call.name, call.arguments) for call in result.tool_calls]
            case[mode] = {"text": text, "calls": calls}
            count(counts, calls, case, offered)
        print(f"{mode:9}", *(f"{name}: {number}" for name, number in counts.items()), sep="  ", flush=True)
    if options.json:
        options.json.write_text(json.dumps(cases, indent=1), "utf-8")


def calls_in(text: str) -> Iterator[Call]:
    """The JSON values in a free text that look like calls."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        name, given = value.get("name"), value.get("arguments", value.get("parameters"))
        if isinstance(name, str) and isinstance(given, dict):
            yield name, given
        at = end


def count(
    counts: dict[str, int], calls: Sequence[Call], case: Mapping[str, Any], tools: Mapping[str, Tool[..., Any]]
) -> None:
    """Add the first call to the counts.

    Args:
        counts: the number of prompts by property.
        calls: the calls of an answer, as name and arguments.
        case: the prompt, with the ``tool`` and the ``arguments`` that are right.
        tools: the tools of the prompt by name.
    """
    if not calls:
        return
    name, given = calls[0]
    counts["a call"] += 1
    if name not in tools or not jsonschema.validators.validator_for({})(
        {**tools[name].parameters, "additionalProperties": False}, format_checker=jsonschema.FormatChecker()
    ).is_valid(given):
        return
    counts["well-formed"] += 1
    counts["right tool"] += name == case["tool"]
    counts["right call"] += name == case["tool"] and given == case["arguments"]


if __name__ == "__main__":
    main()
