"""docs/grammars.md, which is made of the index of the shipped grammars. ``make written`` writes it anew."""

from __future__ import annotations

from pathlib import Path

import pytest

import grammarspec as gs
from grammarspec.frontends.lark.shipped import Shipped, shipped
from tests.docs.test_types_page import code, row

PAGE = Path(__file__).parents[2] / "docs" / "grammars.md"

HEAD = """\
# Grammars to start from

{count} grammars come with the package, and are loaded by name. They are [`.lark` files](lark.md), in `grammars/` of the
repository; the head of each says which standard it follows and what it leaves out, and beside it stand texts that it
accepts and rejects.

```python
import grammarspec as gs

version = gs.load("semver")
version.matches("2.0.0-rc.1")  # -> True
version.matches("2.0")  # -> False
gs.load("cron").matches("*/15 9-17 * * MON-FRI")  # -> True
gs.load("date-time", captures=["date"]).match("2024-02-29T12:30:00Z").captures  # -> {{'date': ['2024-02-29']}}
gs.load("semvar")
# -> FileNotFoundError: {error}
```

From the command line: `grammarspec generate --lark semver "Which version comes after 1.9.3?"`.

Each is written for one parser and one lexer of lark, with which `gs.load` opens it; `parser=` and `lexer=` choose
others. A file of that name in the current folder comes first. To change a grammar, copy the file, and give the options
here to `gs.load` with its path.

| Name | Texts | Parser, lexer, flags | Example |
|---|---|---|---|
"""


def page() -> str:
    with pytest.raises(FileNotFoundError) as caught:
        gs.load("semvar")
    text = HEAD.format(count=len(shipped()), error=caught.value)
    text += "".join(row(code(name), entry.what, options(entry), example(entry)) for name, entry in shipped().items())
    return text


def options(entry: Shipped) -> str:
    return ", ".join([entry.parser, entry.lexer, *([f"`re.{entry.flags}`"] if entry.flags else [])])


def example(entry: Shipped) -> str:
    """The lines of the example, without what makes them a table or the end of code."""
    return "<br>".join(f"`{line}`" for line in entry.example.splitlines() if line)


def test_the_page_is_that_of_the_index(pytestconfig: pytest.Config) -> None:
    text = page()
    if pytestconfig.option.write:
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "make written writes the page anew"
    assert all("`" not in entry.example for entry in shipped().values())
