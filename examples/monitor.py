"""Watching speculative decoding while texts are generated: acceptance, latency, tuning of gamma, and a fallback.

    python examples/monitor.py
    python examples/monitor.py --draft rounded:4

Texts come one after another: copies of a text, which prompt lookup drafts well, then stories, which it does not, then
copies again. Behind each text the monitor looks at the last ones. Below an acceptance of 0.6 it takes the draft length
that is best for it; below 0.5 it drafts no more; after some texts without drafts it tries again with short ones.

What the usual tutorials get wrong: they watch accepted / drafted with these thresholds. That falls with gamma although
the draft model is as good as before: at alpha 0.8 and gamma 4 it is 0.59, and a healthy system would be retuned. The
monitor watches alpha, accepted / tried. Nor is 0.5 where drafts stop to pay: they pay while alpha is above the cost of
a draft token, in passes of the target (Leviathan et al. 2023, Corollary 3.9). With `--by-cost` that is the rule. In any
case drafts are given up that are slower than no drafts were, as `rounded:4` is, whose passes cost as much as those of
the target.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from common import DRAFTS, command, load, proposers_named, table

from grammarspec.decoding import Sampling, Statistics, generate
from grammarspec.decoding.analysis import best_gamma
from grammarspec.models import encode_prompt

COPIES = [
    "Repeat this text: The boat left the harbour at seven. It carried four men, two dogs and a cat.",
    "Repeat this text: The house has three rooms, a kitchen and a garden with an old apple tree.",
    "Repeat this text: The train to Rome leaves at nine. It stops in Milan, Bologna and Florence.",
]
STORIES = [
    "Write a short story about a boat.",
    "What do cats dream of?",
    "Describe a strange planet.",
    "Invent a sport.",
]


@dataclass(slots=True)
class Monitor:
    """Chooses the draft length of the next text by what became of the drafts of the last ones.

    Attributes:
        gamma: draft tokens of a round at most; 0: no drafts.
        cost: of a draft token, in passes of the target.
        retune, fall_back: the acceptances below which gamma is chosen anew, and drafts are given up.
        by_cost: give drafts up where no gamma gains anything at this cost, whatever `fall_back` says.
        plain: seconds per token without drafts, as last measured; drafts that are slower are given up.
        most: the greatest gamma.
        pause: texts without drafts before the next try.
        least: tried tokens below which nothing is decided.
        recent: the statistics of the last texts since gamma was chosen.
    """

    gamma: int = 4
    cost: float = 0.1
    retune: float = 0.6
    fall_back: float = 0.5
    by_cost: bool = False
    plain: float | None = None
    most: int = 8
    pause: int = 2
    least: int = 8
    recent: deque[Statistics] = field(default_factory=lambda: deque(maxlen=3))
    _waited: int = 0

    def acceptance(self) -> float | None:
        """Accepted over tried draft tokens of the last texts; `None` while too few were tried."""
        accepted = rejected = 0
        for statistics in self.recent:
            for (drafted, taken), rounds in statistics.rounds.items():
                accepted += taken * rounds
                rejected += rounds * (taken < drafted)
        tried = accepted + rejected
        return accepted / tried if tried >= self.least else None

    def see(self, statistics: Statistics) -> str:
        """Take a text into account, and say what was decided for the next."""
        if not self.gamma:
            self.plain = seconds_per_token([statistics])
            self._waited += 1
            return self._choose(1, "try again") if self._waited >= self.pause else "wait"
        self.recent.append(statistics)
        alpha = self.acceptance()
        if alpha is None:
            return "too few drafts"
        if self.plain is not None and (seconds_per_token(self.recent) or 0.0) > self.plain:
            return self._choose(0, "fall back: slower")
        best = best_gamma(alpha, self.cost, most=self.most)
        if best == 0 or (alpha < self.fall_back and not self.by_cost):
            return self._choose(0, "fall back")
        if best > self.gamma or (alpha < self.retune and best < self.gamma):
            return self._choose(best, f"gamma {self.gamma} -> {best}")
        return "keep"

    def _choose(self, gamma: int, action: str) -> str:
        self.gamma, self._waited = gamma, 0
        self.recent.clear()
        return action


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate texts of changing kinds under the monitor, and print what it saw and did."""
    parser = command(__doc__)
    parser.add_argument("--draft", default="lookup", help=f"{DRAFTS} (%(default)s)")
    parser.add_argument("--gamma", type=int, default=4, help="of the first text (%(default)s)")
    parser.add_argument("--cost", type=float, default=0.1, help="of a draft token, in passes (%(default)s)")
    parser.add_argument("--by-cost", action="store_true", help="fall back where no gamma gains anything")
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--texts", type=int, default=3, help="of each kind in a row (%(default)s)")
    options = parser.parse_args(arguments)
    model = load(options)
    proposers = proposers_named(options.draft, model)
    monitor = Monitor(gamma=options.gamma, cost=options.cost, by_cost=options.by_cost)
    sampling = Sampling(max_tokens=options.max_tokens)

    def write(prompt: str, gamma: int) -> Statistics:
        encoded = encode_prompt(model.tokenizer, prompt)
        return generate(
            model.model,
            encoded,
            None,
            model.vocabulary,
            sampling=sampling,
            proposers=proposers,
            gamma=gamma,
            adaptive=False,
        ).statistics

    plain = write(STORIES[-1], 0)
    monitor.plain = seconds_per_token([plain])
    rows = [["story", 0, *seen(plain), "measured"]]
    for kind, prompts in (("copy", COPIES), ("story", STORIES), ("copy", COPIES)):
        for number in range(options.texts):
            gamma = monitor.gamma
            figures = write(prompts[number % len(prompts)], gamma)
            rows.append([kind, gamma, *seen(figures), monitor.see(figures)])
    head = [
        "text",
        "gamma",
        "tokens",
        "alpha",
        "accepted/drafted",
        "tau",
        "ITL p50 ms",
        "ITL p99 ms",
        "tokens/s",
        "then",
    ]
    print(table(head, rows))


def seconds_per_token(texts: Iterable[Statistics]) -> float | None:
    """The mean time between tokens behind the first round; `None` for texts of one round."""
    latencies = [one for statistics in texts for one in statistics.latencies]
    return sum(seconds for seconds, _ in latencies) / sum(tokens for _, tokens in latencies) if latencies else None


def seen(statistics: Statistics) -> list[object]:
    """The figures of one text."""
    alpha = Monitor(least=1, recent=deque([statistics])).acceptance()
    return [
        statistics.tokens,
        "-" if alpha is None else alpha,
        statistics.acceptance_rate if alpha is not None else "-",
        statistics.tokens_per_pass,
        statistics.inter_token_percentile(50) * 1e3,
        statistics.inter_token_percentile(99) * 1e3,
        statistics.tokens_per_second,
    ]


if __name__ == "__main__":
    main()
