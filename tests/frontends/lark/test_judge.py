"""The judge itself: it finds what differs, and makes it small; what has no verdict is counted apart."""

from __future__ import annotations

import time

import pytest

import grammarspec as gs

pytest.importorskip("lark")
judge = pytest.importorskip("tests.frontends.lark.judge")
real = pytest.importorskip("tests.frontends.lark.real")

WORDS = 'start: WORD+\nWORD: /[a-z]+/\n%ignore " "\n'


def test_verdicts_that_agree_are_counted_by_kind() -> None:
    theirs = judge.open_theirs(WORDS, {"parser": "lalr"})
    score = judge.judge(theirs, theirs, {"real": ["a b", "1", "a b"], "mutated": ["ab", ""]})
    assert score.agreed == {"real": 2, "mutated": 2}
    assert score.members == {"real": 1, "mutated": 1}
    assert score.smallest is None


def test_what_differs_is_made_small() -> None:
    theirs = judge.open_theirs(WORDS, {"parser": "lalr"})
    score = judge.judge(lambda text: "q" not in text and theirs(text), theirs, {"real": ["quite a lot", "some words"]})
    assert score.smallest == ("real", "q", True)
    assert score.agreed == {"real": 1}


def test_no_verdict_is_not_an_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "SECONDS", 0.05)
    theirs = judge.open_theirs("start: start start | A\nA: /(a|a)*b/", {})

    def ours(text: str) -> bool:
        raise gs.LimitExceeded("too large")

    score = judge.judge(ours, theirs, {"real": ["b", "a" * 40]})
    assert score.undecided == {"grammarspec: LimitExceeded": 1, "longer than 0.05 s": 1}
    assert not score.agreed


def test_what_takes_too_long_is_given_up() -> None:
    started = time.monotonic()
    with pytest.raises(judge.Undecided, match="longer than"), judge.within(0.05):
        time.sleep(30)
    assert time.monotonic() - started < 20


def test_mutations_are_the_same_for_the_same_seed() -> None:
    found = [*judge.mutations(["a = b c", "d"], 200, 1)]
    assert found == [*judge.mutations(["a = b c", "d"], 200, 1)]
    assert found != [*judge.mutations(["a = b c", "d"], 200, 2)]
    assert {"a = bc", " = b c", "a = c b", "a b c", ""} & {*found} >= {"a = bc", " = b c"}
    assert [*judge.mutations([], 200, 1)] == []


@pytest.mark.parametrize(
    ("options", "parser", "lexer"),
    [
        ({}, "earley", "dynamic"),
        ({"parser": "lalr"}, "lalr", "contextual"),
        ({"parser": "lalr", "lexer": "basic"}, "lalr", "basic"),
        ({"parser": "earley", "lexer": "auto", "ambiguity": "explicit", "keep_all_tokens": True}, "earley", "dynamic"),
        ({"parser": "cyk"}, "cyk", "basic"),
    ],
)  # fmt: skip
def test_lexers_are_those_that_lark_would_choose(options: dict[str, object], parser: str, lexer: str) -> None:
    assert judge.our_options(options) == {"parser": parser, "lexer": lexer}


def test_options_that_are_not_there_are_refused() -> None:
    with pytest.raises(gs.UnsupportedFeature, match="there is no option import_words"):
        judge.our_options({"import_words": print})


def test_what_is_refused_is_said(tmp_path: real.Path) -> None:
    (tmp_path / "a.lark").write_text("start: A\n%declare A", encoding="utf-8")
    (tmp_path / "b.lark").write_text("start: (", encoding="utf-8")
    results = [
        real.run(real.Real("p 1", tmp_path, {"name": name, "file": f"{name}.lark", "options": {}, "texts": ["a", ""]}))
        for name in "ab"
    ]
    assert results[0].refused.startswith("refused: UnsupportedFeature")
    assert results[1].refused.startswith("lark: GrammarError")


def test_inputs_come_from_files_literals_and_patterns(tmp_path: real.Path) -> None:
    (tmp_path / "a.txt").write_text("whole", encoding="utf-8")
    (tmp_path / "b.py").write_text('x = "literal"\n', encoding="utf-8")
    (tmp_path / "c.md").write_text("eval 'found' eval 'more'\n", encoding="utf-8")
    row = {
        "name": "n", "texts": ["own"], "files": ["*.txt"], "strings": ["*.py"], "append": "\n",
        "find": {"files": ["*.md"], "pattern": "eval '(.*?)'"},
    }  # fmt: skip
    inputs = real.Real("p 1", tmp_path, row).inputs
    assert inputs(9) == ["own\n", "whole\n", "literal\n", "found\n", "more\n"]
    assert inputs(2) == ["own\n", "whole\n"]
