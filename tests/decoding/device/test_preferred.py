"""Tokens that were chosen in a state of a constraint are drafted there again, unless they change."""

from __future__ import annotations

from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Request, Sampling  # noqa: E402
from grammarspec.decoding.device.automaton import ArenaTensors  # noqa: E402
from grammarspec.decoding.device.drafters import PreferredDrafter, prefer  # noqa: E402
from grammarspec.decoding.device.state import Draft, Rows  # noqa: E402
from grammarspec.decoding.device.support import ends_of  # noqa: E402
from grammarspec.decoding.proposers import Forced  # noqa: E402
from tests.decoding.device.test_same_texts import VOCABULARY, WIDTH, facts, on_device, on_host  # noqa: E402
from tests.oracles.small_llama import small_llama  # noqa: E402

BYTES = gs.Vocabulary.bytes()
CPU = torch.device("cpu")


@pytest.fixture
def draft() -> Draft:
    """Of a row of a constraint that allows letters, and of one without a constraint."""
    arena = gs.FrozenArena(BYTES.size)
    start = arena.add(gs.compile(gs.regex("[a-d][a-z]*"), BYTES).freeze()).start
    rows = Rows.of([[7, 8], [7, 8]], [40, 40], [start, 0], 64, CPU)
    return Draft(rows, ArenaTensors.of(arena, CPU), ends_of(BYTES.eos_token_ids, BYTES.size, CPU))


def proposed(draft: Draft, *, anywhere: bool = False) -> list[int | None]:
    found = PreferredDrafter(anywhere=anywhere).propose(draft)
    return [token if there else None for token, there in zip(found.tokens.tolist(), found.found.tolist(), strict=True)]


def choose(draft: Draft, text: str, committed: bool = True) -> None:
    chosen = torch.tensor([[ord(text)], [ord(text)]])
    prefer(draft, chosen, torch.full_like(chosen, committed, dtype=torch.bool))


def test_what_is_chosen_twice_is_drafted(draft: Draft) -> None:
    assert proposed(draft) == [None, None]
    for text, expected in [("a", "a"), ("b", None), ("c", None), ("c", "c"), ("c", "c"), ("d", None), ("d", "d")]:
        choose(draft, text)
        assert proposed(draft) == [expected and ord(expected), None], "without a constraint there is no state"


def test_what_was_not_committed_is_not_learnt(draft: Draft) -> None:
    choose(draft, "a")
    choose(draft, "b", committed=False)
    assert proposed(draft) == [ord("a"), None]


def test_tokens_depend_on_the_token_before(draft: Draft) -> None:
    choose(draft, "a")
    draft.rows.tokens[0, 1] = 9
    assert proposed(draft) == [None, None]


def test_what_is_chosen_in_another_state_is_a_guess(draft: Draft) -> None:
    choose(draft, "a")
    [start, _] = draft.states[-1].tolist()
    behind = draft.behind(torch.tensor([ord("b"), 0]))
    assert int(behind[0]) != start
    draft.states.append(behind)
    assert proposed(draft) == [None, None]
    assert proposed(draft, anywhere=True) == [ord("a"), None]
    draft.states[:] = [behind]
    choose(draft, "d")
    assert proposed(draft, anywhere=True) == [ord("d"), None], "what is known of the state itself counts"


def test_what_the_constraint_forbids_is_not_drafted(draft: Draft) -> None:
    choose(draft, "A")  # by another state, which has the same entry
    assert proposed(draft) == [None, None]


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("freezes", [True, False])
def test_the_second_text_takes_fewer_rounds(inference: None, looks: bool, freezes: bool) -> None:
    values = {"type": "string", "maxLength": 6} if freezes else {"$ref": "#"}
    schema = {"type": "array", "items": {"anyOf": [values, {"type": "integer"}]}, "maxItems": 3}
    constraint = gs.compile(gs.json_schema(schema), VOCABULARY)
    model = small_llama(11, width=WIDTH)

    def requests() -> list[Request]:
        sampling = Sampling(max_tokens=30)
        return [Request(prompt=list(b"red"), matcher=constraint.matcher(), sampling=sampling)]

    def run(preferred: bool) -> Any:
        [text] = on_device(model, requests(), [Forced(preferred=preferred)], lag=0, looks=looks)
        return text

    [expected] = on_host(model, requests())
    first, *_, later = [run(True) for _ in range(3)]
    without = run(False)
    assert facts(first) == facts(later) == facts(without) == facts(expected)
    assert later.statistics.accepted["preferred"] > 0
    assert "preferred" not in without.statistics.proposed
    assert later.statistics.rounds.total() < min(without.statistics.rounds.total(), len(expected.tokens) - 3)
