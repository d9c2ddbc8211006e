"""How well a model fills in types, by what it is told about them: ``python -m benchmarks.extraction``.

Counts the fields that are right, over all texts of ``extraction_cases.py``: with no instructions, and with each kind of
instructions at the end of the user's message and in a system message.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.extraction_cases import CASES
from grammarspec import Model, Sampling
from grammarspec.models.instructions import Instructions, instructions_for

SETTINGS: list[tuple[Instructions, str]] = [
    (None, ""),
    ("compact", "user"),
    ("schema", "user"),
    ("compact", "system"),
    ("schema", "system"),
]


def main() -> None:
    """Print a table: fields that are right, answers that are right, tokens of the prompts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="smollm2")
    model = Model.from_pretrained(parser.parse_args().model, gamma=0)  # drafts change no text
    fields = sum(len(expected) for cases in CASES.values() for expected in cases.values())
    print(f"{sum(map(len, CASES.values()))} texts, {fields} fields")
    print(
        "| instructions | in | fields right | answers right | tokens of a prompt |\n|:--|:--|--:|--:|--:|", flush=True
    )
    for kind, place in SETTINGS:
        right, whole, tokens = measure(model, kind, place)
        texts = sum(map(len, CASES.values()))
        print(
            f"| `{kind!r}` | {place} | {right / fields:.1%} | {whole / texts:.1%} | {tokens / texts:.0f} |", flush=True
        )


def measure(model: Model, kind: Instructions, place: str) -> tuple[int, int, int]:
    """The number of right fields and of right answers over all texts, and of all tokens of the prompts."""
    right = whole = tokens = 0
    for target, cases in CASES.items():
        told = instructions_for(target, kind)
        prompts = [f"{text}\n\n{told}" if place == "user" else text for text in cases]
        options: dict[str, Any] = {"system": told} if place == "system" else {}
        sampling = Sampling(max_tokens=120, on_limit="close")
        found = model.batch(prompts, target, sampling=sampling, instructions=None, **options)
        for result, expected in zip(found, cases.values(), strict=True):
            equal = right_fields(result.output.model_dump(mode="json"), expected)
            right, whole, tokens = right + equal, whole + (equal == len(expected)), tokens + result.usage.prompt_tokens
    return right, whole, tokens


def right_fields(given: dict[str, Any], expected: dict[str, Any]) -> int:
    """How many fields are right; ``given`` may lack some, and be of no type."""
    return sum(name in given and _same(given[name], value) for name, value in expected.items())


def _same(found: Any, expected: Any) -> bool:
    """Whether two values are the same, but for upper case and articles of texts, and the order of lists."""
    if isinstance(expected, list):
        texts = isinstance(found, list) and all(isinstance(one, str) for one in found)
        return texts and sorted(map(_plain, found)) == sorted(map(_plain, expected))
    return bool(_plain(found) == _plain(expected))


def _plain(value: Any) -> Any:
    return value.strip().lower().removeprefix("the ").removeprefix("room ") if isinstance(value, str) else value


if __name__ == "__main__":
    main()
