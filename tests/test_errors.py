"""The hierarchy of errors: each has a code of its own, and a section with an example in docs/errors.md."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import grammarspec as gs
from grammarspec import errors

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
NEVER_RAISED = {"error", "grammar"}
# which need another environment than the page is read in, or a defect
NOT_SHOWN = {"draft-mismatch", "missing-package", "internal"}


def classes() -> list[type[gs.GrammarspecError | gs.NotEnforced]]:
    """All classes of errors, those of every module of the package among them."""
    for module in pkgutil.walk_packages(gs.__path__, "grammarspec."):
        if module.name != "grammarspec.__main__":
            importlib.import_module(module.name)
    found: list[type[gs.GrammarspecError]] = [gs.GrammarspecError]
    for cls in found:
        found += [sub for sub in cls.__subclasses__() if sub not in found]
    return [*(cls for cls in found if cls.__module__.startswith("grammarspec.")), gs.NotEnforced]


def test_each_class_has_a_code_and_a_section() -> None:
    pytest.importorskip("transformers")
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE))
    named = [cls for cls in classes() if "code" in vars(cls)]
    assert sorted(sections) == sorted(cls.code for cls in named)
    for cls in named:
        section = sections[cls.code]
        assert re.search(rf"`(gs\.)?{cls.__name__}`", section), cls
        assert cls.code in NEVER_RAISED | NOT_SHOWN or f"# -> {cls.__name__}: " in section
    for cls in classes():  # those that have no code of their own are of a kind that is raised
        assert cls in named or cls.code not in NEVER_RAISED, cls


def test_what_they_were_before() -> None:
    assert issubclass(gs.GrammarError, gs.GrammarspecError)
    assert issubclass(gs.GrammarError, ValueError)
    for cls in (gs.Truncated, gs.Cancelled, gs.StateCollected):
        assert issubclass(cls, gs.GrammarspecError)
        assert issubclass(cls, RuntimeError)
    assert issubclass(errors.MissingPackage, ImportError)
    assert issubclass(errors.NoModel, LookupError)


@pytest.mark.parametrize("cls", [errors.PromptError, errors.NoModel, errors.MissingPackage, gs.LimitExceeded])
def test_errors_say_all_they_know(cls: type[gs.GrammarspecError]) -> None:
    error = cls("what", where="there", hint="do this")
    assert str(error) == "what\n  at there\n  hint: do this"
    assert str(cls("what")) == "what"
    assert error.docs == f"docs/errors.md#{cls.code}"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.where, again.hint) == (cls, str(error), "there", "do this")


def test_truncated_texts_are_kept() -> None:
    again = pickle.loads(pickle.dumps(gs.Truncated("abc")))
    assert (again.partial, again.code, str(again)) == ("abc", "truncated", str(gs.Truncated("abc")))


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lark.load_grammar", None)
    with pytest.raises(errors.MissingPackage, match=r"(?s)lark is missing.*hint: pip install 'grammarspec\[lark\]'"):
        gs.lark('start: "a"')


def test_drafts_of_other_tokens(smollm2_as_published: Path, tiny_model_directory: Path) -> None:
    from grammarspec.models.loading import load_draft

    vocabulary = gs.Vocabulary.from_pretrained(str(smollm2_as_published))
    with pytest.raises(errors.DraftMismatch, match=r"tiny.* cannot draft: its token 0 is"):
        load_draft(tiny_model_directory, vocabulary)
