"""What ``--lookahead`` and ``--reward`` say: options of the command line come in, a lookahead and its reward go out."""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grammarspec.decoding import Sampling
    from grammarspec.decoding.lookahead import Lookahead, Reward

_GAMMA = 16  # what --gamma is if not given

__all__ = ["Judged", "add_lookahead_options", "read_lookahead"]


@dataclass(frozen=True, slots=True)
class Judged:
    """How lookaheads are made, and what judges them."""

    how: Lookahead
    reward: Reward


def add_lookahead_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, which :func:`read_lookahead` reads."""
    group = parser.add_argument_group(
        "lookaheads",
        "A reward judges what the output would become, and bends its distribution. The draft that looks ahead is that "
        "of --draft (layers:N, say). With a temperature, drafts are verified by speculative sampling.",
    )
    group.add_argument(
        "--reward",
        metavar="KIND:WORDS",
        action="append",
        help="covers:dog,run (the share of words that it mentions, in any form), covers-all:dog,run (all or nothing), "
        "has:a,b or lacks:a,b (strings), words:10-20 (their number), matches:PATTERN (somewhere), "
        "python:FILE:FUNCTION (of a text); of several, the mean",
    )
    group.add_argument("--lookahead", metavar="D", type=int, help="tokens of a lookahead (6)")
    group.add_argument(
        "--method", choices=("cdsl", "cdlh", "greedy"), help="cdlh: the model looks ahead itself, slowly (cdsl)"
    )
    group.add_argument("--candidates", metavar="K", type=int, help="next tokens that are compared (5)")
    group.add_argument("--weight", type=float, help="of the reward beside the log-probability of a candidate (10)")
    group.add_argument("--accept-from", metavar="SHARE", type=float, help="the threshold of the acceptance score (0.5)")
    group.add_argument("--reward-from", metavar="REWARD", type=float, help="the threshold of the reward (0.5)")


def read_lookahead(options: argparse.Namespace, sampling: Sampling) -> Judged | None:
    """What the options say; ``None`` if nothing is said of lookaheads.

    Args:
        options: the options of the command.
        sampling: its sampling options.

    Raises:
        ValueError: something is said of lookaheads without a reward, or of what has no place beside them; a reward is
            malformed; or a value does not fit the method or the sampling.
        TypeError: what a file of Python names is no function.
        OSError: such a file cannot be read.
    """
    given: dict[str, Any] = {
        "method": options.method,
        "d": options.lookahead,
        "k": options.candidates,
        "weight": options.weight,
        "acceptance": options.accept_from,
        "reward": options.reward_from,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if not given and options.reward is None:
        return None
    if options.reward is None:
        raise ValueError("lookaheads need a reward that judges them: give --reward")
    if options.law != "masked":
        raise ValueError("lookaheads choose texts for their reward, and --law conditional draws them: leave one out")
    if options.forced != "sample":
        raise ValueError("--forced feed appends text unasked, which lookaheads cannot judge")
    if options.gamma != _GAMMA:
        raise ValueError("--gamma is for drafts without a reward: the length of lookaheads is --lookahead")
    if options.method == "greedy" and options.draft is not None:
        raise ValueError("--method greedy has no use for --draft")
    from grammarspec.decoding.lookahead import Lookahead, Mean

    if sampling.temperature and options.method in (None, "cdsl"):
        given["verify"] = "sampling"
    if options.method == "cdlh" and options.draft is not None:
        given["rollouts"] = "draft"
    how = Lookahead(**given)
    how.check_sampling(sampling)
    rewards = [_reward(each) for each in options.reward]
    return Judged(how, rewards[0] if len(rewards) == 1 else Mean(rewards))


def _reward(text: str) -> Reward:
    """A reward by its name; errors are those of :func:`read_lookahead`."""
    from grammarspec.decoding.lookahead import Coverage, Keywords, Searched

    kind, found, rest = text.partition(":")
    kinds: dict[str, Callable[[str], Reward]] = {
        "covers": lambda words: Coverage(_listed(words)),
        "covers-all": lambda words: Coverage(_listed(words), hard=True),
        "has": lambda words: Keywords(_listed(words)),
        "lacks": lambda words: Keywords(absent=_listed(words)),
        "words": _length,
        "matches": Searched,
        "python": _function,
    }
    if not found or not rest or kind not in kinds:
        raise ValueError(f"--reward {text}: a reward is written KIND:WORDS, and there are {', '.join(kinds)}")
    return kinds[kind](rest)


def _listed(words: str) -> list[str]:
    return [word.strip() for word in words.split(",")]


def _length(bounds: str) -> Reward:
    from grammarspec.decoding.lookahead import Length

    least, dash, most = bounds.partition("-")
    parts = [least, most if dash else least]
    if not any(parts) or not all(not part or part.isdecimal() for part in parts):
        raise ValueError(f"--reward words:{bounds}: a range is written 10-20, 10- or -20")
    low, high = (int(part) if part else None for part in parts)
    return Length(low, high)


def _function(place: str) -> Reward:
    from grammarspec.decoding.lookahead import as_reward

    path, _, name = place.rpartition(":")
    if not path or not name:
        raise ValueError(f"--reward python:{place}: write FILE:FUNCTION, as in rhymes.py:rhyme")
    names = runpy.run_path(path)
    if name not in names:
        raise ValueError(f"--reward python:{place}: there is no {name} in the file")
    return as_reward(names[name])
