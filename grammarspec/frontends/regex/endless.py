"""Whether any texts, so many, or infinitely many, match some patterns and none of others.

Patterns of ECMA-262 go in, and a proof is searched for in the automaton of their texts: all its states lead to a text,
so there are infinitely many texts if a state can be reached from itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Final, TypeVar

from grammarspec._compiler import Constraint, Matcher
from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.regex.alphabet import PlainText
from grammarspec.frontends.regex.lower import lower_search
from grammarspec.frontends.regex.matching import parsed
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits, byte_index, compile_ir

__all__ = ["infinitely_many", "never_both", "so_many", "some_text"]

_MAX_STATES = 300
_MAX_COUNTED = 64
_LIMITS: Final = Limits(max_steps=50_000)
_LIMITS_OF_PAIRS: Final = Limits(max_steps=10_000)  # of patterns, of which there may be hundreds
_STEPS: Final = 5_000  # that an answer takes, but where it ends at the limits

_Answer = TypeVar("_Answer")


def infinitely_many(wanted: Collection[str], refused: Collection[str], budget: Budget) -> bool:
    """Whether it is proved that infinitely many texts match all wanted patterns somewhere, and no refused one.

    Raises:
        LimitExceeded: the budget is used up.
    """
    return _within(budget, _found, wanted, refused)[1]


def so_many(wanted: Collection[str], refused: Collection[str], count: int, budget: Budget) -> bool:
    """Whether it is proved that at least so many texts match all wanted patterns somewhere, and no refused one.

    Raises:
        LimitExceeded: the budget is used up.
    """
    return count <= _MAX_COUNTED and _within(budget, _counted, wanted, refused) >= count


def some_text(wanted: Collection[str], refused: Collection[str], budget: Budget) -> bool:
    """Whether a text may match all wanted patterns somewhere, and no refused one. A no is proved.

    Raises:
        LimitExceeded: the budget is used up.
    """
    return _within(budget, _found, wanted, refused)[0]


def never_both(one: str, other: str, budget: Budget) -> bool:
    """Whether it is proved that no text matches both patterns.

    Raises:
        LimitExceeded: the budget is used up.
    """
    return _within(budget, _excluded, (one, other), ())


def _within(
    budget: Budget,
    answer: Callable[[tuple[str, ...], tuple[str, ...]], tuple[_Answer, int]],
    wanted: Collection[str],
    refused: Collection[str],
) -> _Answer:
    """An answer, paid for by the budget, whether or not it was known."""
    found, steps = answer(tuple(sorted(set(wanted))), tuple(sorted(set(refused))))
    budget.spend(steps)
    return found


# What follows answers with the number of steps that the answer is worth.
@lru_cache(maxsize=1024)
def _excluded(wanted: tuple[str, ...], refused: tuple[str, ...]) -> tuple[bool, int]:
    """Whether there are provably no such texts; it is soon given up."""
    try:
        _texts(wanted, refused, _LIMITS_OF_PAIRS)
    except Unsatisfiable:
        return True, _STEPS
    except (GrammarError, RecursionError):
        return False, _LIMITS_OF_PAIRS.max_steps
    return False, _STEPS


@lru_cache(maxsize=1024)
def _found(wanted: tuple[str, ...], refused: tuple[str, ...]) -> tuple[tuple[bool, bool], int]:
    """Whether there may be such texts, and whether there are provably infinitely many."""
    try:
        return (True, _has_cycle(_texts(wanted, refused))), _STEPS
    except Unsatisfiable:
        return (False, False), _STEPS
    except (GrammarError, RecursionError):
        return (True, False), _LIMITS.max_steps


@lru_cache(maxsize=1024)
def _counted(wanted: tuple[str, ...], refused: tuple[str, ...]) -> tuple[int, int]:
    """A number of such texts that there are at least, up to a bound."""
    texts = 0
    try:
        pending = [_texts(wanted, refused).matcher()]
        for _ in range(_MAX_STATES):
            if texts == _MAX_COUNTED or not pending:
                break
            matcher = pending.pop()
            texts += matcher.is_accepting
            pending += _following(matcher)
    except (GrammarError, RecursionError):
        return texts, _LIMITS.max_steps
    return texts, _STEPS


def _texts(wanted: tuple[str, ...], refused: tuple[str, ...], limits: Limits = _LIMITS) -> Constraint:
    """The automaton of such texts.

    Raises:
        Unsatisfiable: there are none.
        GrammarError: a pattern is malformed or not supported, or a limit is exceeded.
        RecursionError: a pattern is nested too deeply.
    """
    builder = GrammarBuilder()
    alphabet = PlainText(builder)
    nodes = [lower_search(parsed(pattern), builder, alphabet) for pattern in wanted]
    nodes += [builder.complement(lower_search(parsed(pattern), builder, alphabet)) for pattern in refused]
    return compile_ir(builder.build(builder.terminal(builder.both(builder.any_text(), *nodes))), byte_index(), limits)


def _has_cycle(constraint: Constraint) -> bool:
    """Whether a state can be reached from itself, among so many states that are looked at, depth first."""
    start = constraint.matcher()
    path, seen = {start.state: _following(start)}, {start.state}
    while path and len(seen) < _MAX_STATES:
        state, ways = next(reversed(path.items()))
        longer = next(ways, None)
        if longer is None:
            del path[state]
        elif longer.state in path:
            return True
        elif longer.state not in seen:
            seen.add(longer.state)
            path[longer.state] = _following(longer)
    return False


def _following(matcher: Matcher) -> Iterator[Matcher]:
    """The matchers one byte further."""
    for byte in matcher.next_bytes()[0]:
        longer = matcher.fork()
        longer.accept_token(byte)
        yield longer
