"""Tables (Markdown) and plots (PNG) of measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.measure import Steps


def percentile(values: list[float], share: float) -> float:
    """The value that this share of the values, from 0 to 1, lies below; NaN if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, [":--", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def steps_table(results: dict[str, Steps], base: str) -> str:
    """A table of times in microseconds, with ratios to the engine ``base`` over the cases that all engines do."""
    rows = []
    for label, attribute in (("first mask", "first"), ("step", "steps")):
        for what, share in (("mean", None), ("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)):
            cells = []
            for result in results.values():
                values: list[float] = getattr(result, attribute)
                figure = sum(values) / max(1, len(values)) if share is None else percentile(values, share)
                cells.append(f"{figure:,.1f}")
            rows.append([f"{label}, {what}", *cells])
    shared = set.intersection(*(set(result.by_case) for result in results.values()))
    sums = {name: sum(result.by_case[case] for case in shared) for name, result in results.items()}
    ratios = [f"{sums[name] / max(sums[base], 1e-9):.2f}x" for name in results]
    rows.append([f"all steps of the {len(shared)} cases that all do, to {base}'s", *ratios])
    rows.append(["refused", *(str(len(result.refused)) for result in results.values())])
    refused = [f"* {name} refused {line}" for name, result in results.items() for line in result.refused[:8]]
    return "\n".join([table(["microseconds", *results], rows), "", *refused])


def series_table(what: str, results: dict[str, dict[int, float]]) -> str:
    """A table of series over the quantity ``what``, one column for each engine."""
    places = sorted({place for series in results.values() for place in series})
    cells = [[str(place), *(f"{s[place]:,.1f}" if place in s else "-" for s in results.values())] for place in places]
    return table([what, *results], cells)


def plot_steps(results: dict[str, Steps], path: Path) -> None:
    """Plot the share of steps that take longer than a time: the slow ones, which delay serving, are on the right."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for name, result in results.items():
        values = sorted(result.steps)
        axes.plot(values, [1 - i / len(values) for i in range(len(values))], label=name)
    axes.set(xscale="log", yscale="log", xlabel="microseconds of a step", ylabel="share of steps that take longer")
    save(figure, axes, path)


def plot_series(results: dict[str, dict[int, float]], x: str, y: str, path: Path, scale: str = "log") -> None:
    """Plot series, one line for each engine; ``x`` and ``y`` are the labels of the axes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for name, series in results.items():
        axes.plot(list(series), list(series.values()), marker="o", markersize=3, label=name)
    axes.set(xscale=scale, yscale="log", xlabel=x, ylabel=y)
    save(figure, axes, path)


def plain_log_axis(axes: Any) -> None:
    """Make the x axis logarithmic, with plain numbers at it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def save(figure: Any, axes: Any, path: Path, **legend: Any) -> None:
    """Write a plot with a grid and a legend, and close it."""
    import matplotlib.pyplot as plt

    axes.grid(alpha=0.3)
    axes.legend(**legend)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


OUTSIDE = {"fontsize": 8, "bbox_to_anchor": (1.01, 1), "loc": "upper left"}
"""A legend beside the axes, for :func:`save`."""
