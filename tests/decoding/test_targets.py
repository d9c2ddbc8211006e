"""Targets that are no usual models: without drafts where tokens cannot be taken back, compiled, or by the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.decoding import Request, Sampling, Target, generate_batch  # noqa: E402
from grammarspec.decoding.plain_runner import PlainRunner  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Forced, HeadProposer, Lookup  # noqa: E402
from grammarspec.decoding.proposers.head import ResidualHead  # noqa: E402
from grammarspec.decoding.targets import can_draft, runner_for, width_of  # noqa: E402
from tests.oracles.families import (  # noqa: E402
    EXPERTS,
    PROMPTS,
    VOCABULARY,
    WIDTH,
    build,
    by_generate,
    texts,
)

pytestmark = pytest.mark.usefixtures("inference")


# Models that cannot take tokens back, with what their configurations need besides.
LINEAR = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
}  # fmt: skip
MAMBA = {"mamba_n_heads": 8, "mamba_d_state": 4, "mamba_d_head": 8, "mamba_chunk_size": 4, "mamba_n_groups": 1}
PLAIN: dict[str, dict[str, Any]] = {
    "mamba": {"state_size": 4},
    "jamba": {**EXPERTS, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4},
    "bamba": {**MAMBA, "attn_layer_indices": [1]},
    "qwen3_next": {
        **EXPERTS, **LINEAR, "num_experts": 4, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    },
    "lfm2": {"layer_types": ["conv", "full_attention", "conv"]},
    "recurrent_gemma": {
        "lru_width": 32, "attention_window_size": 6, "block_types": ["recurrent", "attention", "recurrent"],
    },
    "rwkv": {},
    "bloom": {"n_layer": 3, "n_head": 4},
    "gpt_neo": {"num_layers": 3, "num_heads": 4, "attention_types": [[["global", "local", "global"], 1]]},
}  # fmt: skip


@pytest.mark.parametrize("family", PLAIN)
def test_models_that_cannot_take_tokens_back(family: str) -> None:
    """They are run without drafts, and write what ``generate`` writes; drafts that are asked for are an error."""
    model = build(family, **PLAIN[family])
    assert not can_draft(model)
    assert isinstance(runner_for(model, 1, drafts=False), PlainRunner)
    expected = by_generate(model, PROMPTS)
    assert texts(model, PROMPTS, []) == expected
    with pytest.raises(gs.UnsupportedModel, match=type(model).__name__) as error:
        texts(model, PROMPTS, [Lookup()])
    assert "without drafts" in error.value.hint


def test_samples_of_one_prompt_without_drafts() -> None:
    """The prompt is read once, and its state copied; a row that ends leaves the others as they are."""
    model = build("lfm2", **PLAIN["lfm2"])

    def request(n: int, sample: int | None = None) -> Request:
        return Request(prompt=PROMPTS[0], sampling=Sampling(temperature=1.0, seed=5, max_tokens=9), n=n)

    [together, other] = generate_batch(model, [request(3), Request(prompt=PROMPTS[1])], VOCABULARY)
    [again] = generate_batch(model, [request(3)], VOCABULARY)
    [[alone]] = generate_batch(model, [request(1)], VOCABULARY)
    assert [text.tokens for text in together] == [text.tokens for text in again]
    assert together[0].tokens == alone.tokens != together[1].tokens
    assert other[0].tokens == generate_batch(model, [Request(prompt=PROMPTS[1])], VOCABULARY)[0][0].tokens


def test_models_without_any_cache_are_refused() -> None:
    model = build("bloom", **PLAIN["bloom"])
    model.forward = lambda input_ids: None
    with pytest.raises(gs.UnsupportedModel, match="BloomForCausalLM hands out no cache"):
        PlainRunner(model, 1)


@pytest.mark.slow
def test_compiled_models() -> None:
    model = build("mistral", sliding_window=6)
    compiled = torch.compile(model, backend="eager")
    expected = by_generate(model, PROMPTS)
    for proposers in ([], [Lookup(), DraftModel(build("llama"))], [EarlyExit(compiled, 1)]):
        assert texts(compiled, PROMPTS, proposers) == expected


class Own:
    """A target by the protocol: here, by passes of a model over the whole texts."""

    width, context_length, device = WIDTH, 128, torch.device("cpu")

    def __init__(self, model: Any) -> None:
        self.model = model
        self.rows: list[int] = []

    def logits(self, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> list[torch.Tensor]:
        self.rows.append(len(texts))
        return [
            self.model(torch.tensor([text]), use_cache=False).logits[0, -count:]
            for text, count in zip(texts, counts, strict=True)
        ]


def test_targets_by_the_protocol() -> None:
    """As targets and as draft models, alone and in ragged batches."""
    model, small = build("llama"), Own(build("qwen2"))
    own: Target = Own(model)
    expected = by_generate(model, PROMPTS)
    assert texts(own, PROMPTS, []) == expected
    assert texts(own, PROMPTS, [Lookup(), DraftModel(small)]) == expected
    assert texts(model, PROMPTS, [DraftModel(small)]) == expected
    assert small.rows
    [samples] = generate_batch(own, [Request(prompt=PROMPTS[0], sampling=Sampling(max_tokens=4), n=2)], VOCABULARY)
    assert [sample.tokens for sample in samples] == [expected[0][:4]] * 2
    matcher = gs.compile(gs.regex("ABC[0-9]{3}"), VOCABULARY).matcher()
    [[text]] = generate_batch(own, [Request(prompt=PROMPTS[1], matcher=matcher)], VOCABULARY, proposers=[Forced()])
    assert (text.text[:3], text.statistics.target_passes < 7) == ("ABC", True)


def test_what_is_no_target() -> None:
    class Half:
        width, device = 8, torch.device("cpu")

    with pytest.raises(TypeError, match=r"Half is no target: it has no context_length, logits\n  hint: .*Target"):
        texts(Half(), PROMPTS, [])
    with pytest.raises(TypeError, match="str is no target: it has no width, context_length, device, logits"):
        DraftModel("gpt2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="EarlyExit takes a model of transformers, not Own"):
        EarlyExit(Own(None), 1)  # type: ignore[arg-type]
    model = build("llama")
    with pytest.raises(gs.UnsupportedModel, match="Own has no hidden states"):
        texts(Own(model), PROMPTS, [HeadProposer(ResidualHead(model, 8))])


def test_logits_of_the_wrong_shape_are_refused() -> None:
    class Wrong(Own):
        def logits(self, texts: Sequence[Sequence[int]], counts: Sequence[int]) -> list[torch.Tensor]:
            return [torch.zeros(count, self.width - 1) for count in counts]

    with pytest.raises(ValueError, match=r"logits of the shapes \[\(1, 63\)\], where it should be \[\(1, 64\)\]"):
        texts(Wrong(None), PROMPTS[:1], [])
    for width in (WIDTH - 3, WIDTH + 3):
        model = build("llama")
        model.lm_head = torch.nn.Linear(32, width, bias=False)
        assert width_of(model) == WIDTH
        with pytest.raises(ValueError, match=f"the model returns {width} logits, its configuration says {WIDTH}"):
            texts(model, PROMPTS, [])
