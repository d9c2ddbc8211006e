"""The LALR tables that are copied are those that lark makes."""

from __future__ import annotations

from typing import Any

import pytest
from lark import Lark
from lark.parsers.lalr_parser import LALR_Parser

from grammarspec.frontends.lark.options import Tables

GRAMMARS = [
    'start: start "+" t | t\nt: t "*" f | f\nf: "(" start ")" | "n"\n',
    'start: a "b" c? d\na: | "a" a\nc: "c" start "e" | "c"\nd: "d" d |\n',
    "start: "
    + " | ".join(f"r{i}" for i in range(40))
    + "\n"
    + "".join(f'r{i}: "k{i}" r{i * 7 % 40}?\n' for i in range(40)),
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


@pytest.mark.parametrize("text", GRAMMARS, ids=["expressions", "empty rules", "many rules"])
def test_tables_are_those_of_lark(text: str) -> None:
    configuration = Lark(text, parser="lalr").parser.parser_conf
    ours, theirs = Tables(configuration), LALR_Parser(configuration)
    assert canonical(ours._parse_table) == canonical(theirs._parse_table)
