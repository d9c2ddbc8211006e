"""Drafts by a head of the EAGLE kind, against the same head that reads each text anew."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.decoding import Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.batch import Batch  # noqa: E402
from grammarspec.decoding.proposers import Eagle, Forced, Lookup, Proposer  # noqa: E402
from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.drafting import BYTES, END, WIDTH, matcher_of  # noqa: E402
from tests.oracles.families import build  # noqa: E402

pytestmark = pytest.mark.usefixtures("inference")

WEIGHTS = Path(__file__).parents[2] / "examples" / "drafts" / "smollm2.safetensors"
FLOOR = 0.25  # of the draft tokens of the demo's model, that many are accepted
PATTERNS = [r"[a-z]{1,20}", r"(yes|no|maybe)( (yes|no|maybe)){0,5}", r".{0,30}", r"[ab](cdefg[hi]){2,9}"]


@pytest.fixture(scope="module")
def target() -> Any:
    return build("llama", vocab_size=WIDTH, bos_token_id=None, eos_token_id=END)


@pytest.fixture(scope="module")
def head(target: Any) -> EagleHead:
    """A head with random weights, far from handing on what it reads."""
    made = EagleHead(EagleConfig.like(target, 40))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in made.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * (0.3 if weight.ndim > 1 else 1))
    return made


def requests(**options: Any) -> list[Request]:
    made = [
        Request(prompt=b"a prompt"[: 1 + 2 * number], matcher=matcher_of(pattern), sampling=Sampling(**options))
        for number, pattern in enumerate(PATTERNS)
    ]
    return [*made, Request(prompt=b"free", sampling=Sampling(**options))]


class Anew:
    """A head that reads a text from its beginning, without a cache: one row, position after position.

    Args:
        head: the head.
        model: the target.
        tokens: the tokens that it can draft.
    """

    def __init__(self, head: EagleHead, model: Any, tokens: Sequence[int]) -> None:
        self._head, self._model, self._tokens = head, model, list(tokens)

    def hidden_of(self, text: Sequence[int]) -> list[Any]:
        """The target's hidden states behind the tokens of a text."""
        read = self._model(torch.tensor([list(text)]), use_cache=False, output_hidden_states=True)
        return [*read.hidden_states[-1][0]]

    def read(self, text: Sequence[int], states: Sequence[Any]) -> Any:
        """The head's hidden state behind a text.

        Args:
            text: the tokens that it reads.
            states: ``[hidden size]`` for each of them, behind the token before.
        """
        embedded = self._model.get_input_embeddings()(torch.tensor([list(text)]))
        places = torch.arange(len(text))
        joined = self._head.joined(embedded, torch.stack(list(states))[None])
        query, key, value = self._head.heads(joined, places[None])
        return self._head.finish(joined, query, key, value, places <= places[:, None])[0, -1]

    def logits(self, state: Any) -> Any:
        scores = torch.full((WIDTH,), -torch.inf)
        scores[self._tokens] = (self._model.get_output_embeddings().weight @ state)[self._tokens]
        return scores


def masked(scores: Any, matcher: Any) -> Any:
    rows = gs.allocate_bitmask(1, BYTES.size)
    rows[:] = -1
    if matcher is not None:
        matcher.fill_bitmask(rows)
    gs.apply_bitmask(scores, rows)
    return scores


def check_round(batch: Batch, anew: Anew, known: dict[int, int], count: int = 3) -> Counter[str]:
    """A round whose drafts are those of the head that reads each text anew.

    Args:
        batch: the batch.
        anew: the head.
        known: by identity of its sequence, the first token of each row that the head reads; filled here.

    Returns:
        how many tokens each proposer drafted.
    """
    before = [
        (row, list(row.tokens), None if row.matcher is None else row.matcher.fork(), length)
        for row, length in zip(batch.sequences, batch.target.lengths, strict=True)
    ]
    draft = batch.round()
    seen: Counter[str] = Counter()
    for number, (row, text, matcher, length) in enumerate(before):
        seen.update(draft.sources[number])
        first = known.get(id(row))
        if first is None:
            assert "eagle" not in draft.sources[number], "nothing is known before the target's first pass"
            known[id(row)] = length + 1
            continue
        states = anew.hidden_of(text)[first - 1 : length]
        read, own, whole = first, None, text + draft.tokens[number]
        for place, (token, source) in enumerate(zip(draft.tokens[number], draft.sources[number], strict=True)):
            if source == "eagle":
                end = len(text) + place
                missing = end - first - len(states)
                if missing and own is not None:
                    states.append(own)
                    missing -= 1
                states += [anew._head.unknown] * missing
                own, read = anew.read(whole[first:end], states), end
                scores = masked(anew.logits(own), matcher)
                assert scores[token] >= scores.max() - 1e-3, (number, place)
            if matcher is not None:
                assert matcher.accept_token(token)
        assert read <= len(whole)
    return seen


@pytest.mark.combined
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("others", [[], [Forced(), Lookup()]], ids=["alone", "behind others"])
def test_drafts_are_those_of_a_head_that_reads_the_text_anew(
    target: Any, head: EagleHead, some: bool, others: list[Proposer]
) -> None:
    """After every rollback, and where rows have left the batch."""
    chosen = torch.arange(97, 257) if some else torch.arange(WIDTH)
    eagle = Eagle(head, target, chosen if some else None)
    batch = Batch(target, requests(max_tokens=40), BYTES, proposers=[*others, eagle], gamma=5)
    known: dict[int, int] = {}
    anew, sizes, seen = Anew(head, target, chosen.tolist()), set(), Counter[str]()
    while batch.sequences:
        sizes.add(len(batch.sequences))
        seen += check_round(batch, anew, known)
    assert len(sizes) > 2, "rows should end one after another"
    assert seen["eagle"] > 20
    assert not others or seen["forced"] + seen["preferred"]
    assert eagle.passes


def test_passes(target: Any, head: EagleHead) -> None:
    """One for each token of the longest draft: what was committed is read together with the token behind it."""
    eagle = Eagle(head, target)
    batch = Batch(target, requests(max_tokens=40), BYTES, proposers=[eagle], gamma=4)
    steps = sum(batch.round().gamma for _ in range(8))
    assert eagle.passes == steps > 20


def test_what_others_draft_is_read_in_one_pass(target: Any, head: EagleHead) -> None:
    what = Request(prompt=b"xx", matcher=matcher_of("[ab](cdefg[hi]){9}"), sampling=Sampling(max_tokens=60))
    eagle = Eagle(head, target)
    batch = Batch(target, [what], BYTES, proposers=[Forced(), eagle], gamma=12)
    batch.round()
    drafts = [batch.round() for _ in range(3)]
    passes = sum(sources.count("eagle") for draft in drafts for sources in draft.sources)
    assert any("forced" in draft.sources[0] for draft in drafts)
    assert eagle.passes == passes


def test_several_texts_of_a_prompt(target: Any, head: EagleHead) -> None:
    """The prompt is read before the head begins: it knows nothing of it but its last token."""
    what = [
        Request(prompt=b"a longer prompt", sampling=Sampling(temperature=1.0, seed=1, max_tokens=12), n=3),
        Request(prompt=b"x", matcher=matcher_of("[a-z]{9}"), sampling=Sampling(max_tokens=12)),
    ]
    eagle = Eagle(head, target, confidence=0.01)
    drafted = generate_batch(target, what, BYTES, proposers=[eagle], gamma=3)
    what = [
        Request(prompt=b"a longer prompt", sampling=Sampling(temperature=1.0, seed=1, max_tokens=12), n=3),
        Request(prompt=b"x", matcher=matcher_of("[a-z]{9}"), sampling=Sampling(max_tokens=12)),
    ]
    alone = generate_batch(target, what, BYTES)
    assert [[text.tokens for text in texts] for texts in drafted] == [
        [text.tokens for text in texts] for texts in alone
    ]
    assert sum(text.statistics.proposed["eagle"] for texts in drafted for text in texts)
    what = [Request(prompt=b"a longer prompt", sampling=Sampling(max_tokens=30), n=2)]
    batch = Batch(target, what, BYTES, proposers=[Eagle(head, target)], gamma=3)
    known: dict[int, int] = {}
    for _ in range(6):
        check_round(batch, Anew(head, target, range(WIDTH)), known)
    assert {*known.values()} == {15}


@pytest.mark.combined
@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 1.0, "seed": 3}, {"temperature": 0.8, "seed": 5, "top_k": 9}],
    ids=["greedy", "noise", "top-k"],
)
@pytest.mark.parametrize("forced", ["sample", "feed"])
def test_texts_are_those_without_drafts(target: Any, head: EagleHead, options: dict[str, Any], forced: Any) -> None:
    chosen = torch.tensor([*range(97, 123), 32, END])
    alone = generate_batch(target, requests(max_tokens=40, **options), BYTES, forced=forced)
    for others in ([], [Forced(), Lookup()]):
        proposers = [*others, Eagle(head, target, chosen, masked=bool(others))]
        found = generate_batch(
            target, requests(max_tokens=40, **options), BYTES, proposers=proposers, gamma=4, forced=forced
        )
        assert [text.tokens for [text] in found] == [text.tokens for [text] in alone]
        assert sum(text.statistics.proposed["eagle"] for [text] in found)


@pytest.mark.property
@pytest.mark.parametrize("masks", [True, False])
def test_distribution(target: Any, head: EagleHead, masks: bool) -> None:
    """Drawn texts have the target's own masked distribution: a chi-square test."""
    samples = tiers.draws(2000)
    torch.manual_seed(tiers.seed(7 + masks))
    constraint = gs.compile(gs.regex("[ab]{1,3}"), BYTES)
    what = Request(prompt=b"xa", matcher=constraint.matcher(), sampling=Sampling(temperature=4.0), n=samples)
    proposers = [Eagle(head, target, torch.tensor([*b"abc", END]), masked=masks)]
    [texts] = generate_batch(target, [what], BYTES, proposers=proposers, gamma=3)
    assert sum(text.statistics.proposed["eagle"] for text in texts) > samples / 2
    seen = Counter(text.text for text in texts)

    def spread(text: bytes, share: float) -> dict[str, float]:
        matcher = constraint.matcher()
        assert matcher.accept_tokens(list(text)) == len(text)
        scores = masked(target(torch.tensor([[*b"xa", *text]])).logits[0, -1].clone(), matcher)
        found: dict[str, float] = {}
        for token, value in enumerate((scores / 4).softmax(-1).tolist()):
            if token == END and value:
                found[text.decode()] = share * value
            elif value:
                found |= spread(bytes([*text, token]), share * value)
        return found

    expected = spread(b"", 1.0)
    assert set(seen) <= {text for text, share in expected.items() if share > 0}
    # Rare texts are one cell.
    cells = {text: share * samples for text, share in expected.items() if share * samples > 10}
    assert len(cells) > 3
    pairs = [(seen[text], count) for text, count in cells.items()]
    rare = samples - sum(count for _, count in pairs)
    pairs.append((samples - sum(count for count, _ in pairs), max(rare, 1.0)))
    assert sum((found - count) ** 2 / count for found, count in pairs) < 45, "of at most 14 degrees of freedom"


def test_what_is_trained_is_what_drafts(target: Any, head: EagleHead) -> None:
    """Behind each token, after as many of its own predictions as in a draft."""
    from benchmarks.distillation.training import steps_of

    text = torch.tensor([list(b"some words")])
    anew = Anew(head, target, range(WIDTH))
    known = anew.hidden_of(text[0].tolist())
    embedded, hidden = target.get_input_embeddings()(text[:, 1:]), torch.stack(known[:-1])[None]
    for start in (0, 3):
        steps = [found[0] for found in steps_of(head, embedded, hidden, 3, start)]
        for end in range(start + 3, text.shape[1] - 1):
            for step in range(3):
                states = known[: end + 1 - step]
                for _ in range(step):
                    states = [*states, anew.read(text[0, 1 : len(states) + 1].tolist(), states)]
                expected = anew.read(text[0, 1 : end + 2].tolist(), states)
                assert torch.allclose(steps[step][end - start], expected, atol=1e-4), (start, end, step)


def test_refuses(target: Any, head: EagleHead) -> None:
    with pytest.raises(gs.errors.DraftMismatch, match="hidden states of 32 numbers, not of 64"):
        Eagle(head, build("llama", hidden_size=64))
    with pytest.raises(gs.errors.DraftMismatch, match="eagle drafts tokens from 0 to 300"):
        Eagle(head, target, torch.tensor([0, 300]))
    with pytest.raises(ValueError, match="confidence must be from 0 to 1"):
        Eagle(head, target, confidence=2)
    with pytest.raises(TypeError, match="takes a model of transformers, not int"):
        Eagle(head, 3)  # type: ignore[arg-type]


def test_long_prompts_are_read_from_near_their_end(head: EagleHead) -> None:
    model = build("llama", vocab_size=WIDTH, bos_token_id=None, eos_token_id=END, max_position_embeddings=2048)
    draw = random.Random(0)
    prompts = [[draw.randrange(97, 123) for _ in range(length)] for length in (700, 5)]
    what = [Request(prompt=prompt, sampling=Sampling(max_tokens=8)) for prompt in prompts]
    found = generate_batch(model, what, BYTES, proposers=[Eagle(head, model)], gamma=3)
    assert [t.tokens for [t] in found] == [t.tokens for [t] in generate_batch(model, what, BYTES)]
    eagle = Eagle(head, model)
    batch = Batch(model, what, BYTES, proposers=[eagle], gamma=3)
    batch.round()
    assert eagle._origin == [189, 1]


@pytest.mark.slow
def test_the_draft_of_the_demo_model(smollm2_directory: Path) -> None:
    """What is accepted of its drafts behind prompts that it was not trained on, greedily."""
    from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of

    model, tokenizer = load_model(smollm2_directory)
    vocabulary = vocabulary_of(model, tokenizer)
    person = {"properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}}}
    grammar = gs.compile(gs.json_schema({**person, "required": ["name", "age"]}), vocabulary)
    prompts = ["What is the sea?", "Write a short note about autumn.", "Name five animals that live in the desert."]
    what = [
        Request(prompt=encode_prompt(tokenizer, prompt), sampling=Sampling(max_tokens=48), matcher=matcher)
        for prompt, matcher in [*((prompt, None) for prompt in prompts), ("Zoe, 41.", grammar.matcher())]
    ]
    eagle = Eagle.from_file(WEIGHTS, model)
    found = generate_batch(model, what, vocabulary, proposers=[eagle], gamma=2, adaptive=False)
    proposed = sum(text.statistics.proposed["eagle"] for [text] in found)
    accepted = sum(text.statistics.accepted["eagle"] for [text] in found)
    print(f"{accepted} of {proposed} tokens accepted")
    assert accepted > FLOOR * proposed
