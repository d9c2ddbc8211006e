"""The grammars that come with the package: what they accept by lark and by grammarspec, and how they are loaded."""

from __future__ import annotations

import ast
import re
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import grammarspec as gs
from grammarspec.cli import main
from grammarspec.frontends.lark.shipped import shipped

pytest.importorskip("lark")
from tests.oracles.shipped import FOLDER, NAMES, accepts, cases


def test_the_index_names_the_files_that_there_are() -> None:
    assert sorted(shipped()) == sorted(path.stem for path in FOLDER.glob("*.lark"))
    assert sorted(shipped()) == sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.cases.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_by_lark(name: str) -> None:
    contains, texts = accepts(name), cases(name)
    assert len(texts["accept"]) >= 15
    assert len(texts["reject"]) >= 15
    assert [text for text in [*texts["accept"], shipped()[name].example] if not contains(text)] == []
    assert [text for text in texts["reject"] if contains(text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_by_grammarspec(name: str) -> None:
    constraint, texts = gs.compile(gs.load(name), gs.Vocabulary.bytes()), cases(name)

    def contains(text: str) -> bool:
        matcher, data = constraint.matcher(), list(text.encode())
        return matcher.accept_tokens(data) == len(data) and matcher.is_accepting

    assert [text for text in [*texts["accept"], shipped()[name].example] if not contains(text)] == []
    assert [text for text in texts["reject"] if contains(text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_accepted_by_lark(name: str) -> None:
    contains, grammar = accepts(name), gs.load(name)
    texts = [grammar.sample(seed=seed) for seed in range(20)]
    assert [text for text in texts if len(text) < 200 and not contains(text)] == []


# ---------------------------------------------------------------------- other readers of the formats
def compiles(text: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(text)


@pytest.mark.parametrize(
    ("name", "reader", "lenient"),
    [
        ("toml", tomllib.loads, []),
        ("python", ast.parse, ["x = 1"]),
        ("regex", compiles, [r"[Z-a]", r"(a)\1", "(a)(?(1)b|c)", "(?x)a", "{", r"[\b]", "[[]"]),
    ],
)
def test_by_the_standard_library(name: str, reader: Callable[[str], object], lenient: list[str]) -> None:
    """Args: lenient: texts that the reader takes and the grammar leaves out."""

    def reads(text: str) -> bool:
        try:
            reader(text)
        except (ValueError, SyntaxError, re.error):
            return False
        return True

    texts = cases(name)
    newer = re.compile(r"^type |def f\[|f\"\{d\['k'\]\}" if name == "python" else "$^", re.M)  # 3.12
    assert [text for text in texts["accept"] if not newer.search(text) and not reads(text)] == []
    assert [text for text in texts["reject"] if text not in lenient and reads(text)] == []


# ---------------------------------------------------------------------- loading by name
def test_a_name_and_a_file() -> None:
    grammar = gs.load("semver")
    assert repr(grammar) == "gs.load('semver')"
    assert eval(repr(grammar)) == grammar
    assert grammar.matches("1.2.3-rc.1")
    assert gs.load(Path("semver")) == grammar
    assert gs.load("semver", captures=["build"]).match("1.0.0+a.b").captures == {"build": ["a.b"]}
    assert gs.load("arithmetic", tree=True).parse("1 + x").children[0].data == "add"


def test_files_come_before_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "csv").mkdir()
    assert gs.load("csv").matches("a,b")
    (tmp_path / "semver").write_text('start: "mine"', encoding="utf-8")
    assert gs.load("semver").matches("mine")
    for path in ("json.lark", "./json", tmp_path / "json"):
        with pytest.raises(FileNotFoundError) as caught:
            gs.load(path)
        assert "shipped" not in str(caught.value)


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(FileNotFoundError, match=r"no shipped grammar of this name \(did you mean semver\?\)") as caught:
        gs.load("semvar")
    assert ", ".join(sorted(shipped())) in str(caught.value)
    with pytest.raises(FileNotFoundError, match="of this name; there are arithmetic, cron"):
        gs.load("zzzzzzzz")


def test_options_of_the_caller() -> None:
    with pytest.raises(gs.UnsupportedFeature, match="parser='cyk'"):
        gs.load("json", parser="cyk")
    with pytest.raises(gs.GrammarSyntaxError, match="no rule 'nowhere'"):
        gs.load("json", start="nowhere")
    assert gs.load("json", start="array").matches("[1]")
    with pytest.raises(gs.LimitExceeded):
        gs.load("json", limits=gs.Limits(max_steps=10))
    with pytest.raises(TypeError, match="has no options whitespace"):
        gs.load("json", whitespace="compact")


def test_the_command(tiny_model_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--lark", "phone", "--model", str(tiny_model_directory), "a prompt"]) in (0, 1)
    assert capsys.readouterr().out.startswith("+")
    assert main(["generate", "--lark", "phones", "--model", str(tiny_model_directory), "a prompt"]) == 2
    assert "phones: No such file, and no shipped grammar of this name (did you mean phone?)" in capsys.readouterr().err
