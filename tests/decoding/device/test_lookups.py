"""What the device looks up is the longest earlier occurrence, then the latest, whose next token is allowed."""

from __future__ import annotations

import random

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Sampling  # noqa: E402
from grammarspec.decoding.device.automaton import ArenaTensors  # noqa: E402
from grammarspec.decoding.device.drafters import LookupDrafter  # noqa: E402
from grammarspec.decoding.device.state import Draft, Rows  # noqa: E402
from grammarspec.decoding.device.support import ends_of  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from tests import tiers  # noqa: E402

VOCABULARY = gs.Vocabulary.bytes()
CPU = torch.device("cpu")
CASES = tiers.draws(200, least=30)
LETTERS = b"abc"
CONSTRAINT = gs.compile(gs.regex("(ab?c?|[bc])*"), VOCABULARY)


def expected(text: list[int], known: int, longest: int, shortest: int, allowed: set[int]) -> int | None:
    """By trying all places.

    Args:
        text: the text with its draft.
        known: how many of its tokens the text had when the draft began: matches of its end count up to ``longest``
            tokens, and those behind it are longer.
        longest, shortest: as for the drafter.
        allowed: the tokens that may follow.
    """
    best: tuple[int, int] | None = None
    for place in range(1, len(text)):
        matched = 0
        while matched < place and text[place - 1 - matched] == text[len(text) - 1 - matched]:
            matched += 1
        matched = min(matched, len(text) - known + longest)
        if matched >= shortest and text[place] in allowed:
            best = max(best or (0, 0), (matched, place))
    return None if best is None else text[best[1]]


@pytest.mark.property
def test_it_is_the_longest_and_then_the_latest() -> None:
    choose = random.Random(tiers.seed(12))
    arena = gs.FrozenArena(VOCABULARY.size)
    start = arena.add(CONSTRAINT.freeze()).start
    tensors, ends = ArenaTensors.of(arena, CPU), ends_of(VOCABULARY.eos_token_ids, VOCABULARY.size, CPU)
    found = 0
    for _ in range(CASES):
        texts = [choose.choices(LETTERS, k=choose.randint(1, 20)) for _ in range(3)]
        longest = choose.randint(1, 4)
        shortest = choose.randint(1, longest)
        rows = Rows.of(texts, [40] * 3, [start, start, 0], 41, CPU)
        rows.tokens[:, 20:] = ord("a")  # what earlier drafts have left
        for row, text in enumerate(texts):
            rows.tokens[row, : len(text)] = torch.tensor(text)
        processing = Processing([Sampling()] * 3, [0, 1, 2], texts, VOCABULARY.size, CPU)
        draft, drafter = Draft(rows, tensors, ends), LookupDrafter(longest, shortest)
        drafter.begin(draft, 30, processing)
        whole, matchers = [list(text) for text in texts], [CONSTRAINT.matcher() for _ in texts]
        for _ in range(choose.randint(1, 6)):
            proposed = drafter.propose(draft)
            for row, text in enumerate(whole):
                allowed = set(LETTERS) if row == 2 else {a for a in LETTERS if matchers[row].validate_tokens([a])}
                token = expected(text, len(texts[row]), longest, shortest, allowed)
                assert bool(proposed.found[row]) == (token is not None), (texts, whole, row)
                assert token is None or int(proposed.tokens[row]) == token, (texts, whole, row)
                found += token is not None
            # Tokens of any drafter are appended.
            tokens = [choose.choice([a for a in LETTERS if matcher.validate_tokens([a])]) for matcher in matchers]
            for token, matcher, text in zip(tokens, matchers, whole, strict=True):
                matcher.accept_token(token)
                text.append(token)
            yes, given = torch.ones(3, dtype=torch.bool), torch.tensor(tokens)
            draft.append(given, yes, given, ~yes, None, draft.behind(given), yes)
            drafter.appended(draft)
    assert found > CASES
