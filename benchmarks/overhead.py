"""What constraints cost in a round of the speculative loop: ``python -m benchmarks.overhead``.

With a constraint other tokens are accepted than without, so that the two cannot be compared as they are. Here texts are
generated once under their constraints, and what was drafted and committed in each round is recorded. Then the same
rounds are replayed with and without the constraints, in turns: the same drafts, passes over the same tokens, the same
tokens committed. Reported are the share of a round that is spent inside the matcher (masks, steps, rollback, endings),
and the difference between the two.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import torch

import grammarspec as gs
from benchmarks.speculation import GAMMA, KINDS
from grammarspec.decoding import Request, Sampling
from grammarspec.decoding.alternation import Case, Interval
from grammarspec.decoding.batch import Batch
from grammarspec.decoding.choosers import Chooser, Proposal, Verdict
from grammarspec.decoding.draft import Draft
from grammarspec.decoding.proposers import Forced, Lookup
from grammarspec.decoding.proposers.protocol import BatchView
from grammarspec.models.loading import load_model


@dataclass(frozen=True, slots=True)
class Step:
    """What happened to a text in a round."""

    drafted: list[int]
    committed: list[int]


Trace = list[dict[int, Step]]
"""The rounds of a batch; in each, the steps of the texts that had not ended, by the number of their request."""


class Replay:
    """Drafts what was drafted when the trace was recorded."""

    name = "replay"
    runs_model = False
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._batch: BatchView

    def start(self, batch: BatchView) -> None:
        self._batch = batch

    def select(self, rows: Sequence[int]) -> None: ...

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        for row in rows:
            drafted = self._trace[self._batch.rounds][draft.sequences[row].request].drafted
            draft.extend(row, drafted[len(draft.tokens[row]) :], self.name)

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None: ...


class ReplayedChooser:
    """Chooses as ever, for the time that it takes, and then says what was chosen when the trace was recorded."""

    def __init__(self, chooser: Chooser, trace: Trace) -> None:
        self._chooser, self._trace = chooser, trace

    def verify(self, logits: torch.Tensor, draft: Draft, turn: int) -> list[Verdict]:
        self._chooser.verify(logits, draft, turn)
        steps = [self._trace[turn][sequence.request] for sequence in draft.sequences]
        return [verdict_of(step) for step in steps]

    def propose(
        self, logits: torch.Tensor, draft: Draft, rows: Sequence[int], turn: int, *, masked: bool, confidence: bool
    ) -> list[Proposal | None]:
        raise NotImplementedError("no model drafts here")


def verdict_of(step: Step) -> Verdict:
    """What verification said of the draft of a text."""
    same = [ours == theirs for ours, theirs in zip(step.drafted, step.committed, strict=False)]
    accepted = same.index(False) if False in same else len(same)
    following = step.committed[accepted] if accepted < len(step.committed) else 0
    return Verdict(accepted, following, [0.0] * (accepted + 1))


class TimedMatcher:
    """A matcher that counts the seconds spent inside it."""

    def __init__(self, matcher: gs.Matcher) -> None:
        self._matcher = matcher
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        begin = perf_counter()
        found = getattr(self._matcher, name)
        self.seconds += perf_counter() - begin
        return partial(self._timed, found) if callable(found) else found

    def _timed(self, method: Any, *arguments: Any) -> Any:
        begin = perf_counter()
        found = method(*arguments)
        self.seconds += perf_counter() - begin
        return found


def requests_of(cases: Sequence[Case], sampling: Sampling, constrained: bool) -> list[Request]:
    """Requests for the texts, with matchers that count time."""
    return [
        Request(
            prompt=case.prompt,
            matcher=TimedMatcher(case.constraint.matcher()) if constrained and case.constraint else None,  # type: ignore[arg-type]
            sampling=sampling,
        )
        for case in cases
    ]


def record(model: gs.Model, cases: Sequence[Case], sampling: Sampling, proposers: Sequence[Any]) -> Trace:
    """Generate the texts, and note what happens."""
    batch = Batch(
        model.model,
        requests_of(cases, sampling, True),
        model.vocabulary,
        proposers=proposers,
        gamma=GAMMA,
        adaptive=True,
    )
    trace: Trace = []
    while batch.sequences:
        before = {sequence.request: len(sequence.tokens) for sequence in batch.sequences}
        draft = batch.round()
        trace.append(
            {
                sequence.request: Step(list(tokens), sequence.tokens[before[sequence.request] :])
                for sequence, tokens in zip(draft.sequences, draft.tokens, strict=True)
            }
        )
    return trace


def replay(
    model: gs.Model, cases: Sequence[Case], trace: Trace, sampling: Sampling, constrained: bool
) -> tuple[float, float]:
    """Seconds of the rounds of a trace, and of these, those inside matchers."""
    requests = requests_of(cases, sampling, constrained)
    batch = Batch(model.model, requests, model.vocabulary, proposers=[Replay(trace)], gamma=GAMMA)
    batch.chooser = ReplayedChooser(batch.chooser, trace)
    batch.round()  # it reads the prompt
    matchers: list[Any] = [request.matcher for request in requests]
    timed = [matcher for matcher in matchers if isinstance(matcher, TimedMatcher)]
    for matcher in timed:
        matcher.seconds = 0.0
    begin = perf_counter()
    for turn in range(1, len(trace)):
        assert {sequence.request for sequence in batch.sequences} == set(trace[turn]), "other texts have ended"
        batch.round()
    return perf_counter() - begin, sum(matcher.seconds for matcher in timed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Record and replay the texts of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--kind", choices=[kind for kind in KINDS if kind != "free text"], action="append")
    parser.add_argument("--batch", type=int, default=1, help="prompts side by side (%(default)s)")
    parser.add_argument("--limit", type=int, help="prompts of each kind (all)")
    parser.add_argument("--max-tokens", type=int, default=64, help="of each text (%(default)s)")
    parser.add_argument("--turns", type=int, default=2, help="how often all of it is replayed (%(default)s)")
    options = parser.parse_args(arguments)
    model = gs.Model(*load_model(options.model))
    sampling = Sampling(max_tokens=options.max_tokens)
    for kind in options.kind or [kind for kind in KINDS if kind != "free text"]:
        cases = KINDS[kind](model)[: options.limit]
        batches = [cases[first : first + options.batch] for first in range(0, len(cases), options.batch)]
        proposers = [Forced(), Lookup()]
        with torch.inference_mode():
            traces = [record(model, batch, sampling, proposers) for batch in batches]
            seconds: dict[bool, list[float]] = {True: [], False: []}
            inside = []
            for turn in range(options.turns):
                for number, (batch, trace) in enumerate(zip(batches, traces, strict=True)):
                    for constrained in (True, False) if (turn + number) % 2 else (False, True):
                        whole, matchers = replay(model, batch, trace, sampling, constrained)
                        seconds[constrained].append(whole)
                        if constrained:
                            inside.append(matchers)
        share, ratio = Interval.of_ratio(inside, seconds[True]), Interval.of_ratio(seconds[True], seconds[False])
        rounds = sum(len(trace) - 1 for trace in traces)
        each = 1e3 * sum(seconds[True]) / rounds / options.turns
        print(
            f"{kind:13} batch {options.batch}  {rounds} rounds of {each:.1f} ms"
            f"  inside matchers {1e2 * share.value:.2f} [{1e2 * share.low:.2f}, {1e2 * share.high:.2f}] %"
            f"  with constraints over without {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
