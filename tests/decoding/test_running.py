"""A running batch: requests join it between rounds, and their texts are those that they have alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.model_runner import ModelRunner  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from grammarspec.decoding.proposers import (  # noqa: E402
    DraftModel,
    Eagle,
    EarlyExit,
    Forced,
    HeadProposer,
    Lookup,
    Proposer,
)
from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead  # noqa: E402
from grammarspec.decoding.proposers.head import ResidualHead  # noqa: E402
from grammarspec.decoding.running import JoinError, RunningBatch  # noqa: E402

VOCABULARY = gs.Vocabulary.bytes()
CASES: list[tuple[bytes, str | None, dict[str, Any], int]] = [
    (b"a prompt", r"[a-z]{1,20}", {}, 1),
    (b"x", r"\d{4}-\d\d-\d\d", {"temperature": 1.0, "seed": 1}, 2),
    (b"y", r"(yes|no|maybe)( (yes|no|maybe)){0,3}", {"logit_bias": {ord("m"): 5.0}}, 1),
    (b"a much longer prompt than the others have, which is read before the row joins", r"(ab|cd){3,9}", {}, 1),
    (b"penalties", r"[ab]{8,20}", {"frequency_penalty": 1.5, "presence_penalty": 0.5, "repetition_penalty": 1.3}, 1),
    (b"nucleus", r".{10,20}", {"temperature": 2.0, "seed": 2, "top_p": 0.9, "min_p": 0.05, "top_k": 9}, 3),
    (b"free", None, {"max_tokens": 12}, 1),
    (b"closed", r"[a-z]{1,40}\.", {"max_tokens": 9, "on_limit": "close"}, 1),
]


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(tiny_model_directory, dtype=torch.float32)


def request(case: tuple[bytes, str | None, dict[str, Any], int]) -> Request:
    prompt, pattern, options, n = case
    matcher = None if pattern is None else gs.compile(gs.regex(pattern), VOCABULARY).matcher()
    return Request(prompt=list(prompt), matcher=matcher, sampling=Sampling(**options), n=n)


def texts_alone(model: Any) -> list[list[str]]:
    return [[one.text for one in generate_batch(model, [request(case)], VOCABULARY)[0]] for case in CASES]


PROPOSERS: dict[str, Callable[[Any], list[Proposer]]] = {
    "none": lambda model: [],
    "forced, lookup": lambda model: [Forced(), Lookup()],
    "model": lambda model: [Forced(), Lookup(), DraftModel(model)],
    "early exit": lambda model: [EarlyExit(model, 1)],
    "head": lambda model: [HeadProposer(ResidualHead(model, 16))],
    "eagle": lambda model: [Eagle(EagleHead(EagleConfig.like(model, 16)), model)],
}


@pytest.mark.combined
@pytest.mark.parametrize("every", [0, 2])
@pytest.mark.parametrize("name", PROPOSERS)
def test_texts_are_those_of_requests_alone(model: Any, name: str, every: int) -> None:
    """A request joins in every `every`-th round; with 0, all join before the first one."""
    batch = RunningBatch(model, VOCABULARY, proposers=PROPOSERS[name](model), adaptive=False, gamma=4)
    waiting, numbers, found = list(enumerate(CASES)), {}, {}
    streamed: dict[tuple[int, int], bytes] = {}
    rounds = 0
    while waiting or batch.sequences:
        while waiting and (not every or rounds % every == 0):
            number, case = waiting.pop(0)

            def hear(sample: int, data: bytes, number: int = number) -> None:
                streamed[number, sample] = streamed.get((number, sample), b"") + data

            for sample, sequence in enumerate(batch.add(request(case), hear)):
                numbers[id(sequence)] = number, sample, sequence
            if every:
                break
        for sequence in batch.round():
            number, sample, _ = numbers[id(sequence)]
            found[number, sample] = sequence.result()
        rounds += 1
    expected = {(n, s): text for n, texts in enumerate(texts_alone(model)) for s, text in enumerate(texts)}
    assert {key: one.text for key, one in found.items()} == expected
    assert {key: data.decode(errors="replace") for key, data in streamed.items()} == expected
    assert all(one.error is None for one in found.values())


def test_passes_are_counted_from_when_a_text_joins(model: Any) -> None:
    batch = RunningBatch(model, VOCABULARY)
    batch.add(request((b"a", "[a-z]{30}", {}, 1)))
    for _ in range(10):
        assert batch.round() == []
    batch.add(request((b"b", "[a-z]{5}", {}, 1)))
    ended = []
    while batch.sequences:
        ended += batch.round()
    # The text and its end; and for the second, no pass over a prompt of one token.
    assert [one.statistics.target_passes for one in ended] == [6, 31]
    assert all(0 < one.statistics.phase_seconds["target"] < 60 for one in ended)


def test_texts_that_are_ended_leave_the_others_alone(model: Any) -> None:
    batch = RunningBatch(model, VOCABULARY, proposers=[Forced(), Lookup()])
    [kept] = batch.add(request(CASES[3]))
    [gone] = batch.add(request(CASES[0]))
    batch.round()
    batch.end([gone], gs.Cancelled("nobody waits"))
    assert batch.sequences == [kept]
    batch.end([gone], gs.Cancelled("again"))
    while not batch.round():
        pass
    assert kept.result().text == texts_alone(model)[3][0]
    assert str(gone.result().error) == "nobody waits"
    assert batch.sequences == [] == batch.round()
    [gone] = batch.add(request(CASES[0]))
    batch.end([gone], gs.Cancelled("the only one"))
    assert batch.sequences == []


def test_what_is_refused_does_not_join(model: Any) -> None:
    batch = RunningBatch(model, VOCABULARY)
    [kept] = batch.add(request(CASES[0]))
    batch.round()
    for wrong, error in (
        (Request(prompt=list(b"x") * 300), gs.PromptError),
        (Request(prompt=[9999]), gs.PromptError),
        (request((b"x", "a{20}", {"max_tokens": 3, "on_limit": "close"}, 1)), gs.BudgetTooSmall),
        (Request(prompt=[1], sampling=Sampling(logit_bias={9999: 1.0})), ValueError),
    ):
        with pytest.raises(error):
            batch.add(wrong)
        assert batch.sequences == [kept]
    while batch.sequences:
        batch.round()
    assert kept.result().text == texts_alone(model)[0][0]


def test_a_request_that_is_half_joined_breaks_the_batch(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = RunningBatch(model, VOCABULARY)
    texts = batch.add(request(CASES[0]))
    batch.round()
    with monkeypatch.context() as broken:
        broken.setattr(Processing, "join", lambda *_: torch.zeros(2) + torch.zeros(3))
        with pytest.raises(JoinError, match="must be dropped"):
            batch.add(request(CASES[1]))
    assert batch.drop() == texts
    [again] = batch.add(request(CASES[0]))
    while batch.sequences:
        batch.round()
    assert again.result().text == texts_alone(model)[0][0]


def test_a_prompt_that_cannot_be_read_changes_nothing(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = RunningBatch(model, VOCABULARY)
    [kept] = batch.add(request(CASES[0]))
    batch.round()
    with monkeypatch.context() as broken:
        broken.setattr(ModelRunner, "read", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            batch.add(request(CASES[3]))
    assert batch.sequences == [kept]
    while batch.sequences:
        batch.round()
    assert kept.result().text == texts_alone(model)[0][0]


def test_gamma_must_not_be_negative(model: Any) -> None:
    with pytest.raises(ValueError, match="gamma must be at least 0, not -1"):
        RunningBatch(model, VOCABULARY, gamma=-1)


def test_a_broken_batch_is_dropped(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = RunningBatch(model, VOCABULARY)
    texts = batch.add(request(CASES[0])) + batch.add(request(CASES[1]))
    with monkeypatch.context() as broken:
        broken.setattr(model, "forward", lambda *_, **__: 1 / 0)
        with pytest.raises((ZeroDivisionError, TypeError)):
            batch.round()
    assert batch.drop() == texts
    assert batch.sequences == []
    [again] = batch.add(request(CASES[0]))
    while batch.sequences:
        batch.round()
    assert again.result().text == texts_alone(model)[0][0]
