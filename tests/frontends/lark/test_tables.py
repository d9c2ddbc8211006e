"""The LALR tables that are copied are those that lark makes."""

from __future__ import annotations

from typing import Any

import pytest
from lark import Lark
from lark.parsers.lalr_parser import LALR_Parser

import grammarspec as gs
from grammarspec.frontends.lark.tables import Tables
from grammarspec.grammars.budget import Budget
from tests.hostile.lark_files import LARK_FILES

GRAMMARS = [
    'start: start "+" t | t\nt: t "*" f | f\nf: "(" start ")" | "n"\n',
    'start: a "b" c? d\na: | "a" a\nc: "c" start "e" | "c"\nd: "d" d |\n',
    "start: "
    + " | ".join(f"r{i}" for i in range(40))
    + "\n"
    + "".join(f'r{i}: "k{i}" r{i * 7 % 40}?\n' for i in range(40)),
    'start: e\ne: e "+" e | e "+" "+" | "(" e ")" | N\nN: /[0-9]+/\n',
    'start: a | b\na.2: "x" c\nb: "x" d\nc: "y" "z"?\nd.3: "y" "z"?\n',
    LARK_FILES["a table of precedences"],
    LARK_FILES["lists right and left"],
    "start: (" + " | ".join(f"T{i}" for i in range(40)) + ")+\n" + "".join(f'T{i}: "t{i};"\n' for i in range(40)),
]
NAMES = [
    "expressions",
    "empty rules",
    "many rules",
    "shifts before reductions",
    "priorities",
    "a table of precedences",
    "lists right and left",
    "many terminals",
]


def canonical(table: Any) -> list[Any]:
    """The actions of each state, whose numbers lark draws anew each time, in the order in which they are reached."""
    order = list(table.start_states.values())
    rows = []
    for state in order:
        row = []
        for symbol, (action, argument) in sorted(table.states[state].items(), key=lambda entry: entry[0]):
            if str(action) == "Shift":
                if argument not in order:
                    order.append(argument)
                row.append((symbol, order.index(argument)))
            else:
                row.append((symbol, argument))
        rows.append(row)
    return rows


@pytest.mark.parametrize("text", GRAMMARS, ids=NAMES)
def test_tables_are_those_of_lark(text: str) -> None:
    configuration = Lark(text, parser="lalr").parser.parser_conf
    ours, theirs = Tables(configuration, Budget()), LALR_Parser(configuration)
    assert canonical(ours._parse_table) == canonical(theirs._parse_table)


def test_tables_are_paid_for_while_they_are_made() -> None:
    names = [f"T{i}" for i in range(300)]
    text = f"start: ({' | '.join(names)})+\n" + "".join(f'{name}: "{name};"\n' for name in names)
    with pytest.raises(gs.LimitExceeded, match="max_steps") as caught:
        gs.lark(text, parser="lalr", limits=gs.Limits(max_steps=800_000))
    assert caught.value.where == "the tables of the parser"
