"""Steps along real inputs of real ``.lark`` grammars: ``python -m benchmarks.grammars``.

The grammars are those of ``tests/frontends/lark/real.toml`` (``python -m tests.fetch_grammars`` fetches them). Each is
compiled anew, and its inputs are walked twice: nothing is known of it at the first walk, all masks are at the second.
Then it is compiled once more and walked: nothing is known of the grammar, but the tables of the vocabulary are there.
With ``--engines grammarspec-sharing``, that finds what was known of the grammar before all of its users went.
With ``--each``, it is compiled anew for each input. Files of yours can be walked instead of the inputs, also those of
grammars that come with the package: ``--names shipped:sql --files ...``. With ``--along 300``, the means of 300 tokens
each are shown along the first input, in its first walk and its last.

Beside the times of the two stand those of llguidance, where it is installed and loads the file: its lexers are others
than lark's, and what it refuses of the inputs is left out of its times. Most files that it does not load have
priorities or lookarounds: ``--engines grammarspec,llguidance-rewritten`` takes these out for it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.__main__ import load_tokenizer
from benchmarks.engines import from_lark
from benchmarks.measure import now, walk
from grammarspec.frontends.lark.shipped import Shipped, shipped
from tests.frontends.lark import real


class File(Protocol):
    """A ``.lark`` file, and the options of ``lark.Lark`` that it is written for."""

    @property
    def file(self) -> Path: ...
    def options(self) -> dict[str, Any]: ...
    def inputs(self, count: int) -> list[str]: ...


@dataclass(frozen=True)
class ShippedFile:
    """A grammar of the package; its example is its only input."""

    entry: Shipped

    @property
    def file(self) -> Path:
        return self.entry.path

    def options(self) -> dict[str, Any]:
        return {"parser": self.entry.parser, "lexer": self.entry.lexer, **self.entry.options}

    def inputs(self, count: int) -> list[str]:
        return [self.entry.example][:count]


Open = Callable[[File], Callable[[], Any]]
"""Compiles a grammar, and returns what makes matchers of it."""

Walked = tuple[list[float], bool]
"""The microseconds of each step, and whether all tokens were allowed."""

NAMES = "syncode-java,syncode-sql,syncode-go,syncode-c,mistql,optimade,json-standalone,lark,cel"


def main() -> None:
    """Walk the grammars that the command line names; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grammars", description=__doc__)
    parser.add_argument("--tokenizer", help="a directory, a hub name or a .gguf file; SmolLM2's if not given")
    parser.add_argument("--names", default=NAMES, help="of real.toml, or as shipped:sql, with commas between")
    parser.add_argument("--texts", type=int, default=12, help="inputs of each grammar, at most")
    parser.add_argument("--files", nargs="+", type=Path, help="files to walk instead of the inputs, of one grammar")
    parser.add_argument("--tokens", type=int, help="tokens of each input, at most")
    parser.add_argument("--each", action="store_true", help="compile the grammar for each input")
    parser.add_argument("--walks", type=int, default=2, help="times that the inputs are walked")
    parser.add_argument("--along", type=int, help="tokens of which means are shown")
    parser.add_argument("--engines", default="grammarspec,llguidance")
    options = parser.parse_args()

    tokenizer = load_tokenizer(options.tokenizer)
    engines: dict[str, Open] = {}
    for name in options.engines.split(","):
        try:
            engines[name] = from_lark(name, tokenizer)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    table: dict[str, File] = {grammar.name: grammar for grammar in real.read()}
    table |= {f"shipped:{name}": ShippedFile(entry) for name, entry in shipped().items()}
    print("microseconds                                compile    mean    p50    p99     max")
    for name in options.names.split(","):
        files = [path.read_text(encoding="utf-8") for path in options.files or ()]
        inputs = files or table[name].inputs(options.texts)
        texts = [tokenizer.encode(text, add_special_tokens=False)[: options.tokens] for text in inputs]
        for engine, opened in engines.items():
            if options.each:
                made = each(opened, table[name], texts, options.walks)
            else:
                made = lines(opened, table[name], texts, options.walks, options.along)
            for line in made:
                print(f"{name:16} {engine:12} {line}", flush=True)


def lines(opened: Open, grammar: File, texts: list[list[int]], walks: int, along: int | None) -> list[str]:
    """What one engine does with one grammar: a line for each walk."""
    out = []
    try:
        for names in ([f"walk {number + 1}" for number in range(walks)], ["anew"]):
            make, compiled = compile_now(opened, grammar)
            walked = [[walk(make(), text) for text in texts] for _ in names]
            out += [f"{name:6} {compiled:10.0f} {cells(texts)}" for name, texts in zip(names, walked, strict=True)]
            if along and len(names) > 1:
                out += [f"along  {' '.join(means(texts[0][0], along))}" for texts in (walked[0], walked[-1])]
            del make  # so that nothing of the constraint is left
    except Exception as error:  # whatever the engine raises, it refuses this grammar, or meets a limit
        out.append(f"refused: {(str(error).splitlines() or [''])[0][:90]}")
    return out


def each(opened: Open, grammar: File, texts: list[list[int]], walks: int) -> list[str]:
    """The same where the grammar is compiled for each text, after one that makes the vocabulary's tables."""
    found: list[list[Walked]] = [[] for _ in range(walks)]
    took = []
    try:
        make, _ = compile_now(opened, grammar)
        for text in texts:
            walk(make(), text)
        del make
        for text in texts:
            make, compiled = compile_now(opened, grammar)
            took.append(compiled)
            for walked in found:
                walked.append(walk(make(), text))
            del make  # as above
    except Exception as error:
        return [f"refused: {(str(error).splitlines() or [''])[0][:90]}"]
    compiled = statistics.median(took)
    return [f"each {number + 1} {compiled:10.0f} {cells(walked)}" for number, walked in enumerate(found)]


def compile_now(opened: Open, grammar: File) -> tuple[Callable[[], Any], float]:
    """What makes matchers of a grammar, and the microseconds of compiling it and of the first mask."""
    start = now()
    make = opened(grammar)
    make().fill()
    return make, (now() - start) / 1e3


def means(times: list[float], count: int) -> list[str]:
    """The means of so many steps each, in their order."""
    return [f"{statistics.mean(times[at : at + count]):.1f}" for at in range(0, len(times), count)]


def cells(texts: list[Walked]) -> str:
    """The times of walks of texts."""
    taken = sorted(time for times, _ in texts for time in times) or [0.0]
    mean, half, p99, most = statistics.mean(taken), taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1]
    whole = sum(whole for _, whole in texts)
    counted = f"{len(taken)} tokens, {whole} of {len(texts)} texts whole"
    return f"{mean:7.1f} {half:6.1f} {p99:6.0f} {most:7.0f}  {counted}"


if __name__ == "__main__":
    main()
