"""Latency, quality and structure of six ways to decode, side by side: ``python -m benchmarks.triangle``.

SmolLM2-135M-Instruct reads texts of ``extraction_cases.py`` and answers with JSON of a type, of which the prompt tells.

* ``plain``: no masks, no drafts. ``speculative``: no masks, but drafts (repetitions of the prompt, the distilled head).
* ``constrained``: masks, no drafts. ``combined``: masks and drafts (forced text, too).
* ``lookahead``: masks, and CDSL with the reward that words of values come from the text.
* ``conditional``: weighted particles, at temperature 1; beside it stands ``sampled``, masks alone at that temperature.

All others are greedy. Structure is the share of answers that are valid as a whole; quality the share of fields that are
right and the reward; latency the seconds of one answer alone, prompt included. Answers without masks are read
generously: the first object in them counts for quality, if it is JSON. ``--texts`` texts of each of the eight types are
answered in batches of one type for all but the times, ``--timed`` answers are timed, the ways taking turns. Intervals
are those of 95 % (bootstrap over the texts). A CSV, a table and a plot are written to ``--out``.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from pydantic import BaseModel, ValidationError

import grammarspec as gs
from benchmarks.extraction import right_fields
from benchmarks.extraction_cases import CASES
from benchmarks.lookahead import less, mean, spread
from benchmarks.report import OUTSIDE, plain_log_axis, save, table
from grammarspec.decoding.proposers import Eagle, Forced, Lookup
from grammarspec.models.instructions import instructions_for
from grammarspec.models.loading import load_model

TOKENS = 100


@dataclass(frozen=True, slots=True)
class Case:
    """A text with what is to be found in it.

    Attributes:
        target: the type of the answer.
        text: the text.
        expected: the right fields.
    """

    target: type[BaseModel]
    text: str
    expected: dict[str, Any]

    @property
    def prompt(self) -> str:
        """The text, and of what form the answer is to be."""
        return f"{self.text}\n\n{instructions_for(self.target, 'compact')}"

    def found(self, answer: str) -> float:
        """The reward: the share of the words among the values of an answer, whole or begun, that the text has.

        Left out are booleans and the members of enums, which texts paraphrase.
        """
        known = re.findall(r"\w+", self.text.lower())
        values = re.sub(r'"\w*"\s*:', " ", answer)  # without names of fields
        words = re.findall(r"\w+", re.sub(r'[{,]\s*"\w*$', " ", values).lower())
        told = {"true", "false", *_members(self.target.model_json_schema())}
        free = [word for word in words if not any(one.startswith(word) for one in told)]
        return mean([float(any(one.startswith(word) for one in known)) for word in free]) if free else 1.0


def _members(schema: dict[str, Any]) -> list[str]:
    """The members of a type's enums, in lower case."""
    return [member.lower() for each in schema["properties"].values() for member in each.get("enum", ())]


@dataclass(slots=True)
class Way:
    """A way to decode, with what came of it: a number for each case, or for each that was timed.

    Attributes:
        name: what the table calls it.
        model: with its drafts.
        masked: whether answers are constrained.
        options: of the calls.
        answers: the texts.
        valid: 1 for an answer of the type, else 0.
        right: the share of right fields.
        whole: 1 where all fields are right.
        reward: of the answer.
        seconds: of an answer alone.
    """

    name: str
    model: gs.Model
    masked: bool
    options: dict[str, Any]
    answers: list[str] = field(default_factory=list)
    valid: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def answer(self, cases: Sequence[Case]) -> list[str]:
        """The answers to cases of one type, together."""
        options = {"max_tokens": TOKENS, "instructions": None, **self.options}
        if "lookahead" in options:
            options["reward"] = [case.found for case in cases]
        target = cases[0].target if self.masked else gs.text()
        found = self.model.batch([case.prompt for case in cases], target, return_exceptions=True, **options)
        return [one.text if isinstance(one, gs.Result) else _cut(one) for one in found]

    def judge(self, case: Case, answer: str) -> None:
        """Count an answer."""
        given = read(case.target, answer)
        equal = right_fields(given, case.expected)
        self.answers.append(answer)
        self.valid.append(float(valid(case.target, answer)))
        self.right.append(equal / len(case.expected))
        self.whole.append(float(equal == len(case.expected)))
        self.reward.append(case.found(answer))


def _cut(error: Exception) -> str:
    """What counts as the answer of a text that was cut short: none, which is not valid."""
    if not isinstance(error, gs.Truncated):
        raise error
    return ""


def valid(target: type[BaseModel], answer: str) -> bool:
    """Whether an answer is a value of a type, and nothing else."""
    try:
        target.model_validate_json(answer)
    except ValidationError:
        return False
    return True


def read(target: type[BaseModel], answer: str) -> dict[str, Any]:
    """The fields of the first object in an answer, as they are in JSON; none if there is none."""
    begin = answer.find("{")
    try:
        found = json.JSONDecoder().raw_decode(answer[begin:])[0] if begin >= 0 else {}
    except ValueError:
        return {}
    try:
        return target.model_validate(found).model_dump(mode="json")
    except ValidationError:
        return found if isinstance(found, dict) else {}


def ways(network: Any, tokenizer: Any, head: Eagle | None, particles: int) -> list[Way]:
    """What is compared; without a head, drafts are forced text and repetitions alone."""
    heads = [head] if head else []
    bare = gs.Model(network, tokenizer, draft=[], gamma=0)
    free = gs.Model(network, tokenizer, draft=[Lookup(), *heads])
    both = gs.Model(network, tokenizer, draft=[Forced(), Lookup(), *heads])
    lookahead = gs.Lookahead(d=6, k=5, acceptance=1 / 3, reward=0.9, draft=both.proposers)
    cut, close = {"on_limit": "cut"}, {"on_limit": "close"}
    return [
        Way("plain", bare, False, cut),
        Way("speculative", free, False, cut),
        Way("constrained", bare, True, close),
        Way("combined", both, True, close),
        Way("lookahead", both, True, {**close, "lookahead": lookahead}),
        Way("sampled", both, True, {"on_limit": "raise", "temperature": 1.0, "seed": 1}),
        Way(
            "conditional",
            both,
            True,
            {"on_limit": "raise", "temperature": 1.0, "seed": 1, "law": "conditional", "particles": particles},
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Answer all texts in all ways, and print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--texts", type=int, default=5, help="of each type, at most (%(default)s)")
    parser.add_argument("--timed", type=int, default=12, help="texts that are timed, one by one (%(default)s)")
    parser.add_argument("--particles", type=int, default=8, help="(%(default)s)")
    head = Path("examples/drafts/smollm2.safetensors")
    parser.add_argument("--eagle", type=Path, default=head, metavar="FILE", help="the head (%(default)s)")
    parser.add_argument("--threads", type=int, help="of torch (all cores)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/triangle"), help="(%(default)s)")
    options = parser.parse_args(arguments)
    begin = perf_counter()
    if options.threads:
        torch.set_num_threads(options.threads)
    network, tokenizer = load_model(options.model)
    trained = Eagle.from_file(options.eagle, network) if options.eagle.name else None
    every = ways(network, tokenizer, trained, options.particles)
    groups = [
        [Case(target, text, expected) for text, expected in list(texts.items())[: options.texts]]
        for target, texts in CASES.items()
    ]
    for way in every:
        for cases in groups:
            for case, answer in zip(cases, way.answer(cases), strict=True):
                way.judge(case, answer)
        print(f"{way.name}: valid {mean(way.valid):.0%}, fields right {mean(way.right):.1%}", flush=True)
    # One text of each type, then the next one of each.
    alone = [cases[number] for number in range(options.texts) for cases in groups if number < len(cases)]
    for number, case in enumerate(alone[: options.timed]):
        for way in (*every[number % len(every) :], *every[: number % len(every)]):
            start = perf_counter()
            way.answer([case])
            way.seconds.append(perf_counter() - start)
    options.out.mkdir(parents=True, exist_ok=True)
    write(every, [case for cases in groups for case in cases], options.out)
    plot(every, options.out / "triangle.png")
    found = figures(every)
    (options.out / "triangle.md").write_text(found + "\n", encoding="utf-8")
    count = sum(map(len, groups))
    print(f"\n## {count} texts, {len(alone[: options.timed])} timed\n\n{found}\n")
    threads = torch.get_num_threads()
    print(f"{perf_counter() - begin:.0f} s; torch {torch.__version__}, {threads} threads; files in {options.out}/")


def write(every: Sequence[Way], cases: Sequence[Case], folder: Path) -> None:
    """Write the CSV: a line for each answer."""
    with (folder / "triangle.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["way", "type", "text", "answer", "valid", "right", "whole", "reward"])
        for way in every:
            figures = zip(cases, way.answers, way.valid, way.right, way.whole, way.reward, strict=True)
            lines.writerows([way.name, case.target.__name__, case.text, *rest] for case, *rest in figures)


def figures(every: Sequence[Way]) -> str:
    """The table."""
    base = next(way for way in every if way.name == "constrained")
    head = ["way", "seconds of an answer", "valid", "fields right", f"less those of {base.name}"]
    rows = []
    for way in every:
        row = [way.name, _figure(way.seconds, "{:.2f}"), f"{mean(way.valid):.0%}", _figure(way.right, "{:.0%}")]
        row.append("" if way is base else less(way.right, base.right, "{:+.0%}"))
        rows.append([*row, *(_figure(values, "{:.0%}") for values in (way.whole, way.reward))])
    return table([*head, "answers right", "values from the text"], rows)


def _figure(values: Sequence[float], form: str) -> str:
    """A mean with its interval."""
    if not values:
        return "-"
    low, high = spread(values)
    return f"{form.format(mean(values))} [{form.format(low)}, {form.format(high)}]"


def plot(every: Sequence[Way], path: Path) -> None:
    """Quality over latency; ways whose answers are all valid are filled, the others say how many are."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    figure, axes = plt.subplots(figsize=(8, 4.5))
    for number, way in enumerate(every):
        x, y = mean(way.seconds), mean(way.right)
        (left, right), (low, high) = spread(way.seconds or [x]), spread(way.right)
        axes.errorbar(
            x, y, xerr=[[max(x - left, 0)], [max(right - x, 0)]], yerr=[[max(y - low, 0)], [max(high - y, 0)]],
            marker="osD^vP*"[number], color=f"C{number}", markersize=8, capsize=2, linewidth=1, linestyle="",
            fillstyle="full" if mean(way.valid) == 1 else "none", label=f"{way.name}: {mean(way.valid):.0%} valid",
        )  # fmt: skip
    axes.set(xlabel="seconds of an answer, alone", ylabel="share of fields that are right")
    title = f"means of {len(every[0].right)} texts ({len(every[0].seconds)} timed) with 95 % intervals; "
    axes.set_title(title + "filled: all answers are valid", fontsize=10)
    plain_log_axis(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    save(figure, axes, path, **OUTSIDE)


if __name__ == "__main__":
    main()
