"""What masks cost in quality, and what weights give back: ``python -m benchmarks.conditional``.

Tasks whose form is unlike what the model writes by itself are answered ``--samples`` times under each law: masked, and
given that the text is valid, with several numbers of particles. Printed is the share of right answers, with the
estimate of p(valid) and the effective sample size; ``--output`` is a folder for ``conditional.csv`` and a plot.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammarspec import Grammar, Model, json_schema, regex


@dataclass(frozen=True, slots=True)
class Task:
    """A question whose answer is known.

    Attributes:
        name: what is asked for, and why masks may hurt.
        prompts: the questions, each with its answer.
        grammar: of the answers.
        right: whether an answer is right.
    """

    name: str
    prompts: dict[str, Any]
    grammar: Grammar[Any]
    right: Callable[[Any, Any], bool]


def _equal(found: Any, expected: Any) -> bool:
    return bool(found == expected)


TASKS = [
    Task(  # the tokenizer has digits one by one, and a sentence would come first
        "digits",
        {
            "In which year did World War II end? Answer with the year only.": 1945,
            "In which year did Columbus reach America? Answer with the year only.": 1492,
            "In which year did men first walk on the moon? Answer with the year only.": 1969,
        },
        regex("[0-9]{4}").map(int),
        _equal,
    ),
    Task(
        "arithmetic",
        {
            "What is 7 + 8? Answer with the number only.": 15,
            "What is 12 - 5? Answer with the number only.": 7,
            "What is 6 * 9? Answer with the number only.": 54,
        },
        regex("0|[1-9][0-9]{0,3}").map(int),
        _equal,
    ),
    Task(  # members with a common beginning, of which the model likes one only for how it begins
        "enum",
        {
            "Is a tomato a fruit or furniture?": "a fruit",
            "Is a chair a fruit or furniture?": "furniture",
            "Is a banana a fruit or furniture?": "a fruit",
        },
        regex("a fruit|a fraud|a friend|furniture|further away"),
        _equal,
    ),
    Task(  # the model begins sentences that have to end after ten characters
        "short string",
        {
            "What is the capital of France? Answer in JSON.": "paris",
            "What is the capital of Italy? Answer in JSON.": "rome",
            "What is the capital of Japan? Answer in JSON.": "tokyo",
        },
        json_schema(
            {
                "type": "object",
                "properties": {"capital": {"type": "string", "minLength": 3, "maxLength": 10}},
                "required": ["capital"],
                "additionalProperties": False,
            },
            whitespace="compact",
        ),
        lambda found, expected: bool(found["capital"].strip(" .").lower() == expected),
    ),
]


def main() -> None:
    """Print a table, and write the figures and a plot if there is a folder for them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="smollm2", help="as for Model.from_pretrained (%(default)s)")
    parser.add_argument("--samples", type=int, default=20, help="answers to each question (%(default)s)")
    parser.add_argument("--particles", type=int, nargs="+", default=[4, 16], help="(%(default)s)")
    parser.add_argument("--temperature", type=float, default=1.0, help="(%(default)s)")
    parser.add_argument("--output", type=Path, help="a folder for the figures and a plot")
    options = parser.parse_args()
    model = Model.from_pretrained(options.model)
    rows = []
    print("| task | law | right | p(valid) | effective | s an answer |\n|:--|:--|--:|--:|--:|--:|", flush=True)
    for task in TASKS:
        for particles in [1, *options.particles]:
            row = measure(model, task, particles, options.samples, options.temperature)
            rows.append(row)
            print(
                f"| {row['task']} | {row['law']} | {row['right']:.1%} | {row['valid']:.2g} | {row['effective']:.1f} "
                f"| {row['seconds']:.2f} |",
                flush=True,
            )
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        with (options.output / "conditional.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        plot(rows, options.output / "conditional.svg")


def measure(model: Model, task: Task, particles: int, samples: int, temperature: float) -> dict[str, Any]:
    """The share of right answers of a task; with one particle, that of the masked law."""
    right, valid, effective = 0, 0.0, 0.0
    begin = time.perf_counter()
    for number, (prompt, expected) in enumerate(task.prompts.items()):
        found = [
            model.run(
                prompt,
                task.grammar,
                law="conditional",
                particles=particles,
                temperature=temperature,
                seed=1000 * number + sample,
                max_tokens=40,
            )
            for sample in range(samples)
        ]
        right += sum(task.right(one.output, expected) for one in found)
        valid += sum(one.evidence.valid for one in found if one.evidence)
        effective += sum(one.evidence.effective for one in found if one.evidence)
    count = samples * len(task.prompts)
    return {
        "task": task.name,
        "law": "masked" if particles == 1 else f"conditional, {particles} particles",
        "particles": particles,
        "right": right / count,
        "valid": valid / count,
        "effective": effective / count,
        "seconds": (time.perf_counter() - begin) / count,
    }


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """The share of right answers by the number of particles, a line for each task."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for name in dict.fromkeys(row["task"] for row in rows):
        of_task = [row for row in rows if row["task"] == name]
        axes.plot([row["particles"] for row in of_task], [row["right"] for row in of_task], "o-", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("particles (1: masked)")
    axes.set_ylabel("right answers")
    axes.set_ylim(0, 1)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
