"""Speculative decoding, round by round: what was drafted, what was accepted, and the token that came with it.

    python examples/speculative_demo.py
    python examples/speculative_demo.py --draft lookup --prompt "Repeat this text: The boat left at seven."

The text is that of the target alone. Below the trace stands what rules of acceptance do to the distribution of one
token, computed exactly: only the first of them leaves it as it is.

What the usual tutorials get wrong:

* "Five draft tokens in one pass": a draft model runs once for each token that it drafts.
* "Three accepted tokens: three tokens in one pass": four. The pass that verifies a draft also gives the token behind
  the accepted ones, so no pass of its own is needed for it, and it comes behind a wholly accepted draft, too.
* "Accept the tokens that are the target's most probable ones" is right where the target decodes greedily. Where it
  samples, that is no rejection sampling: token x is accepted with the probability min(1, p(x) / q(x)).
* "Accept if p(x) is above a random number, else draw from p" ignores q and changes the distribution. So does drawing
  from p, and not from the residual max(p - q, 0), behind min(1, p(x) / q(x)).
* A draft is not k draws from one position: each token is drawn behind the one before.
* "The output is identical": greedily, or (here) with a seed. Else it is distributed identically; texts differ.
* An end of the text within a draft ends it. No token behind it is kept.
* "A similar architecture shares the cache": two models share no keys and values. The first layers of one model do
  (`--draft early-exit:20`).
"""

from __future__ import annotations

from collections.abc import Sequence

from common import DRAFTS, Round, Trace, command, load, proposers_named, shown, table, text_of

import grammarspec as gs
from grammarspec.decoding import Generation, Sampling, generate
from grammarspec.models import encode_prompt

PROMPT = "Write a short story about a boat."
P, Q = [0.5, 0.4, 0.1], [0.1, 0.8, 0.1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate a text with drafts and without, and show the rounds."""
    parser = command(__doc__)
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--draft", default="rounded:4", help=f"{DRAFTS} (%(default)s)")
    parser.add_argument("--gamma", type=int, default=5, help="draft tokens of a round at most (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of random numbers, above temperature 0 (%(default)s)")
    options = parser.parse_args(arguments)
    model = load(options)
    prompt = encode_prompt(model.tokenizer, options.prompt)
    sampling = Sampling(temperature=options.temperature, seed=options.seed, max_tokens=options.max_tokens)
    trace = Trace()
    proposers = [*proposers_named(options.draft, model), trace]
    alone = generate(model.model, prompt, None, model.vocabulary, sampling=sampling)
    drafted = generate(
        model.model,
        prompt,
        None,
        model.vocabulary,
        sampling=sampling,
        proposers=proposers,
        gamma=options.gamma,
        adaptive=False,
    )
    print(rounds_table(trace.rounds, model.vocabulary), end="\n\n")
    print(verdict(alone, drafted), end="\n\n")
    print(table(["rule of acceptance", "law of a token"], laws(P, Q).items()))


def rounds_table(rounds: Sequence[Round], vocabulary: gs.Vocabulary) -> str:
    """The acceptance trace: a row for each round."""
    rows = []
    for number, one in enumerate(rounds, 1):
        accepted, rejected = one.drafted[: one.accepted], one.drafted[one.accepted :]
        texts = [shown(text_of(vocabulary, tokens)) for tokens in (accepted, rejected, one.bonus)]
        rows.append([number, "+".join(dict.fromkeys(one.sources)) or "-", len(one.drafted), one.accepted, *texts])
    return table(["round", "by", "drafted", "accepted", "accepted text", "rejected text", "bonus"], rows)


def verdict(alone: Generation, drafted: Generation) -> str:
    """What drafts have saved, and whether the texts are the same."""
    lines = [
        f"{name}: {one.statistics.tokens} tokens in {one.statistics.target_passes} passes of the target"
        f" and {one.statistics.draft_passes} of a draft model"
        for name, one in (("target alone", alone), ("with drafts", drafted))
    ]
    figures = drafted.statistics
    lines.append(f"tokens per pass: {figures.tokens_per_pass:.2f}, accepted / drafted: {figures.acceptance_rate:.2f}")
    lines.append(f"the same tokens: {'yes' if alone.tokens == drafted.tokens else 'no'}")
    return "\n".join(lines)


def laws(p: Sequence[float], q: Sequence[float]) -> dict[str, list[float]]:
    """The law of one token by each rule, where the target's distribution is p, and a token is drafted from q."""
    ratio = [min(a, b) for a, b in zip(p, q, strict=True)]
    by_p = [a * b for a, b in zip(p, q, strict=True)]
    residual = [max(a - b, 0) for a, b in zip(p, q, strict=True)]
    best = p.index(max(p))
    return {
        "the target's own": [*p],
        "min(1, p/q), else the residual": _law(ratio, residual),
        "min(1, p/q), else drawn from p": _law(ratio, p),
        "p above a random number, else drawn from p": _law(by_p, p),
        "the target's most probable token": [float(token == best) for token in range(len(p))],
    }


def _law(accepted: Sequence[float], otherwise: Sequence[float]) -> list[float]:
    """The probability of each token: accepted, or drawn in proportion to other weights where none was accepted."""
    rejected, total = 1 - sum(accepted), sum(otherwise)
    return [round(one + rejected * other / total, 12) for one, other in zip(accepted, otherwise, strict=True)]


if __name__ == "__main__":
    main()
