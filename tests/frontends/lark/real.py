"""Real ``.lark`` files, unchanged, under the options of their packages: ``python -m tests.frontends.lark.real``.

``real.toml`` lists them, ``python -m tests.fetch_grammars`` fetches them, and :mod:`.judge` compares what lark and
grammarspec say of their inputs. What comes out is a table: a line for each grammar, with how many verdicts agree for
real inputs, mutations of them, and samples, and the smallest text on which the two differ.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import importlib
import importlib.util
import re
import sys
import time
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lark
from lark.indenter import Indenter

import grammarspec as gs
from tests import fetch_grammars
from tests.frontends.lark import judge

__all__ = ["Quotas", "Real", "Result", "main", "read", "run"]

LONGEST = 1500
"""The most characters of an input, unless the table says another number: mutations are judged in full."""


@dataclass(frozen=True)
class Quotas:
    """How many texts of each kind are judged."""

    real: int = 60
    mutated: int = 300
    sampled: int = 60


@dataclass(frozen=True)
class Real:
    """A grammar of the table, and its package."""

    package: str
    folder: Path
    row: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.row["name"])

    @property
    def file(self) -> Path:
        return self.folder / str(self.row["file"])

    def options(self) -> dict[str, Any]:
        """The arguments of ``lark.Lark``."""
        options = dict(self.row["options"])
        if "import_paths" in options:
            options["import_paths"] = [str(self.folder / path) for path in options["import_paths"]]
        if "g_regex_flags" in options:
            options["g_regex_flags"] = sum(getattr(re, letter) for letter in options["g_regex_flags"])
        postlex = self._postlex()
        return options if postlex is None else {**options, "postlex": postlex}

    def _postlex(self) -> Any:
        if "indenter" in self.row:
            return type("TableIndenter", (Indenter,), self.row["indenter"])()
        place, _, name = self.row.get("postlex", "").partition(":")
        if not place:
            return None
        if not place.endswith(".py"):
            return getattr(importlib.import_module(place), name)()
        spec = importlib.util.spec_from_file_location(f"postlex_of_{self.folder.name}", self.folder / place)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name)()

    def inputs(self, count: int) -> list[str]:
        """Texts to judge: those of the table, and as many others, evenly spread, as there may be."""
        own = list(self.row.get("texts", ()))
        longest = self.row.get("longest", LONGEST)
        others = [text for text in dict.fromkeys(self._found()) if 0 < len(text) <= longest and text not in own]
        room = max(count - len(own), 0)
        chosen = others if len(others) <= room else [others[at * len(others) // room] for at in range(room)]
        return [text + self.row.get("append", "") for text in own + chosen]

    def _found(self) -> Iterator[str]:
        row = self.row
        yield from map(_text, self._files(row.get("files", ())))
        for path in self._files(row.get("strings", ())):
            yield from _strings(path)
        find = row.get("find", {"files": (), "pattern": ""})
        for path in self._files(find["files"]):
            yield from (found[1] for found in re.finditer(find["pattern"], _text(path)))

    def _files(self, globs: Any) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")) if globs else ():
            inner = path.relative_to(self.folder).as_posix()
            if path.is_file() and any(fnmatch.fnmatchcase(inner, glob) for glob in globs):
                yield path


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _strings(path: Path) -> Iterator[str]:
    """The string literals of a Python file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(_text(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def read() -> list[Real]:
    """The grammars of the table, fetched or not."""
    packages = tomllib.loads(fetch_grammars.TABLE.read_text(encoding="utf-8"))["package"]
    return [
        Real(f"{package['name']} {package['version']}", fetch_grammars.folder_of(package), row)
        for package in packages
        for row in package["grammar"]
    ]


@dataclass(frozen=True)
class Result:
    """What became of one grammar."""

    real: Real
    refused: str = ""
    """By whom it is refused, and why; ``""`` if both load it."""
    taken: tuple[int, int] = (0, 0)
    """How many inputs lark takes, and how many there are."""
    score: judge.Score | None = None
    seconds: float = 0.0
    """What it takes us to load and compile it."""

    def line(self) -> str:
        """A line of the table, and a second one for a difference."""
        head = f"{self.real.name:22} {self.real.package:28}"
        if self.score is None:
            return f"{head} {self.taken[0]:4}/{self.taken[1]:<4} {self.refused}"
        score = self.score
        cells = [f"{score.members[kind]:4}/{score.agreed[kind]:<4}" for kind in judge.KINDS]
        undecided = ", ".join(f"{count} {reason}" for reason, count in score.undecided.items())
        line = f"{head} {' '.join(cells)} {len(score.differing):4} {self.seconds:8.2f} s {undecided}"
        if score.smallest is None:
            return line
        kind, text, expected = score.smallest
        return f"{line}\n    {kind}: lark {'takes' if expected else 'refuses'}, we do not: {text!r}"


def run(
    real: Real,
    quotas: Quotas = Quotas(),
    changes: dict[str, Any] | None = None,
    seed: int = 1,
) -> Result:
    """Judge one grammar.

    Args:
        changes: options of lark in place of those of the package.
        seed: of the mutations.
    """
    options = {**real.options(), **(changes or {})}
    try:
        theirs = judge.open_theirs(real.file, options)
    except (lark.exceptions.LarkError, ValueError, ImportError) as error:
        return Result(real, f"lark: {type(error).__name__}: {_first_line(error)}")
    inputs = real.inputs(quotas.real)
    taken = sum(map(theirs.takes, inputs)), len(inputs)
    started = time.perf_counter()
    try:
        ours = judge.open_ours(real.file, options)
        ours.matches("")
    except gs.GrammarError as error:
        return Result(real, f"refused: {type(error).__name__}: {_first_line(error)}", taken)
    seconds = time.perf_counter() - started
    texts = {
        "real": inputs,
        "mutated": judge.mutations([*filter(theirs.takes, inputs)], quotas.mutated, seed),
        "sampled": judge.samples(ours, quotas.sampled, min(200, real.row.get("longest", LONGEST))),
    }
    return Result(real, taken=taken, score=judge.judge(ours.matches, theirs, texts), seconds=seconds)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:120]


def main(arguments: list[str] | None = None) -> int:
    """Print the table. Returns 1 if verdicts differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.frontends.lark.real", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORD", help="names or packages with this in them"
    )
    parser.add_argument("--parser", help="instead of the package's parser")
    parser.add_argument(
        "--lexer", help="instead of the package's lexer; without it, lark's choice if --parser is given"
    )
    for kind, count in vars(Quotas()).items():
        parser.add_argument(f"--{kind}", type=int, default=count, help=f"texts that are {kind} (%(default)s)")
    given = parser.parse_args(arguments)
    changes = {}
    if given.parser or given.lexer:
        changes = {name: value for name in ("parser", "lexer") if (value := getattr(given, name))}
        changes.setdefault("lexer", "auto")
    quotas = Quotas(given.real, given.mutated, given.sampled)
    print(f"{'grammar':22} {'package':28} {'real':9} {'mutated':9} {'sampled':9} differ  loaded in  no verdict")
    print(f"{'':51} (members / verdicts that agree)")
    results = []
    for real in read():
        if given.only and not any(word in f"{real.name} {real.package}" for word in given.only):
            continue
        if not real.file.is_file():
            print(f"{real.name:22} {real.package:28} not there: python -m tests.fetch_grammars", flush=True)
            continue
        results.append(run(real, quotas, changes))
        print(results[-1].line(), flush=True)
    _print_sums(results)
    return int(not results or any(result.score and result.score.differing for result in results))


def _print_sums(results: list[Result]) -> None:
    scores = [result.score for result in results if result.score]
    agreed = {kind: sum(score.agreed[kind] for score in scores) for kind in judge.KINDS}
    differing = sum(len(score.differing) for score in scores)
    by_lark = sum(result.refused.startswith("lark") for result in results)
    print(
        f"{len(scores)} of {len(results)} grammars load ({by_lark} are refused by lark); {agreed}, {differing} differ"
    )


if __name__ == "__main__":
    sys.exit(main())
