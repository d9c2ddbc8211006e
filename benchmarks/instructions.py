"""A guard against slowdowns that measured times would not show: instructions of each case, and the data that they do
not find in the first and in the last of the caches that callgrind simulates.

The accepted counts are in ``instructions.json``. A case with more, beyond a tolerance, fails; ``--update`` accepts the
counts as they are. They depend on the compiler a little, and hardly on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, built_in

HERE = Path(__file__).parent
ACCEPTED = HERE / "instructions.json"
TOLERANCES = {"instructions": 1.03, "D1 misses": 1.1, "LL misses": 1.1}
"""Counts may be so many times what is accepted. Misses depend on where memory happens to lie."""
CACHES = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"]
"""Of a small core, whatever the machine has: bytes, ways, bytes of a line."""

Counts = dict[str, int]


def write_replay(path: Path, tokenizer: Any, cases: list[Case]) -> None:
    """Write the input of ``compiler/examples/replay.rs``: a vocabulary, and grammars with texts as tokens."""
    import grammarspec as gs

    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer)
    with path.open("wb") as out:

        def numbers(*values: int) -> None:
            out.write(struct.pack(f"<{len(values)}I", *values))

        numbers(vocabulary.size)
        for token in range(vocabulary.size):
            text = bytes(vocabulary.token_bytes(token) or b"")
            numbers(len(text))
            out.write(text)
        numbers(vocabulary.size, len(vocabulary.eos_token_ids), *vocabulary.eos_token_ids)
        for case in cases:
            grammar = gs.json_schema(case.schema).ir.to_bytes()
            numbers(len(grammar))
            out.write(grammar)
            numbers(len(case.texts))
            for written in case.texts:
                tokens = tokenizer.encode(written, add_special_tokens=False)
                numbers(len(tokens), *tokens)


def count(cases: list[Case]) -> dict[str, Counts]:
    """The counts of compiling, masks and steps of each case, each with a vocabulary of its own."""
    from benchmarks.__main__ import load_tokenizer

    manifest = HERE.parent / "compiler" / "Cargo.toml"
    subprocess.run(
        ["cargo", "build", "-q", "--release", "--example", "replay", "--manifest-path", manifest], check=True
    )
    replay = manifest.parent / "target" / "release" / "examples" / "replay"
    tokenizer = load_tokenizer(None)

    def run(case: Case) -> Counts:
        with tempfile.TemporaryDirectory() as folder:
            data, out = Path(folder) / "replay", Path(folder) / "out"
            write_replay(data, tokenizer, [case])
            options = [f"--callgrind-out-file={out}", "--toggle-collect=*replay::replay*", *CACHES]
            subprocess.run(
                ["valgrind", "--tool=callgrind", *options, str(replay), str(data)], check=True, capture_output=True
            )
            lines = dict(line.split(": ", 1) for line in out.read_text().splitlines() if ": " in line)
            events = dict(zip(lines["events"].split(), map(int, lines["summary"].split()), strict=True))
            return {
                "instructions": events["Ir"],
                "D1 misses": events["D1mr"] + events["D1mw"],
                "LL misses": events["DLmr"] + events["DLmw"],
            }

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((case.name for case in cases), pool.map(run, cases), strict=True))


def main() -> int:
    """Count, compare with the accepted counts, and return 1 if a case takes more."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--update", action="store_true", help="accept the counts as they are now")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind, which counts the instructions, is not installed")
        return 0
    counts = count(built_in())
    accepted = json.loads(ACCEPTED.read_text()) if ACCEPTED.exists() else {}
    more = []
    for name, found in counts.items():
        ratios = {what: found[what] / accepted.get(name, found)[what] for what in TOLERANCES}
        listed = ", ".join(f"{found[what]:11,} {what} ({ratio:.3f})" for what, ratio in ratios.items())
        print(f"{name:15} {listed}")
        more += [f"{what} of {name}" for what, ratio in ratios.items() if ratio > TOLERANCES[what]]
    if options.update:
        ACCEPTED.write_text(json.dumps(counts, indent=2) + "\n")
    elif more:
        print(f"more than accepted: {', '.join(more)}; if that has to be, say --update", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
