"""Imports on first use, by threads at once."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import grammarspec

PACKAGE = Path(grammarspec.__file__).parent
COMMANDS = PACKAGE / "cli"
"""Where one thread imports what it needs, before there are others."""

SLOWLY = """
import sys, time

class Slow:
    @staticmethod
    def find_spec(name, path, target=None):
        if name.startswith("grammarspec."):
            time.sleep(0.002)

sys.meta_path.insert(0, Slow)
"""
"""Makes imports take so long that those of threads cross."""

NAMES = """
import grammarspec as gs

work = [lambda: gs.regex, lambda: gs.lark, lambda: gs.gbnf, lambda: gs.json_schema, lambda: gs.literal("a") | str]
"""

REQUESTS = """
from grammarspec.serving import Request

requests = [
    Request.json_schema({"enum": ["a"], "pattern": "a+"}),
    Request.regex("a+b"),
    Request.grammar('start: "a"'),
    Request.grammar('root ::= "a"'),
    Request.structural_tag({"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}),
]
work = [request.lower for request in requests]
"""

AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

barrier = Barrier(len(work))

def after_the_others(call):
    barrier.wait()
    call()

with ThreadPoolExecutor(len(work)) as pool:
    print(len(list(pool.map(after_the_others, work))))
"""

FORK = """
import os, threading, time, warnings
from grammarspec.imports import importing

warnings.simplefilter("ignore")

def hold():
    with importing:
        time.sleep(10)

threading.Thread(target=hold, daemon=True).start()
time.sleep(0.3)
child = os.fork()
if child == 0:
    import grammarspec
    grammarspec.lark
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""

BODIES = """
import sys
from importlib import import_module
from grammarspec.imports import importing

def refuse(self):
    raise AssertionError("the body of a module imports on first use")

type(importing).__enter__ = refuse
for name in sys.argv[1:]:
    try:
        import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
"""


def run(text: str, *arguments: str) -> str:
    """What a new process prints."""
    command = [sys.executable, "-c", text, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("work", [NAMES, REQUESTS], ids=["names", "requests"])
def test_threads_may_be_the_first_at_once(work: str) -> None:
    assert run(SLOWLY + work + AT_ONCE) == "5\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_during_an_import_can_import() -> None:
    assert run(FORK) == "7\n"


def imports(tree: ast.AST, *, guarded: bool = False, in_function: bool = False) -> list[int]:
    """The lines where a function imports modules of the package without the lock."""
    found = []
    for node in ast.iter_child_nodes(tree):
        within = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        held = guarded or (isinstance(node, ast.With) and ast.unparse(node.items[0]) == "importing")
        if isinstance(node, ast.ImportFrom) and within and not held and (node.module or "").startswith("grammarspec"):
            found.append(node.lineno)
        found += imports(node, guarded=held, in_function=within)
    return found


def test_functions_import_under_the_lock() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if COMMANDS not in path.parents]
    found = {str(path): imports(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    assert not {path: lines for path, lines in found.items() if lines}
    assert imports(ast.parse("def f():\n    from grammarspec.frontends import regex")) == [2]


def test_bodies_of_modules_do_not_need_the_lock() -> None:
    """A thread that imports such a module by a plain ``import`` could wait for one that waits for the module."""
    paths = (path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py"))
    names = sorted(".".join(path.parts).removesuffix(".__init__") for path in paths if path.stem != "__main__")
    missing = [line.partition(":")[0] for line in run(BODIES, *names).splitlines()]
    assert len(missing) < len(names) / 10, missing  # those for packages that are not installed
