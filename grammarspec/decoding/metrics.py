"""Counts and times of generation: what a text cost, and what speculation gained.

The loop fills in a :class:`Statistics` for each text; its properties are the rates that the literature reports.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

__all__ = ["Statistics", "percentile"]


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile of some values, by nearest rank.

    Args:
        values: in any order.
        percent: from 0 to 100.

    Returns:
        the least value that ``percent`` percent of the values do not exceed; 0 if there are no values.
    """
    ordered = sorted(values)
    return ordered[max(math.ceil(percent * len(ordered) / 100), 1) - 1] if ordered else 0.0


@dataclass(slots=True)
class Statistics:
    """Counts and times of one generated text, or of several together (:meth:`add`).

    In a round, one pass of the target model verifies a draft. Its accepted tokens are committed, and one token more,
    which the target chooses: the bonus token. Each generated token is an accepted, a bonus, a fed or a closing one.

    Attributes:
        prompt_tokens: tokens of the prompt.
        tokens: generated tokens, the end-of-text token included.
        bonus_tokens: those that the target chose behind the accepted tokens of a draft.
        fed_tokens: those appended without being scored, because the grammar forces their text (``forced="feed"``).
        closing_tokens: those of an ending that was appended because the budget ran out (``on_limit="close"``).
        rounds: the number of rounds by (draft tokens, accepted tokens).
        proposed: draft tokens, by the name of their proposer.
        accepted: the accepted ones of them.
        refused: draft tokens that the constraint does not allow. Only drafts without masks have any.
        target_passes: passes of the target model, that over the prompt included; each serves the whole batch.
        draft_passes: passes of draft models; each serves the whole batch.
        prefill_seconds: until the first tokens were committed.
        decode_seconds: from then on.
        phase_seconds: seconds of the batch by phase: ``draft``, ``mask``, ``target``, ``verify``, ``commit``.
        misses: rounds on the device after which the text had come to a state that the device did not have.
        waits: rounds on the device in which the text waited for such a state. They are not counted as ``rounds``.
        states: rounds of decoding with lookaheads, by state (:data:`grammarspec.decoding.lookahead.State`).
        latencies: (seconds since the round before, tokens committed) of each round but the first.
    """

    prompt_tokens: int = 0
    tokens: int = 0
    bonus_tokens: int = 0
    fed_tokens: int = 0
    closing_tokens: int = 0
    rounds: Counter[tuple[int, int]] = field(default_factory=Counter)
    proposed: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    misses: int = 0
    waits: int = 0
    target_passes: int = 0
    draft_passes: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    phase_seconds: dict[str, float] = field(default_factory=dict)
    states: Counter[str] = field(default_factory=Counter)
    latencies: list[tuple[float, int]] = field(default_factory=list)

    def add(self, other: Statistics) -> None:
        """Add the figures of another text. Passes and times add up only for texts of different batches."""
        for name in (entry.name for entry in fields(self)):
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                for key, value in theirs.items():
                    mine[key] = mine.get(key, 0) + value
            else:
                setattr(self, name, mine + theirs)

    @property
    def tokens_per_pass(self) -> float:
        """Tokens per round, the bonus token included: the acceptance length tau."""
        rounds = self.rounds.total()
        return self.tokens / rounds if rounds else 0.0

    @property
    def accepted_per_pass(self) -> float:
        """Accepted draft tokens per round: tau without the bonus token."""
        rounds = self.rounds.total()
        return sum(self.accepted.values()) / rounds if rounds else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Accepted over proposed draft tokens.

        It is below the probability that a tried token is accepted, as tokens behind a rejected one are never tried.
        """
        proposed = sum(self.proposed.values())
        return sum(self.accepted.values()) / proposed if proposed else 0.0

    @property
    def misses_per_thousand(self) -> float:
        """Misses per 1,000 rounds."""
        rounds = self.rounds.total()
        return 1000 * self.misses / rounds if rounds else 0.0

    @property
    def forced_share(self) -> float:
        """The share of the generated tokens that the grammar forces: accepted forced tokens and fed tokens."""
        return (self.accepted["forced"] + self.fed_tokens) / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens generated per second of the whole generation, prefill included."""
        seconds = self.prefill_seconds + self.decode_seconds
        return self.tokens / seconds if seconds else 0.0

    def accepted_lengths(self) -> list[int]:
        """A histogram: element ``i`` is the number of rounds with ``i`` accepted tokens."""
        lengths: Counter[int] = Counter()
        for (_, accepted), rounds in self.rounds.items():
            lengths[accepted] += rounds
        return [lengths[length] for length in range(max(lengths, default=-1) + 1)]

    def acceptance_by_position(self, *, conditional: bool = False) -> list[float]:
        """The acceptance rate at each position of a draft, among the drafts that have a token there.

        Args:
            conditional: count only the drafts whose tokens before the position were all accepted.

        Returns:
            one rate for each position, from 0 to 1.
        """
        longest = max((drafted for drafted, _ in self.rounds), default=0)
        rates = []
        for position in range(longest):
            tried = taken = 0
            for (drafted, accepted), rounds in self.rounds.items():
                if drafted > position and (accepted >= position or not conditional):
                    tried += rounds
                    taken += rounds * (accepted > position)
            rates.append(taken / tried if tried else 0.0)
        return rates

    def inter_token_percentile(self, percent: float) -> float:
        """A percentile of the seconds between tokens; the tokens of a round share its time equally.

        Args:
            percent: from 0 to 100.
        """
        return percentile([seconds / tokens for seconds, tokens in self.latencies for _ in range(tokens)], percent)

    def round_percentile(self, percent: float) -> float:
        """A percentile of the seconds between rounds.

        Args:
            percent: from 0 to 100.
        """
        return percentile([seconds for seconds, _ in self.latencies], percent)

    def summary(self) -> dict[str, object]:
        """All figures, rounded, by name; the names of times end in their units."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "fed_tokens": self.fed_tokens,
            "closing_tokens": self.closing_tokens,
            "target_passes": self.target_passes,
            "draft_passes": self.draft_passes,
            "tokens_per_pass": round(self.tokens_per_pass, 2),
            "accepted_per_pass": round(self.accepted_per_pass, 2),
            "acceptance_rate": round(self.acceptance_rate, 3),
            "acceptance_by_position": [round(rate, 3) for rate in self.acceptance_by_position()],
            "acceptance_given_before": [round(rate, 3) for rate in self.acceptance_by_position(conditional=True)],
            "accepted_lengths": self.accepted_lengths(),
            "proposed": dict(self.proposed),
            "accepted": dict(self.accepted),
            "refused_by_grammar": self.refused,
            "forced_share": round(self.forced_share, 3),
            "prefill_ms": round(self.prefill_seconds * 1e3, 1),
            "decode_ms": round(self.decode_seconds * 1e3, 1),
            "tokens_per_second": round(self.tokens_per_second, 1),
            "phase_ms": {name: round(seconds * 1e3, 1) for name, seconds in self.phase_seconds.items()},
            "itl_p50_ms": round(self.inter_token_percentile(50) * 1e3, 1),
            "itl_p99_ms": round(self.inter_token_percentile(99) * 1e3, 1),
            "round_p50_ms": round(self.round_percentile(50) * 1e3, 1),
            "round_p99_ms": round(self.round_percentile(99) * 1e3, 1),
            **({"misses_per_1000_rounds": round(self.misses_per_thousand, 1)} if self.misses else {}),
            **({"states": dict(self.states)} if self.states else {}),
        }
