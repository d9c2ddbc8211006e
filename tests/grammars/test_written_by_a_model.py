"""What SmolLM2 writes in the shipped grammars, greedily and sampled: other readers of the languages parse it."""

from __future__ import annotations

import ast
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import grammarspec as gs
from tests import tiers

pytest.importorskip("lark")
from tests.oracles.shipped import accepts

ROWS = 16
"""Texts that are sampled at once."""


def reads_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd escapes
        ast.parse(text)
    return True


def reads_sql(text: str) -> bool:
    """That there is no such table, or column, is found out behind the parser."""
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute(f"EXPLAIN {text}")
        except sqlite3.ProgrammingError as error:
            return "bindings" in str(error)
        except sqlite3.Error as error:
            return not any(words in str(error) for words in ("syntax error", "unrecognized token", "incomplete input"))
    return True


def reads_arithmetic(text: str) -> bool:
    return accepts("arithmetic")(text)


READERS: dict[str, Callable[[str], bool]] = {
    "python": reads_python,
    "sql": reads_sql,
    "arithmetic": reads_arithmetic,
}
PROMPTS = {
    "python": [
        "Write a Python function that adds two numbers.",
        "Write a Python function that says whether a number is prime.",
        "Write a Python class for a stack, with a docstring.",
        "Write a Python generator of the Fibonacci numbers, with comments.",
    ],
    "sql": [
        "Write an SQL query for the names of all customers from Rome.",
        "Write an SQL query that counts the orders of each customer in 2024.",
        "Write an SQL statement that creates a table of books.",
        "Write an SQL statement that inserts a user called O'Neill.",
    ],
    "arithmetic": [
        "Write down a sum of three numbers, nothing else.",
        "How do you compute the area of a circle with radius 3.5? Give the formula with numbers.",
        "Write 7 times the sum of 4 and 12, divided by 3.",
        "Write a long arithmetic expression with brackets.",
    ],
}


@pytest.fixture(scope="module")
def model(smollm2_directory: Path) -> gs.Model:
    return gs.Model.from_pretrained(smollm2_directory)


@pytest.mark.property
@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_other_readers_parse_them(name: str, model: gs.Model) -> None:
    grammar, prompts = gs.load(name), PROMPTS[name]
    answers = model.batch(prompts, grammar, sampling=gs.Sampling(temperature=0, max_tokens=60, on_limit="close"))
    for number in range(-(-tiers.draws(68 - len(prompts)) // ROWS)):
        sampling = gs.Sampling(temperature=1.0, seed=tiers.seed(number), max_tokens=60, on_limit="close")
        answers += model.samples(prompts[number % len(prompts)], grammar, ROWS, sampling=sampling)
    texts = [answer.text for answer in answers]
    assert len({*texts}) > len(texts) / 2
    assert [text for text in texts if not READERS[name](text)] == []
