"""The reports of ``grammarspec bench``: figures from measurements, as tables, CSV and plots."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grammarspec.decoding.alternation import Interval, Measurement

__all__ = ["Figures", "figures_of", "plot", "print_constraints", "print_figures", "write_csv"]

_PHASES = ("draft", "mask", "target", "verify", "commit")
_PHASE_COLUMNS = [f"{phase} ms" for phase in _PHASES]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one setting.

    Attributes:
        temperature: the temperature of its texts.
        gamma: the length of its drafts; ``"auto"`` if it was chosen in each round, ``None`` without drafts.
        draft: the name of its proposers.
        constrained: whether the grammars were applied.
        acceptance: the number of accepted tokens divided by that of drafted ones; ``None`` without drafts.
        tokens_per_pass: the number of tokens per pass of the target.
        tokens_per_second: the number of generated tokens per second; the time includes reading prompts.
        speedup: the speed-up over no drafts, with its interval over the turns.
        phases: milliseconds of each phase of a round, by the name of the phase.
    """

    temperature: float
    gamma: int | str | None
    draft: str
    constrained: bool
    acceptance: float | None
    tokens_per_pass: float
    tokens_per_second: float
    speedup: Interval
    phases: Mapping[str, float]


def figures_of(measured: Sequence[Measurement]) -> list[Figures]:
    """The figures of settings that were measured together.

    Args:
        measured: the measurements. Among those with the same sampling and constraints, the first is without drafts.
    """
    found = []
    for one in measured:
        setting, statistics = one.setting, one.statistics
        same = (setting.sampling, setting.constrained)
        plain = next(each for each in measured if (each.setting.sampling, each.setting.constrained) == same)
        drafts = bool(setting.proposers)
        found.append(
            Figures(
                temperature=setting.sampling.temperature,
                gamma=None if not drafts else "auto" if setting.adaptive else setting.gamma,
                draft=setting.name,
                constrained=setting.constrained,
                acceptance=statistics.acceptance_rate if drafts else None,
                tokens_per_pass=statistics.tokens_per_pass,
                tokens_per_second=one.tokens_per_second,
                speedup=one.speedup(plain),
                phases={phase: one.phases.get(phase, 0.0) for phase in _PHASES},
            )
        )
    return found


def print_figures(lines: Sequence[Figures]) -> None:
    """Print a table of settings."""
    head = ["temperature", "gamma", "draft", "acceptance", "tokens/pass", "tokens/s", "speed-up", *_PHASE_COLUMNS]
    rows = [
        [
            f"{line.temperature:g}",
            "-" if line.gamma is None else str(line.gamma),
            line.draft,
            "-" if line.acceptance is None else f"{line.acceptance:.2f}",
            f"{line.tokens_per_pass:.2f}",
            f"{line.tokens_per_second:.1f}",
            str(line.speedup),
            *_phases(line),
        ]
        for line in lines
    ]
    _print_table(head, rows)


def print_constraints(lines: Sequence[Figures]) -> None:
    """Print a table of settings with and without constraints."""
    rows = [
        [
            "yes" if line.constrained else "no",
            line.draft,
            f"{line.tokens_per_pass:.2f}",
            f"{line.tokens_per_second:.1f}",
            *_phases(line),
        ]
        for line in lines
    ]
    _print_table(["constraints", "drafts", "tokens/pass", "tokens/s", *_PHASE_COLUMNS], rows)


def _phases(line: Figures) -> list[str]:
    return [f"{milliseconds:.2f}" for milliseconds in line.phases.values()]


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; each column is as wide as its widest cell."""
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    for line in (head, *rows):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    sys.stdout.flush()


def write_csv(path: Path, lines: Sequence[Figures]) -> None:
    """Write the figures as CSV, one column for each number; the cell of a number that is missing is empty.

    Args:
        path: the file.
        lines: the figures.

    Raises:
        OSError: the file cannot be written.
    """
    head = ["temperature", "gamma", "draft", "acceptance", "tokens/pass", "tokens/s"]
    interval = ["speed-up", "speed-up low", "speed-up high"]
    with _naming(path), path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*head, *interval, *_PHASE_COLUMNS])
        for line in lines:
            speedup = line.speedup
            numbers = [line.acceptance, line.tokens_per_pass, line.tokens_per_second]
            numbers += [speedup.value, speedup.low, speedup.high, *line.phases.values()]
            written = [None if number is None else round(number, 4) for number in numbers]
            writer.writerow([line.temperature, line.gamma, line.draft, *written])


def plot(path: Path, lines: Sequence[Figures]) -> None:
    """Draw acceptance and speed over the draft length, a line for each proposer and temperature.

    Args:
        path: the file, a PNG.
        lines: the figures.

    Raises:
        OSError: the file cannot be written.
    """
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
    drawn: dict[str, list[Figures]] = {}
    for line in lines:
        if line.gamma is None:
            right.axhline(line.tokens_per_second, color="black", linestyle=":")
        else:
            drawn.setdefault(f"T = {line.temperature:g}, {line.draft}", []).append(line)
    for name, several in drawn.items():
        fixed = [line for line in several if line.gamma != "auto"]
        gammas = [line.gamma for line in fixed]
        label = name.replace("$", r"\$")  # matplotlib takes "$" for the beginning of a formula
        [curve] = left.plot(gammas, [line.acceptance for line in fixed], marker="o", label=label)
        right.plot(gammas, [line.tokens_per_second for line in fixed], marker="o", color=curve.get_color())
        for line in several:
            if line.gamma == "auto":
                right.axhline(line.tokens_per_second, color=curve.get_color(), linestyle="--")
    left.set(xlabel="gamma: draft tokens in a round", ylabel="accepted over drafted tokens", ylim=(0, 1))
    right.set(xlabel="gamma (dashed: chosen in each round; dotted: no drafts)", ylabel="tokens per second")
    left.legend()
    figure.tight_layout()
    with _naming(path):
        figure.savefig(path, dpi=120, format="png")
    plt.close(figure)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the name of the file to errors of writing within the block, as errors of opening have it.

    Raises:
        OSError: the error of the block.
    """
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise
