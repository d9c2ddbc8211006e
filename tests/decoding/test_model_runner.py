"""Ragged batches, rolled back and rearranged, against each model's own pass over the whole text without a cache."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from grammarspec import UnsupportedFeature  # noqa: E402
from grammarspec.decoding import model_runner  # noqa: E402
from grammarspec.decoding.cache import RaggedCache  # noqa: E402
from grammarspec.decoding.device.cache import StaticCache  # noqa: E402
from grammarspec.decoding.device.runner import StaticRunner  # noqa: E402
from grammarspec.decoding.model_runner import ModelRunner  # noqa: E402
from grammarspec.decoding.targets import context_length  # noqa: E402
from tests.oracles.families import CONTEXT, EXPERTS, WIDTH, build  # noqa: E402

pytestmark = pytest.mark.usefixtures("inference")

GPT2 = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": CONTEXT}

# Families that differ in kind, with what their configurations need besides (None: not that entry), and the kinds of
# attention that their layers are to be read with.
FAMILIES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "llama": ({}, {"full"}),
    "mistral": ({"sliding_window": 6}, {"sliding"}),
    "phi3": ({"sliding_window": 6}, {"sliding"}),
    "qwen2": ({}, {"full"}),
    "qwen2 with windows": (
        {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1},
        {"full", "sliding"},
    ),
    "qwen3": ({}, {"full"}),
    "gemma2": ({"sliding_window": 6}, {"full", "sliding"}),
    "gemma3_text": (
        {"sliding_window": 6, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
        {"full", "sliding"},
    ),
    "gpt2": (GPT2, {"full"}),
    "opt": ({"ffn_dim": 48, "word_embed_proj_dim": 32}, {"full"}),
    "gpt_neox": ({}, {"full"}),
    "gptj": ({**GPT2, "rotary_dim": 4}, {"full"}),
    "falcon": ({"alibi": False, "new_decoder_architecture": False, "head_dim": None}, {"full"}),
    "gpt_oss": ({**EXPERTS, "sliding_window": 6, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
                {"full", "sliding"}),
    "deepseek_v3": (
        {
            "head_dim": None,
            "kv_lora_rank": 16,
            "q_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 1,
            "topk_group": 1,
            "moe_intermediate_size": 16,
            "num_key_value_heads": 4,
        },
        {"full"},
    ),
    "llama4_text": (
        {**EXPERTS, "num_experts_per_tok": 1, "intermediate_size_mlp": 48, "attention_chunk_size": 6,
         "no_rope_layers": [1, 1, 0]},
        {"full", "chunked"},
    ),
    "stablelm": ({}, {"full"}),
}  # fmt: skip


class Texts:
    """What a runner should have read, and what the model itself says of it."""

    def __init__(self, model: Any, rows: int, **options: Any) -> None:
        self.model = model
        self.runner = ModelRunner(model, rows, **options)
        self.texts: list[list[int]] = [[] for _ in range(rows)]
        self.worst = 0.0

    def read(self, tokens: Sequence[Sequence[int]], keep: int) -> None:
        logits = self.runner.read(tokens, keep)
        assert logits.shape == (len(tokens), keep, WIDTH)
        self.texts = [text + list(row) for text, row in zip(self.texts, tokens, strict=True)]
        assert self.runner.lengths == [len(text) for text in self.texts]
        for row, new in enumerate(tokens):
            if count := min(keep, len(new)):
                whole = self.model(torch.tensor([self.texts[row]]), use_cache=False, output_hidden_states=True)
                assert 1 < whole.logits.std() < 10
                self._compare(logits[row, -count:], whole.logits[0, -count:])
                for layer, hidden in self.runner.hidden.items():
                    self._compare(hidden[row, -len(new) :], whole.hidden_states[layer][0, -len(new) :])

    def _compare(self, ours: torch.Tensor, theirs: torch.Tensor) -> None:
        self.worst = max(self.worst, float((ours - theirs).abs().max()))
        assert self.worst < 1e-3

    def take_back(self, counts: Sequence[int]) -> None:
        for row, count in enumerate(counts):
            del self.texts[row][max(len(self.texts[row]) - count, 0) :]
        self.runner.lengths = [len(text) for text in self.texts]

    def select(self, rows: Sequence[int]) -> None:
        self.runner.select(rows)
        self.texts = [list(self.texts[row]) for row in rows]
        assert self.runner.lengths == [len(text) for text in self.texts]


def rounds(texts: Texts, turns: int, seed: int) -> None:
    """Prompts of different lengths; then in each round some tokens, none for some rows, of which some are forgotten."""
    generator = random.Random(seed)

    def words(count: int) -> list[int]:
        return [generator.randrange(3, WIDTH) for _ in range(count)]

    texts.read([words(count) for count in (14, 3, 9)], 2)
    passes = texts.runner.passes
    for turn in range(turns):
        rows = len(texts.texts)
        counts = [generator.choice([0, 1, 1, 2, 4, 5]) for _ in range(rows)]
        counts[generator.randrange(rows)] = generator.randint(1, 5)
        texts.read([words(count) for count in counts], generator.randint(1, max(counts)))
        # What takes the places of forgotten tokens are others.
        texts.take_back([generator.choice([0, 0, 1, 3, 6]) for _ in range(rows)])
        if turn % 4 == 3:
            texts.select([generator.randrange(rows) for _ in range(generator.randint(2, 4))])
    assert texts.runner.passes == passes + turns


@pytest.mark.parametrize(
    ("family", "attention"),
    [(family, None) for family in FAMILIES] + [("llama", "eager"), ("gemma3_text", "eager")],
)
def test_equals_the_model_without_cache(family: str, attention: str | None) -> None:
    options, kinds = FAMILIES[family]
    model = build(family, attention=attention, **options)
    assert model.config._attn_implementation in ({"eager", "sdpa"} if attention is None else {attention})
    texts = Texts(model, 3)
    rounds(texts, 10, seed=len(family))
    assert set(texts.runner._windows) == {f"{kind}_attention" for kind in kinds}
    assert texts.worst > 0, "the comparison is of one pass with itself"


@pytest.mark.parametrize("family", ["llama", "gemma3_text", "llama4_text", "gpt2"])
@pytest.mark.parametrize("part", [1, 3, 5])
def test_prompts_read_in_parts(family: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_runner, "_PART", part)
    options, _ = FAMILIES[family]
    texts = Texts(build(family, **options), 3, hidden_layers=[0, -1])
    generator = random.Random(part)
    for counts in ((14, 3, 9), (0, 11, 2), (1, 1, 1), (7, 0, 12)):
        passes = texts.runner.passes
        texts.read([[generator.randrange(3, WIDTH) for _ in range(count)] for count in counts], min(2, max(counts)))
        assert texts.runner.passes - passes == max(-(-(max(counts) - min(2, max(counts))) // part), 1)
        texts.take_back([0, 2, 1])


def test_more_keys_than_there_are_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On CUDA, attention is given a round number of keys; those behind a text's last token are masked."""
    model = build("llama")
    seen: list[int] = []
    plan = RaggedCache.plan

    def noting(self: RaggedCache, slots: Any, visible: int, span: slice | None = None) -> None:
        seen.append(visible)
        plan(self, slots, visible, span)

    monkeypatch.setattr(RaggedCache, "plan", noting)

    def found() -> list[Any]:
        runner = ModelRunner(model, 2)
        logits = [runner.read([[1, 2, 3, 4, 5, 6], [7, 8]], 1), runner.read([[9], [10]], 1)]
        runner.lengths[0] -= 3
        return [*logits, runner.read([[11, 12], [13, 14]], 2)]

    exact = found()
    assert seen == [6, 7, 6]
    monkeypatch.setitem(model_runner._KEYS, model.device.type, 16)
    rounded = found()
    assert seen[3:] == [16, 16, 16]
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(exact, rounded, strict=True))


def test_windows_matter() -> None:
    """The tests above would tell a window from none: texts are longer, and the logits differ."""
    for family in ("mistral", "gemma2", "llama4_text"):
        options, _ = FAMILIES[family]
        name = "attention_chunk_size" if family == "llama4_text" else "sliding_window"
        narrow, wide = (build(family, **{**options, name: size}) for size in (6, 100))
        ids = torch.randint(3, WIDTH, (1, 14), generator=torch.Generator().manual_seed(0))
        short, long = (
            (narrow(text, use_cache=False).logits - wide(text, use_cache=False).logits)[0, -1].abs().max()
            for text in (ids[:, :6], ids)
        )
        assert short < 1e-5
        assert long > 0.1


def test_long_texts() -> None:
    """Beyond the places that the cache begins with, and up to the model's context."""
    texts = Texts(build("llama"), 2)
    capacities = set()
    for begin in range(0, CONTEXT, 16):
        texts.read([range(16), [(7 * token + begin) % WIDTH for token in range(16)]], 3)
        capacities.add(texts.runner.cache.now.capacity)
    assert texts.runner.lengths == [CONTEXT, CONTEXT] == [context_length(texts.model)] * 2
    assert len(capacities) > 1
    texts.take_back([100, 128])
    texts.read([[9, 8, 7], [5] * 20], 4)


def test_padding_is_written_where_nothing_is_read() -> None:
    cache = RaggedCache()
    for visible in range(1, 400):
        cache.plan(torch.tensor([[torch.iinfo(torch.int64).max, visible - 1]]), visible)
        [[padding, place]] = cache.now.slots.tolist()
        assert (place, cache.now.visible) == (visible - 1, visible)
        assert visible <= padding < cache.now.capacity


def ragged(model: Any) -> ModelRunner:
    runner = ModelRunner(model, 1)
    runner.read([[1, 2, 3]], 1)
    assert runner.fork([0, 0]).lengths == [3, 3]
    return runner


def static(model: Any) -> StaticRunner:
    runner = StaticRunner(model, StaticCache(1, 16))
    runner.read(torch.tensor([[1, 2, 3]]), torch.tensor([0]), torch.ones(1, 3, dtype=torch.bool), visible=3, keep=1)
    return runner


@pytest.mark.parametrize("read", [ragged, static])
def test_what_is_dropped_is_freed_at_once(read: Callable[[Any], Any]) -> None:
    """Keys and values are large, and Python looks for circles of objects seldom."""
    runner = read(build("llama"))
    keys = [weakref.ref(layer.keys) for layer in runner.cache.layers]
    gc.disable()
    try:
        del runner
        assert len(keys) > 1
        assert all(key() is None for key in keys)
    finally:
        gc.enable()


def test_hidden_states() -> None:
    """Those that the output layer sees, also where several kinds of layers are read."""
    for family in ("llama", "gemma2"):
        texts = Texts(build(family, **FAMILIES[family][0]), 3, hidden_layers=(0, 1, -1))
        rounds(texts, 6, seed=1)
        assert set(texts.runner.hidden) == {0, 1, -1}
        logits = texts.runner.read([[5]] * len(texts.texts), 1)
        if family == "llama":
            assert torch.allclose(texts.model.lm_head(texts.runner.hidden[-1]), logits, atol=1e-5)


def test_no_hidden_states_unless_asked_for() -> None:
    runner = ModelRunner(build("llama"), 1)
    runner.read([[1, 2, 3]], 1)
    assert runner.hidden == {}


def test_rows_with_nothing_read() -> None:
    """A row may begin later than the others, and begin anew."""
    texts = Texts(build("llama"), 3)
    texts.read([[5, 6, 7], [], [8]], 1)
    texts.read([[], [], [9]], 1)
    texts.read([[1], [2, 3, 4, 5, 6, 7, 8], []], 3)
    texts.take_back([100, 0, 100])
    texts.read([[9, 9], [], [4, 3, 2, 1]], 2)


def test_half_precision() -> None:
    """Masks of eager attention are in the model's own dtype."""
    for attention in ("sdpa", "eager"):
        model = build("llama", attention=attention).to(torch.bfloat16)
        runner = ModelRunner(model, 2)
        runner.read([[5, 6, 7, 8], [9]], 1)
        logits = runner.read([[1], [2, 3]], 1)[:, -1]
        assert logits.dtype == torch.bfloat16
        for row, text in enumerate(([5, 6, 7, 8, 1], [9, 2, 3])):
            whole = model(torch.tensor([text]), use_cache=False).logits[0, -1]
            assert (logits[row] - whole).abs().max() < 0.25


def test_a_shared_cache() -> None:
    """What two runners of a cache have read is each one's own affair."""
    model, cache = build("llama"), RaggedCache()
    one, two = ModelRunner(model, 1, cache=cache), ModelRunner(model, 1, cache=cache)
    one.read([[5, 6, 7]], 1)
    assert (one.lengths, two.lengths, one.passes, two.passes) == ([3], [0], 1, 0)
    two.lengths = [3]
    logits = two.read([[8, 9]], 2)
    whole = model(torch.tensor([[5, 6, 7, 8, 9]]), use_cache=False).logits[:, -2:]
    assert (logits - whole).abs().max() < 1e-3


def test_more_logits_than_tokens() -> None:
    runner = ModelRunner(build("llama"), 2)
    with pytest.raises(ValueError, match="3 logits of each row asked for, but none has more than 2 new tokens"):
        runner.read([[1, 2], [3]], 3)


# What cannot be read.

STATEFUL = r"{} has layers of the kind '[a-z_]+', whose state cannot be set back"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "mamba": ({"state_size": 4}, STATEFUL.format("MambaForCausalLM")),
    "qwen3_next": (EXPERTS, STATEFUL.format("Qwen3NextForCausalLM")),
    "lfm2": ({"layer_types": ["conv", "full_attention", "conv"]}, STATEFUL.format("Lfm2ForCausalLM")),
    "jamba": (EXPERTS, STATEFUL.format("JambaForCausalLM")),
    "rwkv": ({}, STATEFUL.format("RwkvForCausalLM")),
    "bloom": ({}, "BloomForCausalLM cannot be told at which positions it reads"),
    "mpt": ({"d_model": 32, "n_heads": 4, "n_layers": 2}, "MptForCausalLM cannot be told at which positions it reads"),
    "falcon with alibi": (
        {"alibi": True, "new_decoder_architecture": False, "head_dim": None},
        "FalconForCausalLM cannot be told at which positions it reads",
    ),
    "gpt_neo": (
        {"num_layers": 3, "num_heads": 4, "attention_types": [[["global", "local", "global"], 1]]},
        "GPTNeoForCausalLM does not read a batch of different lengths",
    ),
}


@pytest.mark.parametrize("family", REFUSED)
def test_refusals(family: str) -> None:
    options, message = REFUSED[family]
    with pytest.raises(UnsupportedFeature, match=message) as error:
        ModelRunner(build(family, **options), 1)
    assert error.value.hint


def test_encoder_decoder_models_are_refused() -> None:
    config = transformers.T5Config(vocab_size=WIDTH, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    with pytest.raises(UnsupportedFeature, match="T5ForConditionalGeneration is an encoder-decoder model"):
        ModelRunner(transformers.T5ForConditionalGeneration(config), 1)


@pytest.mark.parametrize("implementation", ["flash_attention_2", "flex_attention"])
def test_other_implementations_of_attention_are_refused(implementation: str) -> None:
    model = build("llama")
    model.config._attn_implementation = implementation
    with pytest.raises(UnsupportedFeature, match=f"LlamaForCausalLM with the attention .* '{implementation}'") as error:
        ModelRunner(model, 1)
    assert "sdpa" in error.value.hint


def test_context_length() -> None:
    lengths: Sequence[Callable[[], Any]] = (lambda: build("llama"), lambda: build("gpt2", **GPT2))
    assert [context_length(model()) for model in lengths] == [CONTEXT, CONTEXT]


def test_scaled_positions_are_read_as_far_as_they_are_not_scaled() -> None:
    """Beyond, they would depend on the longest row of the batch."""
    half = [1.0] * 4
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": half, "long_factor": [2.0] * 4}
    model = build("phi3", rope_parameters=rope, original_max_position_embeddings=24)
    assert context_length(model) == 24
    texts = Texts(model, 2)
    texts.read([range(3, 11), range(3, 27)], 2)
    assert context_length(build("llama")) == CONTEXT
