"""What masks cost in quality, and what weights give back: ``python -m benchmarks.conditional``.

Four tasks whose form is unlike what the model writes by itself, of eight questions each, are answered ``--samples``
times under each law: masked, and given that the text is valid, with several numbers of particles. Printed is the share
of right answers, with 95 % intervals of what is gained (paired bootstrap over the questions), the estimate of p(valid)
and the effective sample size. A CSV, the table and a plot are written to ``--out``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from benchmarks.lookahead import mean, spread
from benchmarks.report import OUTSIDE, save, table
from grammarspec import Grammar, Model, Result, Truncated, json_schema, regex

ROWS = 128
"""Particles that are written side by side, at most."""


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


def _asked(prompt: str, answers: dict[str, Any]) -> dict[str, Any]:
    """Questions of one form, each with its answer."""
    return {prompt.format(about): answer for about, answer in answers.items()}


TASKS = [
    Task(  # the tokenizer has digits one by one, and a sentence would come first
        "digits",
        _asked(
            "In which year {}? Answer with the year only.",
            {
                "did World War II end": 1945,
                "did Columbus reach America": 1492,
                "did men first walk on the moon": 1969,
                "did the Berlin Wall fall": 1989,
                "did the Titanic sink": 1912,
                "was the Declaration of Independence of the United States signed": 1776,
                "did the French Revolution begin": 1789,
                "did World War I begin": 1914,
            },
        ),
        regex("[0-9]{4}").map(int),
        _equal,
    ),
    Task(
        "arithmetic",
        _asked(
            "What is {}? Answer with the number only.",
            {"7 + 8": 15, "12 - 5": 7, "6 * 9": 54, "20 + 30": 50, "9 - 4": 5, "3 * 4": 12, "15 + 6": 21, "18 / 2": 9},
        ),
        regex("0|[1-9][0-9]{0,3}").map(int),
        _equal,
    ),
    Task(  # members with a common beginning, of which the model likes one only for how it begins
        "enum",
        _asked(
            "Is a {} a fruit or furniture?",
            {
                "tomato": "a fruit",
                "chair": "furniture",
                "banana": "a fruit",
                "table": "furniture",
                "pear": "a fruit",
                "sofa": "furniture",
                "cherry": "a fruit",
                "wardrobe": "furniture",
            },
        ),
        regex("a fruit|a fraud|a friend|furniture|further away"),
        _equal,
    ),
    Task(  # the model begins sentences that have to end after ten characters
        "short string",
        _asked(
            "What is the capital of {}? Answer in JSON.",
            {
                "France": "paris",
                "Italy": "rome",
                "Japan": "tokyo",
                "Spain": "madrid",
                "Germany": "berlin",
                "Egypt": "cairo",
                "Greece": "athens",
                "Russia": "moscow",
            },
        ),
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


@dataclass(frozen=True, slots=True)
class Row:
    """What came of a task under a law; the lists have a number for each question.

    Attributes:
        task: its name.
        particles: their number; with one, the law is the masked one.
        right: the shares of right answers.
        valid: the means of the estimates of p(valid).
        effective: the mean of the effective sample size.
        seconds: of an answer, its share of those that were made together.
    """

    task: str
    particles: int
    right: list[float]
    valid: list[float]
    effective: float
    seconds: float

    @property
    def law(self) -> str:
        """What the table calls it."""
        return "masked" if self.particles == 1 else f"conditional, {self.particles} particles"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table, and write the figures and a plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for Model.from_pretrained (%(default)s)")
    parser.add_argument("--samples", type=int, default=20, help="answers to each question (%(default)s)")
    parser.add_argument("--particles", type=int, nargs="+", default=[4, 16], help="(%(default)s)")
    parser.add_argument("--temperature", type=float, default=1.0, help="(%(default)s)")
    parser.add_argument("--questions", type=int, default=8, help="of each task, at most (%(default)s)")
    parser.add_argument("--threads", type=int, help="of torch (all cores)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/conditional"), help="(%(default)s)")
    options = parser.parse_args(arguments)
    begin = perf_counter()
    if options.threads:
        torch.set_num_threads(options.threads)
    model = Model.from_pretrained(options.model)
    rows: list[Row] = []
    for task in TASKS:
        for particles in [1, *options.particles]:
            rows.append(measure(model, task, particles, options))
            print(f"{task.name}, {rows[-1].law}: {mean(rows[-1].right):.1%} right", flush=True)
    found = figures(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "conditional.md").write_text(found + "\n", encoding="utf-8")
    write(rows, options.out / "conditional.csv")
    plot(rows, options.out / "conditional.png")
    print(f"\n{options.samples} answers to each of {len(rows[0].right)} questions of a task\n\n{found}\n")
    threads = torch.get_num_threads()
    print(f"{perf_counter() - begin:.0f} s; torch {torch.__version__}, {threads} threads; files in {options.out}/")


def measure(model: Model, task: Task, particles: int, options: argparse.Namespace) -> Row:
    """Answer the questions of a task under a law; with one particle, the masked one."""
    right, valid, effective = [], [], []
    begin = perf_counter()
    together = max(1, ROWS // particles)
    for number, (prompt, expected) in enumerate(list(task.prompts.items())[: options.questions]):
        found: list[Any] = []
        while len(found) < options.samples:
            found += model.samples(
                prompt,
                task.grammar,
                min(together, options.samples - len(found)),
                law="conditional",
                particles=particles,
                temperature=options.temperature,
                seed=1000 * number + len(found),
                max_tokens=40,
                return_exceptions=True,
            )
        # An answer of which no particle was whole in time is wrong, and has no evidence.
        answers = [one for one in found if isinstance(one, Result)]
        if other := [one for one in found if not isinstance(one, Result | Truncated)]:
            raise other[0]
        right.append(sum(task.right(one.output, expected) for one in answers) / len(found))
        evidence = [one.evidence for one in answers if one.evidence is not None]
        valid.append(sum(one.valid for one in evidence) / len(found))
        effective += [one.effective for one in evidence]
    count = options.samples * len(right)
    return Row(task.name, particles, right, valid, sum(effective) / count, (perf_counter() - begin) / count)


def figures(rows: Sequence[Row]) -> str:
    """The table, with intervals of what is paired with the masked law."""
    lines = []
    for row in rows:
        base = next(one for one in rows if one.task == row.task and one.particles == 1)
        low, high = spread([a - b for a, b in zip(row.right, base.right, strict=True)])
        gained = "" if row is base else f"{mean(row.right) - mean(base.right):+.1%} [{low:+.1%}, {high:+.1%}]"
        line = [f"{row.task}, {row.law}", f"{mean(row.right):.1%}", gained]
        lines.append([*line, f"{mean(row.valid):.2g}", f"{row.effective:.1f}", f"{row.seconds:.2f}"])
    return table(["task, law", "right", "more than masked", "p(valid)", "effective", "seconds of an answer"], lines)


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the CSV: a line for each question."""
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["task", "question", "particles", "right", "valid"])
        for row in rows:
            prompts = list(next(task for task in TASKS if task.name == row.task).prompts)
            figures = zip(prompts, row.right, row.valid, strict=False)  # perhaps not of all questions
            lines.writerows([row.task, prompt, row.particles, right, valid] for prompt, right, valid in figures)


def plot(rows: Sequence[Row], path: Path) -> None:
    """The share of right answers by the number of particles, a line for each task."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    counts = sorted({row.particles for row in rows})
    for number, name in enumerate(dict.fromkeys(row.task for row in rows)):
        of_task = [row for row in rows if row.task == name]
        places = [counts.index(row.particles) + 0.04 * (number - 1.5) for row in of_task]  # side by side
        heights = [mean(row.right) for row in of_task]
        spreads = [spread(row.right) for row in of_task]
        below = [height - low for height, (low, _) in zip(heights, spreads, strict=True)]
        above = [high - height for height, (_, high) in zip(heights, spreads, strict=True)]
        axes.errorbar(places, heights, yerr=[below, above], marker="osD^v"[number % 5], capsize=2, label=name)
    axes.set_xticks(range(len(counts)), ["1 (masked)", *map(str, counts[1:])])
    axes.set(xlabel="particles", ylabel="share of right answers", ylim=(0, 1))
    axes.set_title(f"means of {len(rows[0].right)} questions of each task with 95 % intervals", fontsize=10)
    save(figure, axes, path, **OUTSIDE)


if __name__ == "__main__":
    main()
