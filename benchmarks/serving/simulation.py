"""How many sequences one host can give masks to: ``python -m benchmarks.serving.simulation`` writes a table and a plot.

It computes from measured costs (:mod:`.costs`); nothing runs at that scale here. In a step each of ``n`` sequences
needs a mask, and one more for each token of its draft. Each sequence has a constraint of its own. In a row, the mask is
new with the probability ``cold``, and then costs what a measured new mask costs, drawn at random. What is done for
known masks and accepted tokens is done by one thread, as engines hold Python's lock meanwhile. New masks are computed
by as many threads as there are cores, those of one sequence one after the other; the next sequence goes to the thread
that is free first. That new masks of different constraints scale with cores is an assumption: there were two here.

An engine that computes masks while the GPU works (as vLLM does) waits only where the masks of a step take longer than
the step: a host suffices where 99 of 100 steps' masks do not.
"""

from __future__ import annotations

import argparse
import csv
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import table
from benchmarks.serving.costs import FILE, Costs, load

__all__ = ["CORES", "STEPS_MS", "Setting", "masks_of_a_step", "needed", "settings", "simulated"]

SEQUENCES = (64, 128, 256, 512, 1024)
COLD = (0.0, 0.1, 0.5, 1.0)
DRAFTS = (0, 4)
CORES = (8, 16, 32, 64)
STEPS_MS = (5, 10, 20, 30)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is simulated.

    Attributes:
        sequences: the number of sequences.
        draft: the number of tokens of each draft.
        cold: the share of rows whose mask is new.
        cores: the threads that compute new masks.
        frozen: the share of sequences whose constraint is frozen, so that a device steps it and the host does nothing.
    """

    sequences: int
    draft: int
    cold: float
    cores: int
    frozen: float = 0.0


def settings() -> Iterator[Setting]:
    """All settings of the table."""
    for sequences in SEQUENCES:
        for draft in DRAFTS:
            for cold in COLD:
                for cores in CORES:
                    yield Setting(sequences, draft, cold, cores)


def masks_of_a_step(setting: Setting, costs: Costs, draw: np.random.Generator) -> tuple[float, float]:
    """One simulated step.

    Returns:
        microseconds until all masks are there, and microseconds of CPU time.
    """
    sequences = round(setting.sequences * (1 - setting.frozen))
    if not sequences:
        return 0.0, 0.0
    known = costs.call + sequences * (costs.row + setting.draft * costs.draft_row)
    accepted = sequences * (1 + setting.draft) * costs.accept  # at most: all tokens of drafts
    new = draw.random((sequences, 1 + setting.draft)) < setting.cold
    taken = np.where(new, draw.choice(costs.new, new.shape), 0.0).sum(1)
    tasks = taken[taken > 0]
    free = [0.0] * min(setting.cores, max(len(tasks), 1))
    for task in tasks:
        heapq.heapreplace(free, free[0] + task)
    return known + accepted + max(free), known + accepted + float(taken.sum())


def simulated(setting: Setting, costs: Costs, steps: int = 200) -> tuple[float, float, float]:
    """Simulate some steps.

    Returns:
        milliseconds until the masks of a step are there, in half of the steps and in 99 of 100; and milliseconds of CPU
        time of a step, on average.
    """
    draw = np.random.default_rng(1)
    found = np.array([masks_of_a_step(setting, costs, draw) for _ in range(steps)]) / 1e3
    return float(np.median(found[:, 0])), float(np.percentile(found[:, 0], 99)), float(found[:, 1].mean())


def needed(latencies: dict[int, float], step_ms: float) -> str:
    """The least number of cores with which the masks take no longer than a step; ``-``: more than there are.

    Args:
        latencies: milliseconds of the masks by number of cores.
        step_ms: milliseconds of a step of the model.
    """
    enough = [cores for cores, latency in latencies.items() if latency <= step_ms]
    return str(min(enough)) if enough else "-"


def _requests(costs: Costs) -> str:
    """A table of the cores that new requests need: one schema for each, texts of 200 tokens."""
    rows = []
    for sequences in SEQUENCES:
        cells = []
        for step_ms in STEPS_MS:
            each_second = sequences / (200 * step_ms / 1e3)
            api, engine = (each_second * one / 1e6 for one in (costs.lower, costs.compile))
            cells.append(f"{each_second:,.0f}: {api:.2f} + {engine:.2f}")
        rows.append([str(sequences), *cells])
    return table(["sequences", *(f"step of {step} ms" for step in STEPS_MS)], rows)


def report(found: dict[Setting, tuple[float, float, float]], costs: Costs) -> str:
    """The tables, as Markdown."""
    rows = []
    for sequences in SEQUENCES:
        for draft in DRAFTS:
            for cold in COLD:
                by_cores = {cores: found[Setting(sequences, draft, cold, cores)] for cores in CORES}
                late = {cores: one[1] for cores, one in by_cores.items()}
                figures = [f"{late[CORES[0]]:.2f}", f"{late[CORES[-1]]:.2f}", f"{by_cores[CORES[0]][2]:.2f}"]
                cells = [needed(late, step) for step in STEPS_MS]
                rows.append([str(sequences), str(draft), f"{cold:.0%}", *figures, *cells])
    head = ["sequences", "draft", "cold", f"p99 ms, {CORES[0]} cores", f"p99 ms, {CORES[-1]} cores", "CPU ms"]
    return "\n".join(
        [
            f"Costs: {costs.taken}. `cold` is the share of rows with a new mask: {costs.first_share:.0%} in the first "
            f"text of a schema, {costs.later_share:.0%} in later ones. The last columns are the least cores with which "
            f"99 of 100 steps' masks take no longer than a step.\n",
            table([*head, *(f"{step} ms" for step in STEPS_MS)], rows),
            "\nNew requests a second, if each has a new schema and texts have 200 tokens, and the cores that their "
            "front-end (API) and compiling (engine) keep busy:\n",
            _requests(costs),
        ]
    )


def plot(found: dict[Setting, tuple[float, float, float]], costs: Costs, path: Path) -> None:
    """Plot the milliseconds of the masks of a step by number of sequences, without and with drafts."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(DRAFTS), figsize=(11, 4.8), sharey=True)
    for panel, draft in zip(panels, DRAFTS, strict=True):
        for number, cold in enumerate(COLD):
            for cores, style in ((CORES[0], "-"), (CORES[-1], "--")):
                if cold == 0 and cores != CORES[0]:
                    continue  # known masks are made by one thread
                values = [found[Setting(sequences, draft, cold, cores)][1] for sequences in SEQUENCES]
                label = f"{cold:.0%} new" + ("" if cold == 0 else f", {cores} cores")
                panel.plot(SEQUENCES, values, style, color=f"C{number}", marker="o", markersize=3, label=label)
        frozen = [simulated(Setting(n, draft, COLD[-2], CORES[0], 2 / 3), costs)[1] for n in SEQUENCES]
        label = f"{COLD[-2]:.0%} new, {CORES[0]} cores, 2/3 frozen"
        panel.plot(SEQUENCES, frozen, ":", color=f"C{len(COLD) - 2}", marker="x", markersize=4, label=label)
        panel.axhspan(STEPS_MS[0], STEPS_MS[-1], color="grey", alpha=0.2)
        panel.text(SEQUENCES[0], STEPS_MS[0] * 1.08, "steps of 5 to 30 ms", fontsize=8, color="dimgrey")
        panel.set(xscale="log", yscale="log", xlabel="sequences in a step", title=f"drafts of {draft} tokens")
        panel.set_xticks(SEQUENCES, [str(one) for one in SEQUENCES])
        panel.set_yticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("ms until the masks of a step are there (99 %)")
    panels[0].title.set_text("no drafts")
    panels[-1].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate all settings, and write tables and a plot."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--costs", type=Path, default=FILE, help="a file of benchmarks.serving.costs (%(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="simulated steps of each setting (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="where table and plot go")
    options = parser.parse_args(arguments)
    costs = load(options.costs)
    found = {setting: simulated(setting, costs, options.steps) for setting in settings()}
    options.out.mkdir(parents=True, exist_ok=True)
    text = report(found, costs)
    (options.out / "serving.md").write_text(text + "\n")
    with (options.out / "serving.csv").open("w", newline="") as file:
        writer: Any = csv.writer(file)
        writer.writerow(["sequences", "draft", "cold", "cores", "p50_ms", "p99_ms", "cpu_ms"])
        for setting, figures in found.items():
            given = [setting.sequences, setting.draft, setting.cold, setting.cores]
            writer.writerow([*given, *(round(one, 4) for one in figures)])
    plot(found, costs, options.out / "serving.png")
    print(text, f"\nTables and the plot are in {options.out}/")


if __name__ == "__main__":
    main()
