"""Steps along real inputs of real ``.lark`` grammars: ``python -m benchmarks.grammars``.

The grammars are those of ``tests/frontends/lark/real.toml`` (``python -m tests.fetch_grammars`` fetches them). Each is
compiled anew, and its inputs are walked twice: nothing is known of it at the first walk, all masks are at the second.
Then it is compiled once more and walked: nothing is known of the grammar, but the tables of the vocabulary are there.
Beside the times of the two stand those of llguidance, where it is installed and loads the file: its lexers are others
than lark's, and what it refuses of the inputs is left out of its times.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.__main__ import load_tokenizer
from benchmarks.engines import from_lark
from benchmarks.measure import now, walk
from tests.frontends.lark import real

NAMES = "syncode-java,syncode-sql,syncode-go,syncode-c,mistql,optimade,json-standalone,lark,cel"


def main() -> None:
    """Walk the grammars that the command line names; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grammars", description=__doc__)
    parser.add_argument("--tokenizer", help="a directory, a hub name or a .gguf file; SmolLM2's if not given")
    parser.add_argument("--names", default=NAMES, help="names of real.toml, with commas between them")
    parser.add_argument("--texts", type=int, default=12, help="inputs of each grammar, at most")
    parser.add_argument("--walks", type=int, default=2, help="times that the inputs are walked")
    parser.add_argument("--engines", default="grammarspec,llguidance")
    options = parser.parse_args()

    tokenizer = load_tokenizer(options.tokenizer)
    engines: dict[str, Callable[[real.Real], Callable[[], Any]]] = {}
    for name in options.engines.split(","):
        try:
            engines[name] = from_lark(name, tokenizer)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    table = {grammar.name: grammar for grammar in real.read()}
    print("microseconds                                compile   mean    p50    p99     max")
    for name in options.names.split(","):
        texts = [tokenizer.encode(text, add_special_tokens=False) for text in table[name].inputs(options.texts)]
        for engine, opened in engines.items():
            for line in lines(opened, table[name], texts, options.walks):
                print(f"{name:16} {engine:12} {line}", flush=True)


def lines(
    opened: Callable[[real.Real], Callable[[], Any]], grammar: real.Real, texts: list[list[int]], walks: int
) -> list[str]:
    """What one engine does with one grammar: a line for each walk."""
    out = []
    for names in ([f"walk {number + 1}" for number in range(walks)], ["anew"]):
        start = now()
        try:
            make = opened(grammar)
            make().fill()
        except Exception as error:  # whatever the engine raises, it refuses this grammar
            return [f"refused: {(str(error).splitlines() or [''])[0][:90]}"]
        compiled = (now() - start) / 1e3
        for name in names:
            out += [f"{name:6} {compiled:10.0f} {cells}" for cells in walked(make, texts)]
        del make  # so that nothing of the constraint is left
    return out


def walked(make: Callable[[], Any], texts: list[list[int]]) -> list[str]:
    """The times of a walk of all texts, or why it fails."""
    taken: list[float] = []
    whole = 0
    for text in texts:
        try:
            times, accepted = walk(make(), text)
        except Exception as error:  # a limit, say
            return [f"fails: {(str(error).splitlines() or [''])[0][:90]}"]
        taken += times
        whole += accepted
    if not taken:
        return []
    taken.sort()
    mean, half, most = statistics.mean(taken), taken[len(taken) // 2], taken[-1]
    p99 = taken[len(taken) * 99 // 100]
    counted = f"{len(taken)} tokens, {whole} of {len(texts)} texts whole"
    return [f"{mean:6.0f} {half:6.1f} {p99:6.0f} {most:7.0f}  {counted}"]


if __name__ == "__main__":
    main()
