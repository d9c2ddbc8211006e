"""What lookaheads gain and cost: ``python -m benchmarks.lookahead thresholds|drafts|rejection|length|batch|tasks``.

SmolLM2-135M-Instruct writes sentences that mention three concepts, as in CommonGen: 300 sets made of a list of words,
of which the first 100 are for tuning and the other 200 are never tuned on. 24 tokens, 5 candidates, lookaheads of 6.
Beside CDSL stand greedy decoding and CDLH, with continuations by the target and by a draft. CDSL's draft is the
distilled head; with ``--layers``, so many of the target's first layers.

* ``thresholds``: pairs of thresholds on the tuning sets, one of ``--every`` so many; the best one against the others on
  the untouched sets.
* ``drafts``: the target's first layers, several depths; and a distilled head.
* ``rejection``: hard rejection against speculative sampling.
* ``length``: tokens of a lookahead.
* ``batch``: 1 and 8 texts side by side.
* ``tasks``: numbers with a given sum, words in alphabetical order.

Rewards and passes come from all sets, times from ``--timed`` sets one by one, the ways taking turns. Each part writes
a CSV with a line for each text, a table with 95 % intervals (paired bootstrap over the sets) and a plot.

A text of CDLH takes a core three seconds in a batch and seven alone, so that all sets take hours (``--sets 200 --tuning
100 --every 1 --timed 30``). What is run if nothing is said is meant for a quarter of an hour on two cores. Where other
programs use the cores, ``--threads 1`` is several times as fast as two threads that wait for each other.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

import grammarspec as gs
from benchmarks.report import OUTSIDE, plain_log_axis, save, table
from grammarspec.decoding import Generation, Request, Sampling
from grammarspec.decoding.lookahead import Coverage, Lookahead, Reward, as_reward, generate_with_lookahead
from grammarspec.decoding.proposers import Eagle
from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of

TUNING, UNTOUCHED = 100, 200
TOKENS, D, K = 24, 6, 5
RESAMPLES = 1000
LAYERS = 24  # of the draft that continues candidates, where the one that drafts is a head
SHARES = (0.0, 1 / 6, 1 / 3, 1 / 2, 3 / 4)
"""Thresholds of the acceptance score that are tried."""
REWARDS = (0.0, 1 / 3, 2 / 3, 1.0)
"""Thresholds of the reward that are tried."""

WHO = """
artist baby baker bird boy cat chef child clown cowboy dancer doctor dog driver farmer fisherman girl guitarist horse
king man nurse painter player pilot queen sailor singer soldier student teacher tourist waiter woman worker
""".split()
DOES = """
build carry catch chase clean climb cook cut dance draw drink drive eat feed fly hold jump kick look open paint play
pull push read ride run sing sit sleep stand swim talk throw wait walk wash watch wear write
""".split()
WHAT = """
apple ball beach bed bench bike boat book bridge car chair cup door field fire flag flower garden grass guitar hat hill
house kitchen ladder lake letter mountain park picture pool river road rock rope shirt snow stage street table train
tree wall water window
""".split()


MARKERS = "osD^"
"""Of the points in plots, ten ways each."""


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt with what its text is judged by.

    Attributes:
        name: what the CSV calls it.
        prompt: the tokens of the prompt.
        constraint: of the text.
        soft: the reward that the methods see.
        hard: whether the wish is fulfilled as a whole, 0 or 1.
    """

    name: str
    prompt: list[int]
    constraint: gs.Constraint
    soft: Reward
    hard: Reward


@dataclass(frozen=True, slots=True)
class Way:
    """A way to generate.

    Attributes:
        name: what tables call it.
        how: the lookahead.
        temperature: of the sampling.
    """

    name: str
    how: Lookahead
    temperature: float = 0.0


@dataclass(slots=True)
class Outcome:
    """The texts of a way: one for each case, and the seconds of those that were timed."""

    way: Way
    texts: list[Generation] = field(default_factory=list)
    soft: list[float] = field(default_factory=list)
    hard: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def passes(self) -> list[float]:
        """Passes of the target for each text, in batches those of its batch."""
        return [float(text.statistics.target_passes) for text in self.texts]

    @property
    def states(self) -> Counter[str]:
        """Rounds by state."""
        return sum((text.statistics.states for text in self.texts), Counter())


class Bench:
    """The model, and how texts of it are made.

    Args:
        options: those of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        if options.threads:
            torch.set_num_threads(options.threads)
        self.network, self.tokenizer = load_model(options.model)
        self.vocabulary = vocabulary_of(self.network, self.tokenizer)
        self.draft = options.layers or Eagle.from_file(options.eagle, self.network)

    def case(self, name: str, prompt: str, grammar: gs.Grammar[Any], soft: Reward, hard: Reward) -> Case:
        """A case of a prompt of the user."""
        return Case(name, encode_prompt(self.tokenizer, prompt), gs.compile(grammar, self.vocabulary), soft, hard)

    def concepts(self, begin: int, count: int) -> list[Case]:
        """Sets of three concepts, the ones from ``begin`` on."""
        grammar = gs.regex(r"[A-Z][A-Za-z ,']{8,160}\.")
        cases = []
        for words in list(sets())[begin : begin + count]:
            prompt = f"Write one short sentence about an everyday scene with these words: {', '.join(words)}."
            cases.append(self.case(" ".join(words), prompt, grammar, Coverage(words), Coverage(words, hard=True)))
        return cases

    def generate(self, way: Way, cases: Sequence[Case], batch: int) -> list[Generation]:
        """The texts of a way."""
        sampling = Sampling(max_tokens=TOKENS, on_limit="close", temperature=way.temperature)
        torch.manual_seed(1)
        found: list[Generation] = []
        for begin in range(0, len(cases), batch):
            part = cases[begin : begin + batch]
            requests = [
                Request(prompt=case.prompt, matcher=case.constraint.matcher(), sampling=sampling) for case in part
            ]
            rewards = [case.soft for case in part]
            texts = generate_with_lookahead(self.network, requests, self.vocabulary, reward=rewards, lookahead=way.how)
            found += [text for [text] in texts]
        return found

    def compare(self, ways: Sequence[Way], cases: Sequence[Case], *, batch: int = 8, timed: int = 0) -> list[Outcome]:
        """Generate all texts of all ways, and some of them again one by one, in turns, for their times."""
        outcomes = [Outcome(way) for way in ways]
        for one in outcomes:
            one.texts = self.generate(one.way, cases, batch)
            one.soft = [case.soft.score([text.text])[0] for case, text in zip(cases, one.texts, strict=True)]
            one.hard = [case.hard.score([text.text])[0] for case, text in zip(cases, one.texts, strict=True)]
            whole = sum(text.whole for text in one.texts)
            print(f"{one.way.name}: {len(cases)} texts, {whole} whole, reward {mean(one.soft):.3f}", flush=True)
        for number, case in enumerate(cases[:timed]):
            for one in (*outcomes[number % len(ways) :], *outcomes[: number % len(ways)]):
                start = perf_counter()
                self.generate(one.way, [case], 1)
                one.seconds.append(perf_counter() - start)
        return outcomes

    def cdsl(self, name: str, **changes: Any) -> Way:
        """CDSL with all that the command line says, and some changes."""
        given = {
            "d": D,
            "k": K,
            "draft": self.draft,
            "acceptance": self.options.acceptance,
            "reward": self.options.reward,
            **changes,
        }
        return Way(name, Lookahead(**given))

    def baselines(self) -> list[Way]:
        """What CDSL is compared with; the first is the reference of the intervals."""
        layers = self.options.layers or LAYERS
        return [
            Way("CDLH", Lookahead(method="cdlh", d=D, k=K)),
            Way("CDLH by the draft", Lookahead(method="cdlh", d=D, k=K, rollouts="draft", draft=layers)),
            Way("greedy", Lookahead(method="greedy")),
        ]


def sets() -> Iterator[tuple[str, str, str]]:
    """The sets of concepts, all different: always the same ones."""
    choose = random.Random(2412)
    seen: set[tuple[str, str, str]] = set()
    while len(seen) < TUNING + UNTOUCHED:
        words = choose.choice(WHO), choose.choice(DOES), choose.choice(WHAT)
        if words not in seen:
            seen.add(words)
            yield words


def mean(values: Sequence[float]) -> float:
    """The mean; NaN of no values."""
    return sum(values) / len(values) if values else float("nan")


def interval(figure: Callable[[Sequence[int]], float], count: int) -> tuple[float, float]:
    """A 95 % interval of a figure by bootstrap: it is computed of indices of cases, drawn with replacement."""
    choose = random.Random(0)
    found = sorted(figure([choose.randrange(count) for _ in range(count)]) for _ in range(RESAMPLES))
    return found[int(RESAMPLES * 0.025)], found[int(RESAMPLES * 0.975)]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of the mean of some values."""
    return interval(lambda indices: mean([values[i] for i in indices]), len(values))


def less(mine: Sequence[float], its: Sequence[float], form: str = "{:+.3f}") -> str:
    """The 95 % interval of the difference of two means, of paired values."""
    low, high = spread([a - b for a, b in zip(mine, its, strict=True)])
    return f"[{form.format(low)}, {form.format(high)}]"


def compared(outcomes: Sequence[Outcome]) -> str:
    """The table: figures of each way, with intervals of what is paired with the first one."""
    base = outcomes[0]
    rows = []
    for one in outcomes:
        row = [one.way.name, f"{mean(one.soft):.3f}", less(one.soft, base.soft)]
        row += [f"{mean(one.hard):.3f}", less(one.hard, base.hard)]
        row += [f"{mean(one.passes):.1f}", f"{sum(text.whole for text in one.texts)}/{len(one.texts)}"]
        if one.seconds:

            def speedup(indices: Sequence[int], mine: list[float] = one.seconds) -> float:
                return sum(base.seconds[i] for i in indices) / sum(mine[i] for i in indices)

            every = range(len(one.seconds))
            low, high = interval(speedup, len(every))
            row += [f"{mean(one.seconds):.2f}", f"{speedup(every):.2f} [{low:.2f}, {high:.2f}]"]
        total = max(one.states.total(), 1)
        row.append(", ".join(f"{state} {count / total:.0%}" for state, count in one.states.most_common()))
        rows.append(row)
    head = ["way", "reward", f"less that of {base.way.name}", "fulfilled", f"less that of {base.way.name}"]
    head += ["target passes", "whole"]
    timed = ["seconds", f"times as fast as {base.way.name}"] if base.seconds else []
    return table([*head, *timed, "rounds by state"], rows)


def write(name: str, outcomes: Sequence[Outcome], cases: Sequence[Case], folder: Path) -> str:
    """Write the CSV, the table and the plot of a comparison; returns the table."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(
            ["way", "case", "text", "reward", "fulfilled", "tokens", "target_passes", "draft_passes", "seconds"]
        )
        for one in outcomes:
            for number, (case, text) in enumerate(zip(cases, one.texts, strict=True)):
                cost = text.statistics
                seconds = one.seconds[number] if number < len(one.seconds) else ""
                figures = [one.soft[number], one.hard[number], cost.tokens, cost.target_passes, cost.draft_passes]
                lines.writerow([one.way.name, case.name, text.text, *figures, seconds])
    found = compared(outcomes)
    (folder / f"{name}.md").write_text(found + "\n", encoding="utf-8")
    plot(outcomes, folder / f"{name}.png")
    print(f"\n## {name}, {len(cases)} cases\n\n{found}\n", flush=True)
    return found


def plot(outcomes: Sequence[Outcome], path: Path) -> None:
    """The reward of each way over what it costs: seconds, or passes of the target where nothing was timed."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5))
    timed = all(one.seconds for one in outcomes)
    for number, one in enumerate(outcomes):
        costs = one.seconds if timed else one.passes
        (left, right), (low, high) = spread(costs), spread(one.soft)
        x, y = mean(costs), mean(one.soft)
        axes.errorbar(
            x, y, xerr=[[max(x - left, 0)], [max(right - x, 0)]], yerr=[[max(y - low, 0)], [max(high - y, 0)]],
            marker=MARKERS[number // 10 % len(MARKERS)], color=f"C{number % 10}", capsize=2, linewidth=1, linestyle="",
            label=one.way.name,
        )  # fmt: skip
    label = "seconds of a text, alone" if timed else "passes of the target (of its batch) for a text"
    axes.set(xlabel=label, ylabel="reward, from 0 to 1")
    axes.set_title(f"{path.stem}: means of {len(outcomes[0].soft)} texts with 95 % intervals", fontsize=10)
    plain_log_axis(axes)
    save(figure, axes, path, **OUTSIDE)


# ---------------------------------------------------------------------- the experiments
def thresholds(bench: Bench) -> None:
    """Pairs of thresholds on the tuning sets, and the best pair on the untouched ones."""
    options = bench.options
    chosen = tuned(bench) if options.tuning else bench.cdsl("", acceptance=options.acceptance, reward=options.reward)
    cases = bench.concepts(TUNING, min(options.sets, UNTOUCHED))
    ways = [*bench.baselines(), Way("CDSL", chosen.how)]
    write("thresholds", bench.compare(ways, cases, timed=options.timed), cases, options.out)


def tuned(bench: Bench) -> Way:
    """The best pair of thresholds on the tuning sets."""
    options = bench.options
    cases = bench.concepts(0, min(options.tuning, TUNING))
    grid = [(a, r) for a in SHARES for r in REWARDS]
    ways = [bench.cdsl(f"a_t {a:.2f}, r_t {r:.2f}", acceptance=a, reward=r) for a, r in grid[:: options.every]]
    outcomes = bench.compare([Way("greedy", Lookahead(method="greedy")), *ways], cases)
    write("thresholds-tuning", outcomes, cases, options.out)
    # Of those whose reward is near the best, the one of the fewest passes.
    best = max(mean(one.soft) for one in outcomes[1:])
    near = [one for one in outcomes[1:] if mean(one.soft) >= best - options.margin]
    chosen = min(near, key=lambda one: mean(one.passes)).way
    print(f"chosen: {chosen.name}")
    return chosen


def drafts(bench: Bench) -> None:
    """Drafts of several sizes."""
    options = bench.options
    layers = bench.network.config.num_hidden_layers
    depths = sorted({max(1, round(layers * share)) for share in (0.2, 0.4, 0.6, 0.8, 0.95)} - {layers})
    ways = [*bench.baselines()[:1], *(bench.cdsl(f"{depth} layers", draft=depth) for depth in depths)]
    if options.eagle.name:
        # It is the last one, as it continues no candidates: the target does.
        ways.append(bench.cdsl("head", draft=Eagle.from_file(options.eagle, bench.network)))
    test(bench, "drafts", ways)


def rejection(bench: Bench) -> None:
    """Hard rejection, and speculative sampling at several temperatures, beside CDLH and greedy decoding."""
    ways = [bench.baselines()[0], bench.baselines()[2], bench.cdsl("hard"), *(warm(bench, t) for t in (0.3, 0.7, 1.0))]
    test(bench, "rejection", ways)


def warm(bench: Bench, temperature: float) -> Way:
    """CDSL with speculative sampling."""
    return Way(f"sampling {temperature}", bench.cdsl("", verify="sampling").how, temperature)


def length(bench: Bench) -> None:
    """Tokens of a lookahead."""
    test(bench, "length", [bench.cdsl(f"d {d}", d=d) for d in (1, 2, 4, 6, 8, 12)])


def batch(bench: Bench) -> None:
    """1 and 8 texts side by side: seconds of all texts by size of the batch."""
    options = bench.options
    cases = bench.concepts(TUNING, min(options.sets, UNTOUCHED))
    ways = [*bench.baselines(), bench.cdsl("CDSL")]
    spent: dict[tuple[str, int], float] = {}
    differing: Counter[str] = Counter()
    texts: dict[str, list[list[int]]] = {}
    for number, way in enumerate(ways):
        for size in (1, 8) if number % 2 else (8, 1):
            start = perf_counter()
            found = [text.tokens for text in bench.generate(way, cases, size)]
            spent[way.name, size] = perf_counter() - start
            differing[way.name] += sum(a != b for a, b in zip(found, texts.setdefault(way.name, found), strict=True))
    rows = [
        [way.name, *(f"{spent[way.name, size] / len(cases):.2f}" for size in (1, 8)),
         f"{spent[way.name, 1] / spent[way.name, 8]:.2f}", str(differing[way.name])]
        for way in ways
    ]  # fmt: skip
    head = ["way", "seconds of a text, batch 1", "batch 8", "times as fast", "texts that differ"]
    lines = table(head, rows)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "batch.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    (options.out / "batch.md").write_text(lines + "\n", encoding="utf-8")
    print(f"\n## batch, {len(cases)} cases\n\n{lines}")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for way in ways:
        axes.plot([1, 8], [spent[way.name, size] / len(cases) for size in (1, 8)], marker="o", label=way.name)
    axes.set(xlabel="texts side by side", ylabel="seconds of a text", ylim=(0, None), xticks=[1, 8])
    axes.set_title(f"batch: means of {len(cases)} texts", fontsize=10)
    save(figure, axes, options.out / "batch.png", fontsize=8)


def tasks(bench: Bench) -> None:
    """Two more tasks: numbers with a given sum, and words in alphabetical order."""
    options = bench.options
    count = min(options.sets, len(WHO) + len(WHAT))
    for name, cases in (("numbers", sums(bench, count)), ("order", orders(bench, count))):
        ways = [*bench.baselines(), bench.cdsl("CDSL", reward=0.9)]
        write(f"tasks-{name}", bench.compare(ways, cases, timed=options.timed), cases, options.out)


def sums(bench: Bench, count: int) -> list[Case]:
    """Four numbers that have a given sum."""
    grammar = gs.regex(r"[1-9][0-9]?( \+ [1-9][0-9]?){3}")
    choose = random.Random(1)

    def case(total: int) -> Case:
        def near(text: str) -> float:
            return max(0.0, 1 - abs(sum(map(int, re.findall(r"\d+", text))) - total) / total)

        prompt = f"Write {total} as a sum of four numbers, like 3 + 8 + 2 + 11."
        return bench.case(str(total), prompt, grammar, as_reward(near), as_reward(lambda text: float(near(text) == 1)))

    return [case(choose.randint(20, 200)) for _ in range(count)]


def orders(bench: Bench, count: int) -> list[Case]:
    """Words in alphabetical order, about a topic."""
    grammar = gs.regex(r"[a-z]{3,12}(, [a-z]{3,12}){4}")

    def ordered(text: str) -> float:
        words = re.findall(r"[a-z]+", text)
        pairs = list(pairwise(words))
        return sum(a < b for a, b in pairs) / len(pairs) if pairs else 1.0

    def fulfilled(text: str) -> float:
        return float(ordered(text) == 1)

    topics = [*WHO, *WHAT][: max(count, 1)]
    return [
        bench.case(
            topic,
            f"List five words about the word {topic}, in alphabetical order, with commas.",
            grammar,
            as_reward(ordered),
            as_reward(fulfilled),
        )
        for topic in topics
    ]


def test(bench: Bench, name: str, ways: Sequence[Way]) -> None:
    """Compare some ways on the untouched sets."""
    cases = bench.concepts(TUNING, min(bench.options.sets, UNTOUCHED))
    write(name, bench.compare(ways, cases, timed=bench.options.timed), cases, bench.options.out)


PARTS = {part.__name__: part for part in (thresholds, drafts, rejection, length, batch, tasks)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--sets", type=int, default=16, help="cases at most (%(default)s)")
    parser.add_argument("--tuning", type=int, default=16, help="sets to choose thresholds on, if any (%(default)s)")
    parser.add_argument("--timed", type=int, default=6, help="cases that are timed, one by one (%(default)s)")
    parser.add_argument("--layers", type=int, help="of the target, as the draft in place of the head")
    # What thresholds chooses on the tuning sets.
    parser.add_argument("--acceptance", type=float, default=0.0, help="its threshold (%(default)s)")
    parser.add_argument("--reward", type=float, default=1.0, help="its threshold (%(default)s)")
    parser.add_argument("--margin", type=float, default=0.01, help="reward given up for fewer passes (%(default)s)")
    parser.add_argument("--every", type=int, default=3, help="every so many pairs of thresholds only (%(default)s)")
    head = Path("examples/drafts/smollm2.safetensors")
    parser.add_argument("--eagle", type=Path, default=head, metavar="FILE", help="the head that drafts (%(default)s)")
    parser.add_argument("--threads", type=int, help="of torch (all cores)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/lookahead"), help="(%(default)s)")
    options = parser.parse_args(arguments)
    begin = perf_counter()
    PARTS[options.part](Bench(options))
    threads = torch.get_num_threads()
    print(f"{perf_counter() - begin:.0f} s; torch {torch.__version__}, {threads} threads; files in {options.out}/")


if __name__ == "__main__":
    main()
