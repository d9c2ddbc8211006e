"""A table and plots from the figures of ``benchmarks.gpu``: ``python -m benchmarks.gpu_report gpu.json``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import table


def text_of(results: dict[str, Any]) -> str:
    """The figures as Markdown."""
    about = results["about"]
    lines = [f"# {about['device']}, {about['date'][:10]}", ""]
    lines.append(", ".join(f"{name} {about[name]}" for name in ("torch", "transformers", "python")) + ".")
    if about["toy"]:
        lines += ["", "Toy models: the times mean nothing."]
    checks = [(name[7:], found) for name, found in results.items() if name.startswith("check: ")]
    rows = [[name, "ok" if found.get("ok") else found.get("error", "not run")] for name, found in checks]
    lines += ["", table(["check", "result"], rows)]
    if "kernels" in results:
        lines += ["", "## Kernels", "", _kernels(results["kernels"])]
    for name, found in results.items():
        if not name.startswith("rounds, "):
            continue
        lines += ["", f"## {name[8:]}", ""]
        shares = {(e["setting"], e["rows"], e["gamma"]): e for e in found.get("overheads", [])}
        cells = []
        for each in found["settings"]:
            over = shares.get((each["setting"], each["rows"], each["gamma"]))
            said = "" if over is None else f"{100 * over['overhead']:+.1f} %"
            if over is not None and not over["same acceptance"]:
                said += " (other acceptance)"
            numbers = [f"{each['round_us']:,.0f}", f"{each['token_us']:,.0f}", f"{each['tokens_per_round']:.2f}", said]
            cells.append([each["setting"], str(each["rows"]), str(each["gamma"]), *numbers])
        head = ["setting", "rows", "gamma", "us a round", "us a token", "tokens a round", "constraint adds"]
        lines.append(table(head, cells))
        if found.get("left out"):
            lines += ["", f"{len(found['left out'])} settings were left out, as there was no time."]
    return "\n".join(lines) + "\n"


def _kernels(found: dict[str, Any]) -> str:
    """Times of calls beside the least time that their reading and writing takes, in microseconds."""
    names = list(dict.fromkeys(name for each in found["calls"] for name in each["us"]))
    head = ["call", "rows", "allowed", "limit"]
    rows = [
        [*(str(each[name]) for name in head), *(str(each["us"].get(name, "")) for name in names)]
        for each in found["calls"]
    ]
    return table([*head, *names], rows)


def plot(results: dict[str, Any], folder: Path) -> list[Path]:
    """Tokens per second by the length of drafts, for each shape, batch by batch."""
    import matplotlib.pyplot as plt

    paths = []
    for name, found in results.items():
        if not name.startswith("rounds, "):
            continue
        settings = found["settings"]
        sizes = sorted({each["rows"] for each in settings})
        figure, every = plt.subplots(1, len(sizes), figsize=(4 * len(sizes), 3.5), squeeze=False)
        for rows, axes in zip(sizes, every[0], strict=True):
            for what, drafted in (("plain", "speculative"), ("constrained", "both")):
                points = sorted(
                    (each["gamma"], 1e6 * rows / each["token_us"])
                    for each in settings
                    if each["rows"] == rows and each["setting"] in (what, drafted)
                )
                if points:
                    axes.plot(*zip(*points, strict=True), marker="o", label=what)
            axes.set(title=f"batch {rows}", xlabel="draft tokens", ylabel="tokens per second")
            axes.legend(fontsize=7)
        paths.append(folder / f"gpu-{name[8:]}.png")
        figure.tight_layout()
        figure.savefig(paths[-1], dpi=120)
        plt.close(figure)
    return paths


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table and the plots beside the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", default=Path("benchmarks/results/gpu.json"))
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text())
    text = text_of(results)
    options.results.with_suffix(".md").write_text(text)
    print(text)
    try:
        for path in plot(results, options.results.parent):
            print(f"plotted {path}")
    except ImportError:
        print("no plots: matplotlib is not installed")


if __name__ == "__main__":
    main()
