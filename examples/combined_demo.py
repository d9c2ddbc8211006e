"""Speculation and a constraint together: draft and target in lockstep, and what each of the two brings.

    python examples/combined_demo.py
    python examples/combined_demo.py --draft forced,lookup

First comes one text, position by position: the state of the constraint where the draft token was chosen; the state that
a matcher of our own reaches, which reads the text from its beginning; the number of tokens allowed there, and whether
the mask that the target's logits got is that of our matcher. Then all four combinations on the same prompts, and last
the draft model with the masks and without.

What the usual tutorials leave open is how "the draft uses the same constraint state as the target". Two matchers, one
for each model, have to be set back in step after each rejected token. Here there is one for both: it moves with the
draft, the mask of each position is made once and read by both models, and a rejection takes tokens back.
Verified tokens are valid because the target's distribution is masked, whatever the draft does: a draft without masks
changes no text, but the tokens that the constraint refuses are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from common import DRAFTS, command, load, proposers_named, rounded, shown, table, text_of
from pydantic import BaseModel, Field, ValidationError

import grammarspec as gs
from grammarspec.decoding import Generation, Sampling, Statistics, generate
from grammarspec.decoding.proposers import BatchView, DraftModel, Proposer
from grammarspec.models import encode_prompt

if TYPE_CHECKING:
    from grammarspec.decoding.draft import Draft


class Order(BaseModel):
    """What the texts are to be."""

    dish: Literal["pizza", "pasta", "salad"]
    count: int = Field(ge=1, le=20)
    name: str = Field(max_length=20)
    delivered: bool


PROMPTS = ["Order three pizzas for Anna, who will fetch them.", "Two salads for Bob, please, to his home."]


@dataclass(frozen=True, slots=True)
class Place:
    """A draft token and its position: where draft and target stood when each of them chose its token there.

    Attributes:
        round, token, source: the number of the round, the draft token, the name of its proposer.
        drafting: the state in which it was chosen; ``None`` for tokens appended together with one before.
        reading: the state that a matcher of our own has there.
        allowed: how many tokens the target's mask allows there.
        same: whether that is our matcher's mask.
        accepted: whether the token was committed.
    """

    round: int
    token: int
    source: str
    drafting: int | None
    reading: int
    allowed: int
    same: bool
    accepted: bool

    @property
    def in_step(self) -> bool:
        """Whether draft and target stood in the same place."""
        return self.same and self.drafting in (None, self.reading)


class Lockstep:
    """A proposer that drafts nothing and compares; it is put before the others, so that it sees where they begin.

    Attributes:
        places: the draft tokens of all rounds.
    """

    name = "lockstep"
    runs_model = False
    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, constraint: gs.Constraint) -> None:
        self.places: list[Place] = []
        self._replay = constraint.matcher()
        self._states: dict[int, int] = {}
        self._rounds = 0
        self._read = 0

    def start(self, batch: BatchView) -> None:
        self._read = len(batch.sequences[0].tokens)

    def select(self, rows: Sequence[int]) -> None:
        """Nothing is kept by rows."""

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        matcher = draft.sequences[0].matcher
        assert matcher is not None
        self._states[len(draft.tokens[0])] = matcher.state

    def commit(self, draft: Draft, accepted: Sequence[int]) -> None:
        self._rounds += 1
        masks = draft.all_masks()[0].numpy()
        own = np.empty_like(masks[0])
        follower = self._replay.fork()
        for place, (token, source) in enumerate(zip(draft.tokens[0], draft.sources[0], strict=True)):
            follower.fill_bitmask(own)
            same = np.array_equal(own, masks[place])
            allowed = int(np.unpackbits(masks[place].view(np.uint8)).sum())
            drafting = self._states.get(place)
            taken = place < accepted[0]
            self.places.append(Place(self._rounds, token, source, drafting, follower.state, allowed, same, taken))
            follower.accept_token(token)
        self._states.clear()
        tokens = draft.sequences[0].tokens
        self._replay.accept_tokens(tokens[self._read :])
        self._read = len(tokens)


def main(arguments: Sequence[str] | None = None) -> None:
    """Show the lockstep, the four combinations, and drafts without masks."""
    parser = command(__doc__)
    parser.add_argument("--draft", default="forced,lookup,rounded:4", help=f"{DRAFTS} (%(default)s)")
    parser.add_argument("--bits", type=int, default=4, help="of the draft model without masks (%(default)s)")
    parser.add_argument("--gamma", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=8, help="how many to show (%(default)s)")
    parser.add_argument("--prompts", type=int, default=len(PROMPTS), help="how many (%(default)s)")
    options = parser.parse_args(arguments)
    model = load(options)
    constraint = gs.compile(gs.grammar(Order), model.vocabulary)
    proposers = proposers_named(options.draft, model)
    small = DraftModel(rounded(model.model, options.bits))
    unmasked = DraftModel(small.model, masked=False)

    def write(prompt: str, bound: bool, by: Sequence[Proposer]) -> Generation:
        sampling = Sampling(max_tokens=options.max_tokens, on_limit="close" if bound else "cut")
        matcher = constraint.matcher() if bound else None
        encoded = encode_prompt(model.tokenizer, prompt)
        return generate(
            model.model,
            encoded,
            matcher,
            model.vocabulary,
            sampling=sampling,
            proposers=by,
            gamma=options.gamma,
            adaptive=False,
        )

    lockstep = Lockstep(constraint)
    write(PROMPTS[0], True, [lockstep, *proposers])
    print(places_table([one for one in lockstep.places if one.round <= options.rounds], model.vocabulary))
    print(
        f"in step at {sum(one.in_step for one in lockstep.places)} of {len(lockstep.places)} positions of all rounds\n"
    )
    prompts = PROMPTS[: options.prompts]
    four: list[tuple[str, bool, Sequence[Proposer]]] = [
        ("neither", False, []),
        ("drafts", False, proposers),
        ("constraint", True, []),
        ("both", True, proposers),
    ]
    print(combinations_table(four, prompts, write), end="\n\n")
    two: list[tuple[str, bool, Sequence[Proposer]]] = [
        ("draft model with masks", True, [small]),
        ("draft model without", True, [unmasked]),
    ]
    print(combinations_table(two, prompts, write))


def places_table(places: Sequence[Place], vocabulary: gs.Vocabulary) -> str:
    """The lockstep, position by position."""
    head = ["round", "token", "by", "state of draft", "of target", "allowed", "same mask", "accepted"]
    return table(
        head,
        (
            [
                one.round,
                shown(text_of(vocabulary, [one.token]), 16),
                one.source,
                "" if one.drafting is None else f"#{one.drafting}",
                f"#{one.reading}",
                one.allowed,
                "yes" if one.same else "no",
                "yes" if one.accepted else "no",
            ]
            for one in places
        ),
    )


def combinations_table(
    combinations: Sequence[tuple[str, bool, Sequence[Proposer]]],
    prompts: Sequence[str],
    write: Callable[[str, bool, Sequence[Proposer]], Generation],
) -> str:
    """What each combination of constraint and drafts gives on all prompts."""
    rows: list[list[Any]] = []
    for name, bound, by in combinations:
        total, texts = Statistics(), []
        for prompt in prompts:
            generation = write(prompt, bound, by)
            total.add(generation.statistics)
            texts.append(generation.text)
        valid = f"{sum(map(is_order, texts))} of {len(texts)}"
        seconds = total.prefill_seconds + total.decode_seconds
        figures = [total.tokens, total.target_passes, total.tokens_per_pass, total.acceptance_rate, total.refused]
        rows.append([name, valid, *figures, seconds, shown(texts[0], 24)])
    head = ["with", "valid", "tokens", "passes", "tokens/pass", "accepted/drafted", "refused", "seconds", "first text"]
    return table(head, rows)


def is_order(text: str) -> bool:
    """Whether Pydantic reads an order in a text."""
    try:
        Order.model_validate_json(text, strict=True)
    except ValidationError:
        return False
    return True


if __name__ == "__main__":
    main()
