"""Constrained decoding: JSON and texts of regular expressions, from one model, with the constraint and without it.

    python examples/constraint_demo.py

Each text is judged by what knows nothing of grammarspec: the json module and the re module. Then one text is shown
token by token, with the number of tokens that the mask allowed.

What the usual tutorials get wrong: `logits * mask + (1 - mask) * -inf` is NaN for every allowed token, since 0 * inf is
NaN; the program shows it beside `gs.apply_bitmask`, which sets the logits of the others to -inf. To ask for each token
of the vocabulary whether the text can still match with it is right, but these are 49,152 questions at each step; here
one look at a state of the automaton over tokens answers them all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from common import command, load, shown, table, text_of

import grammarspec as gs

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "city": {"enum": ["Paris", "Rome", "Oslo"]},
    },
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}
DATE = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
COLOUR = r"#[0-9a-f]{6}"


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked for, as a prompt and as a grammar, and who says whether a text is of that form."""

    name: str
    prompt: str
    grammar: gs.Grammar[Any]
    judge: Callable[[str], bool]


def is_person(text: str) -> bool:
    """Whether a text is JSON of the schema, by the json module and comparisons."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    if not isinstance(value, dict) or set(value) != {"name", "age", "city"}:
        return False
    name, age, city = value["name"], value["age"], value["city"]
    return (
        isinstance(name, str)
        and len(name) <= 20
        and isinstance(age, int | float)
        and not isinstance(age, bool)
        and 0 <= age <= 150
        and float(age).is_integer()  # JSON has one kind of number: 31.0 is an integer, too
        and city in ("Paris", "Rome", "Oslo")
    )


def cases() -> list[Case]:
    """What the program asks for."""

    def pattern(name: str, prompt: str, expression: str) -> Case:
        return Case(name, prompt, gs.regex(expression), lambda text: re.fullmatch(expression, text) is not None)

    schema = gs.json_schema(SCHEMA)
    return [
        Case("JSON", "Alice is 31 and lives in Paris.", schema, is_person),
        Case("JSON", "Who is it? Give JSON with name, age, city. Bob, 45, is from Rome.", schema, is_person),
        pattern("date", "On which day did World War II end? Answer as YYYY-MM-DD.", DATE),
        pattern("colour", "Give the hexadecimal code of a warm red, as in CSS.", COLOUR),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask for everything with the constraint and without."""
    parser = command(__doc__)
    parser.add_argument("--max-tokens", type=int, default=48)
    options = parser.parse_args(arguments)
    model = load(options)
    rows = []
    steps = ""
    for case in cases():
        free = model.run(case.prompt, max_tokens=options.max_tokens)
        bound = model.run(case.prompt, case.grammar, max_tokens=options.max_tokens, on_limit="close")
        for name, text in (("none", free.text), ("grammar", bound.text)):
            rows.append([case.name, name, "yes" if case.judge(text) else "no", shown(text, 70)])
        steps = steps or steps_table(case.grammar, bound.text, model)
    print(table(["asked for", "constraint", "valid", "text"], rows), end="\n\n")
    print(steps, end="\n\n")
    wrong, right = masked([1.0, 2.0, 3.0], [True, False, True])
    print(f"logits 1, 2, 3 with the second masked out: by the product {wrong}, by gs.apply_bitmask {right}")


def steps_table(grammar: gs.Grammar[Any], text: str, model: gs.Model) -> str:
    """The tokens of a text, and how many tokens were allowed in the place of each."""
    matcher = gs.compile(grammar, model.vocabulary).matcher()
    row = gs.allocate_bitmask(1, model.vocabulary.size)
    rows = []
    for token in [*model.vocabulary.spell(text.encode()), model.vocabulary.eos_token_ids[0]]:
        matcher.fill_bitmask(row)
        allowed = int(np.unpackbits(row.view(np.uint8)).sum())
        rows.append([shown(text_of(model.vocabulary, [token])), allowed, model.vocabulary.size - allowed])
        matcher.accept_token(token)
    return table(["token", "allowed", "masked out"], rows)


def masked(logits: Sequence[float], allowed: Sequence[bool]) -> tuple[list[float], list[float]]:
    """Logits as the product masks them, and as :func:`grammarspec.apply_bitmask` does."""
    mask = torch.tensor(allowed, dtype=torch.float32)
    wrong = torch.tensor(logits) * mask + (1 - mask) * float("-inf")
    right = torch.tensor(logits)
    row = gs.allocate_bitmask(1, len(allowed))[0]
    row[0] = sum(1 << place for place, one in enumerate(allowed) if one)
    gs.apply_bitmask(right, row)
    return wrong.tolist(), right.tolist()


if __name__ == "__main__":
    main()
