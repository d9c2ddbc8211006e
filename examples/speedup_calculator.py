"""What speculative decoding gains: tokens per pass, speed-up and the best draft length; the tutorials' figures, too.

    python examples/speedup_calculator.py
    python examples/speedup_calculator.py --acceptance 0.75 --gamma 4 --cost 0.05

Three numbers are often taken for one another. The *acceptance* alpha is the probability that a draft token is
accepted, given that those before it were. tau = (1 - alpha^(gamma + 1)) / (1 - alpha) is the number of tokens per pass
of the target, the bonus token included. The speed-up is tau / (1 + c gamma + o), where a pass of the draft model costs
as much as c passes of the target, and all else in a round as much as o.

What the usual tutorials get wrong: they give tau as the speed-up, tau as the number of accepted tokens (that is
tau - 1), accepted / drafted as alpha (that is (tau - 1) / gamma), and 1 / c as c. Their figures stand in the table
beside the right ones.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass

from common import table

from grammarspec.decoding.analysis import (
    accepted_share,
    best_gamma,
    expected_accepted,
    expected_tokens,
    speedup,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A figure of the tutorials: what it is of, what they say, what is right, and why."""

    what: str
    said: str
    right: float
    why: str


def claims() -> list[Claim]:
    """The figures that one meets. The fifth and sixth are of a target of 10 ms, and 4 draft tokens in 1 ms together."""
    return [
        Claim("tokens per pass, alpha 0.8, gamma 5", "3.36", expected_tokens(0.8, 5), "3.36 is that of gamma 4"),
        Claim("speed-up of it, drafts at 1/10", "3.4", speedup(0.8, 5, 0.1), "tokens per pass are no speed-up"),
        Claim("tokens per pass, alpha 0.75, gamma 4", "exercise", expected_tokens(0.75, 4), ""),
        Claim("speed-up of it, drafts at 1/20", "exercise", speedup(0.75, 4, 0.05), ""),
        Claim("ms per token, 2.5 of 4 accepted", "4.3", (10 + 1) / (2.5 + 1), "one pass verifies and gives the bonus"),
        Claim("speed-up of it", "2.3", 10 * (2.5 + 1) / (10 + 1), "their sum is 12 ms, not 15; a pass takes 10"),
        Claim("speed-up, alpha 0.7, gamma 4, 1/10", "3", speedup(0.7, 4, 0.1), "no gamma reaches 2 here"),
        Claim("speed-up, alpha 0.7, gamma 4, free", "3", speedup(0.7, 4, 0.0), "not even drafts that cost nothing"),
        Claim("speed-up, alpha 1, gamma 4, 1/10", "4", speedup(1.0, 4, 0.1), "5 tokens per pass, and drafts cost"),
        Claim(
            "accepted per round, alpha 0.8, gamma 4", "3.36", expected_accepted(0.8, 4), "tau counts the bonus token"
        ),
        Claim(
            "accepted / drafted, alpha 0.8, gamma 4",
            "0.80",
            accepted_share(0.8, 4),
            "those behind one rejected are lost",
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of a system, by draft length, and those of the tutorials."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--acceptance", type=float, default=0.75, help="alpha, from 0 to 1 (%(default)s)")
    parser.add_argument("--gamma", type=int, default=4, help="draft tokens of a round (%(default)s)")
    parser.add_argument("--cost", type=float, default=0.05, help="of drafting a token, in passes (%(default)s)")
    parser.add_argument("--overhead", type=float, default=0.0, help="of a round, in passes (%(default)s)")
    parser.add_argument("--most", type=int, default=16, help="longest draft to consider (%(default)s)")
    options = parser.parse_args(arguments)
    alpha, cost, overhead = options.acceptance, options.cost, options.overhead
    best = best_gamma(alpha, cost, overhead, most=options.most)
    print(f"alpha {alpha}, a draft token costs {cost} passes of the target, a round {overhead} besides\n")
    lengths = sorted({*range(1, 9), options.gamma, best} - {0})
    print(
        table(
            ["gamma", "tokens per pass", "accepted", "accepted / drafted", "speed-up"],
            (
                [
                    gamma,
                    expected_tokens(alpha, gamma),
                    expected_accepted(alpha, gamma),
                    accepted_share(alpha, gamma),
                    speedup(alpha, gamma, cost, overhead),
                ]
                for gamma in lengths
            ),
        )
    )
    print(f"\ngamma {options.gamma}: {speedup(alpha, options.gamma, cost, overhead):.2f} times as fast")
    print(f"best gamma: {best}" + (" (no drafts)" if not best else ""), end="\n\n")
    print(table(["figure", "said", "right", "why"], ([one.what, one.said, one.right, one.why] for one in claims())))


if __name__ == "__main__":
    main()
