"""The LALR tables are those that lark makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import GrammarError
from lark.parsers.lalr_analysis import LALR_Analyzer
from lark.parsers.lalr_parser import LALR_Parser

import grammarspec as gs
from grammarspec.frontends.lark.tables import Tables
from grammarspec.grammars.budget import Budget
from tests.counting import discard, examples
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


def refused(conf: Any) -> list[list[tuple[str, list[str]]]]:
    """By state, in the order of :func:`canonical`: each rule that is complete, and before what it is not reduced."""
    analysis: Any = LALR_Analyzer(conf)
    analysis.compute_lalr()
    order = list(analysis.lr0_start_states.values())
    found = []
    for state in order:
        own: dict[str, set[str]] = {}
        for terminal, rules in state.lookaheads.items():
            best = max(rules, key=lambda rule: rule.options.priority or 0)
            for rule in rules - {best} if terminal not in state.transitions else rules:
                own.setdefault(str(rule), set()).add(terminal.name)
        found.append(sorted((rule, sorted(names)) for rule, names in own.items()))
        following = sorted(state.transitions, key=lambda symbol: str(symbol.name))
        order += [one for one in map(state.transitions.get, following) if one not in order]
    return found


def refused_here(tables: Tables) -> list[list[tuple[str, list[str]]]]:
    """As :func:`refused`."""
    order = list(tables._parse_table.start_states.values())
    found = []
    for state in order:
        own = tables.set_aside.get(state, {})
        found.append(sorted((str(rule), sorted(names)) for rule, names in own.items()))
        for _, (action, argument) in sorted(tables._parse_table.states[state].items()):
            if str(action) == "Shift" and argument not in order:
                order.append(argument)
    return found


def configuration(text: str, starts: list[str]) -> Any:
    """What lark hands to its LALR parser."""
    found = []

    def keep(conf: Any, **_: object) -> None:
        found.append(conf)
        raise GrammarError("that is all")

    with pytest.raises(GrammarError, match="that is all"):
        Lark(text, parser="lalr", start=starts, _plugins={"LALR_Parser": keep})
    return found[0]


def depends_on_hashes(conf: Any) -> bool:
    """Whether transitions read each other: lark's lookaheads are then those of the order in which it meets them.

    Such grammars are LR(k) for no k (DeRemer and Pennello, 1982).
    """
    analysis: Any = LALR_Analyzer(conf)
    analysis.compute_lr0_states()
    analysis.compute_reads_relations()
    for transition, read in analysis.reads.items():
        seen, todo = set[Any](), [*read]
        while todo:
            one = todo.pop()
            if one == transition:
                return True
            if one not in seen:
                seen.add(one)
                todo += analysis.reads.get(one, ())
    return False


def compare(conf: Any) -> None:
    """Compare the tables, and what is refused in them, with lark's."""
    ours, theirs = Tables(conf, Budget()), LALR_Parser(conf)
    assert canonical(ours._parse_table) == canonical(theirs._parse_table)
    assert refused_here(ours) == refused(conf)


@pytest.mark.parametrize("text", GRAMMARS, ids=NAMES)
def test_tables_are_those_of_lark(text: str) -> None:
    compare(configuration(text, ["start"]))


_BODIES = st.lists(st.sampled_from(["start", "x", "y", "z", "A", "B", "C"]), max_size=4).map(" ".join)
_RULES = st.tuples(st.sampled_from(["", "", "", ".1", ".2"]), st.lists(_BODIES, min_size=1, max_size=3, unique=True))


@examples(1500, kept=0.2)
@given(st.lists(_RULES, min_size=4, max_size=4))
def test_tables_of_small_grammars(rules: list[tuple[str, list[str]]]) -> None:
    names = ["start", "x", "y", "z"]
    lines = [f"{name}{rank}: {' | '.join(bodies)}" for name, (rank, bodies) in zip(names, rules, strict=True)]
    conf = configuration("\n".join([*lines, 'A: "a"', 'B: "b"', 'C: "c"']), ["start", "x"])
    if depends_on_hashes(conf):  # conflicts, too
        discard("the tables depend on hashes")
    try:
        LALR_Parser(conf)
    except GrammarError as error:
        collisions = {line for line in str(error).splitlines() if line.startswith("Reduce/Reduce")}
        with pytest.raises(GrammarError) as caught:
            Tables(conf, Budget())
        assert {line for line in str(caught.value).splitlines() if line.startswith("Reduce/Reduce")} == collisions
        discard("conflicts")
    compare(conf)


def test_tables_are_paid_for_while_they_are_made() -> None:
    names = [f"T{i}" for i in range(300)]
    text = f"start: ({' | '.join(names)})+\n" + "".join(f'{name}: "{name};"\n' for name in names)
    with pytest.raises(gs.LimitExceeded, match="max_steps") as caught:
        gs.lark(text, parser="lalr", limits=gs.Limits(max_steps=800_000))
    assert caught.value.where == "the tables of the parser"
