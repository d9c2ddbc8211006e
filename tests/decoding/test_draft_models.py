"""Draft models, early exit and heads against the same drafting done by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.decoding import Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.batch import Batch  # noqa: E402
from grammarspec.decoding.draft import Draft  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Forced, HeadProposer  # noqa: E402
from grammarspec.decoding.proposers.head import ResidualHead  # noqa: E402
from grammarspec.decoding.proposers.spellings import spellings_of  # noqa: E402
from grammarspec.decoding.sequence_state import SequenceState  # noqa: E402
from tests.oracles.drafting import BYTES, END, WIDTH, matcher_of  # noqa: E402


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


def llama(seed: int, layers: int = 2) -> Any:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.6,
        bos_token_id=None,
        eos_token_id=END,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def target() -> Any:
    return llama(0, 3)


@pytest.fixture(scope="module")
def small() -> Any:
    return llama(1)


PATTERNS = [r"[a-z]{1,20}", r"(yes|no|maybe)( (yes|no|maybe)){0,5}", r".{0,30}", r"[0-9]+(\.[0-9]+)?e[0-9]{1,9}"]


def requests(*, unconstrained: bool = True, **options: Any) -> list[Request]:
    made = [
        Request(prompt=b"a prompt"[: 3 + number], matcher=matcher_of(pattern), sampling=Sampling(**options))
        for number, pattern in enumerate(PATTERNS)
    ]
    return [*made, Request(prompt=b"free", sampling=Sampling(**options))] if unconstrained else made


Logits = Callable[[list[int]], "torch.Tensor"]


def next_logits(model: Any) -> Logits:
    """The logits behind a text, by a pass over all of it."""

    def logits(text: list[int]) -> torch.Tensor:
        return model(torch.tensor([text]), use_cache=False).logits[0, -1].float()

    return logits


def by_hand(
    logits: Logits, text: list[int], matcher: Any, room: int, *, masked: bool = True, confidence: float = 0.0
) -> list[int]:
    """Greedy drafts, token by token. ``logits``: by the target's token ids."""
    draft: list[int] = []
    fork = None if matcher is None else matcher.fork()
    while len(draft) < room and (not draft or draft[-1] != END):
        scores = logits(text + draft).clone()
        rows = gs.allocate_bitmask(1, BYTES.size)
        rows[:] = -1
        if fork is not None and masked:
            fork.fill_bitmask(rows)
        gs.apply_bitmask(scores, rows)
        if scores.max() == -torch.inf:
            break
        token = int(scores.argmax())
        draft.append(token)
        if (fork is not None and not fork.accept_token(token)) or scores.softmax(-1)[token] < confidence:
            break
    return draft


def check_rounds(
    batch: Batch, logits: Logits | Callable[[SequenceState, list[int]], Logits], turns: int, gamma: int, **options: Any
) -> list[Draft]:
    """Rounds of a batch whose drafts are those made by hand."""
    drafts = []
    while batch.sequences and len(drafts) < turns:
        before = [
            (list(row.tokens), None if row.matcher is None else row.matcher.fork(), min(gamma, row.room - 1))
            for row in batch.sequences
        ]
        draft = batch.round()
        drafts.append(draft)
        for row, (text, matcher, room) in enumerate(before):
            assert draft.tokens[row] == by_hand(logits, text, matcher, room, **options), (row, text)
    return drafts


def batch_with(model: Any, proposer: Any, gamma: int, what: Sequence[Request] | None = None) -> Batch:
    return Batch(model, what or requests(), BYTES, proposers=[proposer], gamma=gamma)


def test_draft_model(target: Any, small: Any) -> None:
    proposer = DraftModel(small)
    batch = batch_with(target, proposer, 4)
    drafts = check_rounds(batch, next_logits(small), 12, 4)
    assert {source for draft in drafts for sources in draft.sources for source in sources} == {"model"}
    assert not any(any(flags) for draft in drafts for flags in draft.drawn)
    # One pass for each token of the longest draft: what is read together is read in the same pass.
    assert proposer.passes == sum(draft.gamma for draft in drafts)
    assert any(len(draft.sequences) < 5 for draft in drafts), "some rows should have ended before the others"


def test_a_model_drafts_its_own_text(target: Any) -> None:
    """All of what the target itself drafts is accepted, however tokens are chosen."""
    for options in ({}, {"temperature": 1.0, "seed": 1}, {"temperature": 1.0, "top_k": 9}):
        for sampled in generate_batch(
            target, requests(max_tokens=40, **options), BYTES, proposers=[DraftModel(target)], gamma=3
        ):
            statistics = sampled[0].statistics
            assert statistics.accepted == statistics.proposed


def test_draft_model_without_masks(target: Any, small: Any) -> None:
    batch = batch_with(target, DraftModel(small, masked=False), 4)
    drafts = check_rounds(batch, next_logits(small), 8, 4, masked=False)
    refused = [(draft, row) for draft in drafts for row in draft.refused]
    assert refused
    assert all(draft.room(row) == 0 for draft, row in refused)


@pytest.mark.parametrize("known", [120, 257, 263, 265, 300])
def test_draft_model_of_another_width(target: Any, small: Any, known: int) -> None:
    """Narrower, the draft never proposes the others; wider, what the target does not have is cut off."""
    other = copy.copy(small)
    other._modules = dict(small._modules)
    torch.manual_seed(known)
    other.lm_head = torch.nn.Linear(32, known, bias=False)

    def logits(text: list[int]) -> torch.Tensor:
        found = next_logits(other)(text)
        assert len(found) == known
        padding = found.new_full((max(WIDTH - known, 0),), -torch.inf)
        return torch.cat((found, padding))[:WIDTH]

    drafts = check_rounds(batch_with(target, DraftModel(other), 3), logits, 8, 3)
    assert max(token for draft in drafts for tokens in draft.tokens for token in tokens) < min(known, WIDTH)


@pytest.mark.parametrize("seed", [0, 1])
def test_draft_model_with_tokens_of_its_own(target: Any, small: Any, seed: int) -> None:
    """A draft that knows some of the target's tokens, in another order."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(257, generator=generator)[:90]
    other = copy.copy(small)
    other._modules = dict(small._modules)
    other.lm_head = torch.nn.Linear(32, 90, bias=False)
    other.lm_head.weight = torch.nn.Parameter(small.lm_head.weight[chosen])

    def logits(text: list[int]) -> torch.Tensor:
        found = torch.full((WIDTH,), -torch.inf)
        found[chosen] = next_logits(small)(text)[chosen]
        return found

    drafts = check_rounds(batch_with(target, DraftModel(other, draft_to_target=chosen), 3), logits, 10, 3)
    assert {token for draft in drafts for tokens in draft.tokens for token in tokens} <= set(chosen.tolist())


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 1.0}, {"temperature": 1.0, "seed": 3}, {"temperature": 1.0, "top_p": 0.5}]
)
@pytest.mark.parametrize("confidence", [0.0, 0.5])
def test_draft_model_that_knows_no_token_of_the_text(
    target: Any, small: Any, options: dict[str, Any], confidence: float
) -> None:
    """Nothing is drafted where nothing may come, next to a row where something may."""
    other = copy.copy(small)
    other._modules = dict(small._modules)
    other.lm_head = torch.nn.Linear(32, 10, bias=False)
    digits = torch.tensor(list(b"0123456789"))
    proposer = DraftModel(other, draft_to_target=digits, confidence=confidence)
    wanted = Sampling(**options)
    what = [Request(prompt=b"ab", matcher=matcher_of(p), sampling=wanted) for p in ("[a-z]{9}", "[0-9]{9}")]
    batch = batch_with(target, proposer, 4, what)
    for _ in range(2):
        draft = batch.round()
        assert draft.tokens[0] == []
        assert draft.tokens[1]


def test_draft_models_of_fewer_tokens(target: Any) -> None:
    narrow = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**target.config.to_dict(), "vocab_size": 257}))
    text = Request(prompt=b"a prompt", matcher=matcher_of("[a-z]{9}"), sampling=Sampling())
    padding = Request(prompt=[97, 260], matcher=matcher_of("[a-z]{9}"), sampling=Sampling())
    batch = batch_with(target, DraftModel(narrow), 4, [text, padding])
    draft = batch.round()
    assert draft.tokens[0] and not draft.tokens[1]
    # A draft model that cannot read a token that the target may say.
    for size, token in ((256, "256 is b''"), (100, "100 is b'd'")):
        other = transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**{**target.config.to_dict(), "vocab_size": size, "eos_token_id": None})
        )
        with pytest.raises(gs.errors.DraftMismatch, match=f"token {token}, and it knows {size} tokens only"):
            batch_with(target, DraftModel(other), 4, [text])


@pytest.mark.parametrize("confidence", [0.3, 0.6, 1.0])
def test_confidence_ends_a_draft(target: Any, small: Any, confidence: float) -> None:
    """Behind the token that was not sure; the token stays."""
    drafts = check_rounds(
        batch_with(target, DraftModel(small, confidence=confidence), 5),
        next_logits(small),
        12,
        5,
        confidence=confidence,
    )
    lengths = {len(tokens) for draft in drafts for tokens in draft.tokens}
    assert 1 in lengths
    assert len(lengths) > 1, "text that is forced is sure"


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_draft_model_refuses(small: Any, confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence must be from 0 to 1"):
        DraftModel(small, confidence=confidence)


def test_drawn_tokens_come_with_their_distribution(target: Any, small: Any) -> None:
    what = requests(temperature=0.7, top_k=20)
    what[1] = Request(prompt=b"abc", matcher=matcher_of(PATTERNS[1]), sampling=Sampling())
    what[2] = Request(prompt=b"abc", matcher=matcher_of(PATTERNS[2]), sampling=Sampling(temperature=1.0, seed=1))
    batch = batch_with(target, DraftModel(small), 3, what)
    for _ in range(5):
        before = [(list(row.tokens), None if row.matcher is None else row.matcher.fork()) for row in batch.sequences]
        kinds = [(row.sampling.temperature, row.sampling.seed) for row in batch.sequences]
        draft = batch.round()
        for row, (text, matcher) in enumerate(before):
            temperature, seed = kinds[row]
            drawn = temperature > 0 and seed is None
            assert draft.drawn[row] == [drawn] * len(draft.tokens[row])
            for place, token in enumerate(draft.tokens[row]):
                if not drawn:
                    continue
                scores = next_logits(small)(text + draft.tokens[row][:place])
                rows = gs.allocate_bitmask(1, BYTES.size)
                rows[:] = -1
                if matcher is not None:
                    matcher.fill_bitmask(rows)
                    matcher.accept_token(token)
                gs.apply_bitmask(scores, rows)
                scores[scores < scores.topk(20)[0][-1]] = -torch.inf
                assert draft.distributions is not None
                assert torch.allclose(draft.distributions[row, place], (scores / 0.7).softmax(-1), atol=1e-4)
                assert draft.distributions[row, place, token] > 0


def test_draft_model_at_the_end_of_its_context(target: Any) -> None:
    """It reads as far as it can; where it cannot, it says nothing."""
    short = llama(1)
    short.config.max_position_embeddings = 12
    proposer = DraftModel(short)
    what = [Request(prompt=b"a" * length, sampling=Sampling(max_tokens=30)) for length in (3, 8, 14)]
    batch = batch_with(target, proposer, 4, what)
    longest = [0, 0, 0]
    for _ in range(6):
        if len(batch.sequences) < 3:
            break
        before = [len(row.tokens) for row in batch.sequences]
        draft = batch.round()
        for row, length in enumerate(before):
            expected = max(min(4, 13 - length), 0)
            ended = draft.tokens[row][-1:] == [END]
            assert len(draft.tokens[row]) == expected or ended
            longest[row] = max(longest[row], length)
        assert draft.tokens[2] == []


def test_a_stop_inside_an_accepted_draft_teaches_no_split(target: Any) -> None:
    """All of the draft is as the target would say it; the text only ends inside."""
    vocabulary = gs.Vocabulary.from_tokens(
        [*(bytes([value]) for value in range(256)), b"ab", b"abc"], [END + 2], size=WIDTH
    )
    ab, abc = 256, 257
    wanted = Sampling(stop=["-ab"], logit_bias={ord("-"): 90.0, ab: 90.0, abc: 99.0})
    what = Request(prompt=[1], matcher=matcher_of("-ababcab", vocabulary), sampling=wanted)
    proposer = Forced()
    batch = Batch(target, [what], vocabulary, proposers=[proposer], gamma=6)
    assert batch.round().tokens == [[ord("-"), ab, abc, ab, END + 2]]
    [[text]] = batch.results()
    assert (text.tokens, text.finish_reason) == ([ord("-"), ab], "stop")
    assert spellings_of(vocabulary).spell(vocabulary, b"-ababcab", [1]) == [ord("-"), ab, abc, ab]


# Self-speculation.


def truncated(model: Any, layers: int) -> Any:
    """A model of the first layers, built anew and loaded with their weights."""
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    short = type(model)(config).eval()
    found = short.load_state_dict(model.state_dict(), strict=False)
    assert not found.missing_keys
    assert found.unexpected_keys
    return short


def family(name: str) -> Any:
    torch.manual_seed(0)
    settings: dict[str, Any] = {
        "vocab_size": WIDTH,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "initializer_range": 0.5,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": END,
    }
    special: dict[str, dict[str, Any]] = {
        "gemma2": {"sliding_window": 6},
        "mistral": {"sliding_window": 6},
        "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128},
        "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    }
    config = transformers.AutoConfig.for_model(name, **settings, **special.get(name, {}))
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


@pytest.mark.combined
@pytest.mark.parametrize("name", ["llama", "gemma2", "mistral", "gpt2", "opt"])
@pytest.mark.parametrize("layers", [1, 2])
def test_early_exit_equals_a_model_of_the_first_layers(name: str, layers: int) -> None:
    model = family(name)
    kept = {key: value.clone() for key, value in model.state_dict().items()}
    proposer = EarlyExit(model, layers)
    check_rounds(batch_with(model, proposer, 3), next_logits(truncated(model, layers)), 8, 3)
    assert proposer.passes > 8
    assert proposer.model.get_input_embeddings() is model.get_input_embeddings()
    # The target is what it was.
    assert model.config.num_hidden_layers == 3
    assert all(torch.equal(value, kept[key]) for key, value in model.state_dict().items())
    alone = generate_batch(model, requests(max_tokens=25), BYTES)
    drafted = generate_batch(model, requests(max_tokens=25), BYTES, proposers=[EarlyExit(model, layers)], gamma=3)
    assert [text.tokens for [text] in alone] == [text.tokens for [text] in drafted]
    assert {source for [text] in drafted for source in text.statistics.proposed} == {"early-exit"}


@pytest.mark.parametrize("name", ["gemma3n_text", "gemma4_text"])
def test_early_exit_where_layers_have_inputs_of_their_own_and_share_keys(name: str) -> None:
    """Their embeddings have a part for each layer, so that no model of the first layers can be built alone."""
    kinds = ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    special: dict[str, Any] = {"gemma3n_text": {"altup_num_inputs": 2, "laurel_rank": 8}}
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        name, vocab_size=WIDTH, vocab_size_per_layer_input=WIDTH, hidden_size=32, intermediate_size=48,
        num_hidden_layers=5, layer_types=kinds, num_kv_shared_layers=2, hidden_size_per_layer_input=8,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, sliding_window=6, max_position_embeddings=128,
        initializer_range=0.15, bos_token_id=None, eos_token_id=END, **special.get(name, {}),
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    alone = generate_batch(model, requests(max_tokens=25), BYTES)
    for layers in (1, 4):
        drafted = generate_batch(model, requests(max_tokens=25), BYTES, proposers=[EarlyExit(model, layers)], gamma=3)
        assert [text.tokens for [text] in alone] == [text.tokens for [text] in drafted]
        assert {source for [text] in drafted for source in text.statistics.proposed} == {"early-exit"}


def test_early_exit_without_masks_and_with_confidence(target: Any) -> None:
    short = truncated(target, 2)
    check_rounds(batch_with(target, EarlyExit(target, 2, masked=False), 4), next_logits(short), 5, 4, masked=False)
    check_rounds(batch_with(target, EarlyExit(target, 2, confidence=0.5), 4), next_logits(short), 5, 4, confidence=0.5)


def test_early_exit_behind_other_proposers(target: Any) -> None:
    """It goes on behind what others drafted, and does not ask them to have read it."""
    short = truncated(target, 2)
    what = requests(unconstrained=False)
    batch = Batch(target, what, BYTES, proposers=[Forced(), EarlyExit(target, 2)], gamma=5)
    for _ in range(6):
        before = [(list(row.tokens), row.matcher.fork()) for row in batch.sequences]
        draft = batch.round()
        for row, (text, matcher) in enumerate(before):
            for place, (token, source) in enumerate(zip(draft.tokens[row], draft.sources[row], strict=True)):
                if source == "early-exit":
                    assert [token] == by_hand(next_logits(short), text + draft.tokens[row][:place], matcher, 1)
                matcher.accept_token(token)


@pytest.mark.parametrize("layers", [0, -1, 3, 4])
def test_early_exit_refuses_layers(target: Any, layers: int) -> None:
    with pytest.raises(ValueError, match=f"layers must be from 1 to 2, not {layers}"):
        EarlyExit(target, layers)


def test_early_exit_refuses_what_it_does_not_find(target: Any) -> None:
    model = copy.deepcopy(target)
    model.model.more = torch.nn.ModuleList(torch.nn.Identity() for _ in range(3))
    with pytest.raises(ValueError, match="the layers of LlamaForCausalLM are not found"):
        EarlyExit(model, 1)


def test_early_exit_is_of_its_target(target: Any, small: Any) -> None:
    with pytest.raises(ValueError, match="drafts for the model that it was made of only"):
        batch_with(target, EarlyExit(small, 1), 3)


# Heads.


def head_for(model: Any, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    head = ResidualHead(model, 16)
    torch.nn.init.normal_(head.outer.weight, std=0.7)
    torch.nn.init.normal_(head.outer.bias, std=0.3)
    return head.eval()


def head_logits(model: Any, head: Any, known: int) -> Logits:
    """What a head says behind a text of which the target has read the first ``known`` tokens."""

    def logits(text: list[int]) -> torch.Tensor:
        read = model(torch.tensor([text[:known]]), use_cache=False, output_hidden_states=True)
        hidden = read.hidden_states[-1][:, -1]
        for token in text[known:]:
            found, hidden = head(hidden, torch.tensor([token]))
        return found[0].float()

    return logits


@pytest.mark.parametrize(
    "options", [{}, {"masked": False}, {"confidence": 0.5}], ids=["plain", "unmasked", "confidence"]
)
def test_head_proposer(target: Any, options: dict[str, Any]) -> None:
    head = head_for(target)
    proposer = HeadProposer(head, **options)
    batch = batch_with(target, proposer, 4)
    assert batch.round().tokens == [[]] * 5, "nothing is known before the first pass of the target"
    steps = 0
    accepted = 0
    for _ in range(8):
        before = [
            (list(row.tokens), None if row.matcher is None else row.matcher.fork(), row.room - 1)
            for row in batch.sequences
        ]
        draft = batch.round()
        steps += draft.gamma
        for row, (text, matcher, room) in enumerate(before):
            logits = head_logits(target, head, len(text) - 1)
            assert draft.tokens[row] == by_hand(logits, text, matcher, min(4, room), **options)
            accepted += len(draft.sequences[row].tokens) - len(text) - 1
        assert all(source == "head" for sources in draft.sources for source in sources)
    assert proposer.passes == steps
    assert accepted, "no round should mean that states behind accepted drafts were never used"


def test_head_steps_through_what_others_draft(target: Any) -> None:
    head = head_for(target)
    what = [*requests(unconstrained=False), Request(prompt=b"xx", matcher=matcher_of("[ab](cdefg[hi]){9}"))]
    batch = Batch(target, what, BYTES, proposers=[Forced(), HeadProposer(head)], gamma=6)
    batch.round()
    seen = set()
    for _ in range(6):
        before = [(list(row.tokens), row.matcher.fork()) for row in batch.sequences]
        draft = batch.round()
        for row, (text, matcher) in enumerate(before):
            logits = head_logits(target, head, len(text) - 1)
            for place, (token, source) in enumerate(zip(draft.tokens[row], draft.sources[row], strict=True)):
                if source == "head":
                    assert [token] == by_hand(logits, text + draft.tokens[row][:place], matcher, 1)
                    seen.add("forced" in draft.sources[row][:place])
                matcher.accept_token(token)
    assert seen == {False, True}


def test_head_with_tokens_of_its_own(target: Any) -> None:
    """As EAGLE's checkpoints have."""
    whole = head_for(target)
    chosen = torch.randperm(257, generator=torch.Generator().manual_seed(1))[:100]

    class Some:
        draft_to_target = chosen

        def __call__(self, hidden: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            logits, hidden = whole(hidden, tokens)
            return logits[:, chosen], hidden

    batch = batch_with(target, HeadProposer(Some()), 3)
    batch.round()
    for _ in range(6):
        before = [(list(row.tokens), None if row.matcher is None else row.matcher.fork()) for row in batch.sequences]
        draft = batch.round()
        for row, (text, matcher) in enumerate(before):
            every = head_logits(target, whole, len(text) - 1)

            def logits(text: list[int], every: Logits = every) -> torch.Tensor:
                return torch.full((WIDTH,), -torch.inf).scatter(0, chosen, every(text)[chosen])

            assert draft.tokens[row] == by_hand(logits, text, matcher, 3)


def test_residual_head_begins_as_the_target(target: Any) -> None:
    """Untrained, it hands the hidden state on; what it shares with the target is none of its parameters."""
    head = ResidualHead(target, 16)
    hidden = torch.randn(3, 32, generator=torch.Generator().manual_seed(0))
    logits, following = head(hidden, torch.tensor([1, 2, 3]))
    assert torch.equal(following, hidden)
    assert torch.equal(logits, target.lm_head(hidden))
    assert {name for name, _ in head.named_parameters()} == {"inner.weight", "inner.bias", "outer.weight", "outer.bias"}
    assert head.draft_to_target is None
    bfloat = ResidualHead(copy.deepcopy(target).to(torch.bfloat16), 16)
    assert bfloat(hidden.bfloat16(), torch.tensor([1, 2, 3]))[1].dtype == torch.bfloat16
