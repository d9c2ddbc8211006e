"""Whether any texts, or infinitely many, match some patterns and none of others.

Patterns of ECMA-262 go in, and a proof is searched for in the automaton of their texts: all its states lead to a text,
so there are infinitely many texts if a state can be reached from itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final

from grammarspec._compiler import Constraint, Matcher
from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.lower import lower_search
from grammarspec.frontends.regex.matching import parsed
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits, byte_index, compile_ir

__all__ = ["infinitely_many", "some_text"]

_MAX_STATES = 300
_LIMITS: Final = Limits(max_steps=50_000)
_STEPS: Final = 5_000  # that an answer takes, but where it ends at the limits


def infinitely_many(wanted: Collection[str], refused: Collection[str], budget: Budget) -> bool:
    """Whether it is proved that infinitely many texts match all wanted patterns somewhere, and no refused one.

    Raises:
        LimitExceeded: the budget is used up.
    """
    return _within(budget, wanted, refused)[1]


def some_text(wanted: Collection[str], refused: Collection[str], budget: Budget) -> bool:
    """Whether a text may match all wanted patterns somewhere, and no refused one. A no is proved.

    Raises:
        LimitExceeded: the budget is used up.
    """
    return _within(budget, wanted, refused)[0]


def _within(budget: Budget, wanted: Collection[str], refused: Collection[str]) -> tuple[bool, bool]:
    *answers, steps = _found(tuple(sorted(set(wanted))), tuple(sorted(set(refused))))
    budget.spend(steps)
    some, infinite = answers
    return some, infinite


@lru_cache(maxsize=1024)
def _found(wanted: tuple[str, ...], refused: tuple[str, ...]) -> tuple[bool, bool, int]:
    """Whether there may be such texts, whether there are infinitely many, and how many steps that is worth."""
    builder = GrammarBuilder()
    alphabet = PlainText(builder)
    try:
        nodes = [lower_search(parsed(pattern), builder, alphabet) for pattern in wanted]
        nodes += [builder.complement(lower_search(parsed(pattern), builder, alphabet)) for pattern in refused]
        ir = builder.build(builder.terminal(builder.both(builder.any_text(), *nodes)))
        return True, _has_cycle(compile_ir(ir, byte_index(), _LIMITS)), _STEPS
    except Unsatisfiable:
        return False, False, _STEPS
    except (GrammarError, RecursionError):
        return True, False, _LIMITS.max_steps


def _has_cycle(constraint: Constraint) -> bool:
    """Whether a state can be reached from itself, among so many states that are looked at, depth first."""

    def following(matcher: Matcher) -> Iterator[Matcher]:
        for byte in matcher.next_bytes()[0]:
            longer = matcher.fork()
            longer.accept_token(byte)
            yield longer

    start = constraint.matcher()
    path, seen = {start.state: following(start)}, {start.state}
    while path and len(seen) < _MAX_STATES:
        state, ways = next(reversed(path.items()))
        longer = next(ways, None)
        if longer is None:
            del path[state]
        elif longer.state in path:
            return True
        elif longer.state not in seen:
            seen.add(longer.state)
            path[longer.state] = following(longer)
    return False
