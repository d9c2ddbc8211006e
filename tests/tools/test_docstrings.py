"""Docstrings in the usual styles say the same."""

from __future__ import annotations

import sys

import pytest

import grammarspec as gs
from grammarspec.tools.docstrings import parse

GOOGLE = """Find flights.

    Direct ones only.

    Args:
        start: Where from,
            as a code.
        seats (int, optional): How many.

    Returns:
        Their numbers.
    """
NUMPY = """Find flights.

    Direct ones only.

    Parameters
    ----------
    start : str
        Where from,
        as a code.
    seats : int, optional
        How many.

    Returns
    -------
    list
        Their numbers.
    """
SPHINX = """Find flights.

    Direct ones only.

    :param start: Where from,
        as a code.
    :param int seats: How many.
    :type start: str
    :returns: Their numbers.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_styles(docstring: str, caplog: pytest.LogCaptureFixture) -> None:
    assert parse(docstring) == (
        "Find flights.\n\nDirect ones only.",
        {"start": "Where from, as a code.", "seats": "How many."},
    )
    assert not caplog.records  # nobody misses types that stand in the signature


@pytest.mark.parametrize("docstring", ["", "Find flights.", "Find flights.\n\nNote that a: b.", "Args: none"])
def test_docstrings_without_sections(docstring: str) -> None:
    assert parse(docstring) == (docstring, {})


def test_other_sections() -> None:
    docstring = "A.\n\nKeyword Args:\n    b: Bee.\n\nRaises:\n    ValueError: never.\n\nAttributes:\n    c: Sea."
    assert parse(docstring) == ("A.", {"b": "Bee.", "c": "Sea."})


def test_without_griffe_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "griffe", None)

    @gs.tool
    def double(number: int) -> int:
        """Double.

        Args:
            number: Any.
        """
        return 2 * number

    assert double.description == "Double.\n\nArgs:\n    number: Any."
    assert double.parameters["properties"] == {"number": {"type": "integer"}}


def test_no_docstring() -> None:
    @gs.tool
    def double(number: int) -> int:
        return 2 * number

    assert double.description == ""
