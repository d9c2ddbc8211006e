"""Why a grammar in GBNF has no texts: the rule that cannot end, and where it is defined.

Only rules can be without texts, as each literal, class and token has some: a rule is if each of its alternatives needs
such a rule.
"""

from __future__ import annotations

from typing import Final

from grammarspec.errors import LimitExceeded, Unsatisfiable
from grammarspec.frontends.gbnf.text import MACROS, Source, Token
from grammarspec.grammars.budget import Budget

__all__ = ["contradiction"]

_STEPS: Final = 5
"""Steps for each token that is looked at."""


def contradiction(source: Source, root: str) -> Unsatisfiable:
    """The error for a grammar in which the rule ``root`` has no texts."""
    try:
        ending = _that_end(source, Budget())
    except LimitExceeded:  # which rules have texts is not known
        return Unsatisfiable("no text belongs to the grammar", f"the rule {root}")
    last, path = root, {root: 0}
    while (missed := _needed(source.rules[last].body, ending)) is not None and missed not in path:
        last, path[missed] = missed, len(path)
    place = source.at(source.rules[missed or last].place)
    if missed is None:
        return Unsatisfiable(f"no text belongs to the grammar: the rule {last} has none", place)
    return Unsatisfiable.of_cycle(list(path)[path[missed] :], place)


def _that_end(source: Source, budget: Budget) -> dict[str, bool]:
    """Of each rule whether it has texts: the least fixpoint.

    Raises:
        LimitExceeded: the budget is used up.
    """
    ending = dict.fromkeys(source.rules, False)
    order = list(source.rules.values())
    grows = True
    while grows:
        grows = False
        order.reverse()  # rules that stand before, or behind, those that they need
        for rule in order:
            if not ending[rule.name]:
                budget.spend(_STEPS * len(rule.body))
                ending[rule.name] = _needed(rule.body, ending) is None
                grows |= ending[rule.name]
    return ending


class _Group:
    """An open parenthesis, or a whole body: what it needs that has no texts, as far as it has been read.

    Attributes:
        is_free: it holds the arguments of a macro, which describes free text.
        branches: what each alternative that is finished needs.
        items: what each item of the alternative that is being read needs.
    """

    __slots__ = ("branches", "is_free", "items")

    def __init__(self, is_free: bool = False) -> None:
        self.is_free = is_free
        self.branches: list[str | None] = []
        self.items: list[str | None] = []

    def end_branch(self) -> None:
        self.branches.append(next(filter(None, self.items), None))
        self.items = []

    def missed(self) -> str | None:
        """Finish the group; what it needs."""
        self.end_branch()
        return None if self.is_free or None in self.branches else self.branches[0]


def _needed(body: list[Token], ending: dict[str, bool]) -> str | None:
    """The first rule without texts that a body needs; ``None`` if it has texts, as far as is known."""
    group, outer = _Group(), list[_Group]()
    before = ""
    for token in body:
        match token.kind:
            case "(":
                outer.append(group)
                group = _Group(is_free=before in MACROS and before not in ending)
            case ")":
                missed = group.missed()
                group = outer.pop()
                group.items.append(missed)
            case "|":
                group.end_branch()
            case "*" | "?":
                group.items[-1] = None
            case "count" if not token.counts[0]:
                group.items[-1] = None
            case "+" | "count":
                pass
            case _:
                group.items.append(None if ending.get(token.text, True) or token.kind != "name" else token.text)
        before = token.text
    return group.missed()
