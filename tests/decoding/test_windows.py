"""Models with sliding windows, as subclasses and within others: their greedy texts are those of ``generate``."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.decoding.model_runner import ModelRunner  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Lookup, Proposer  # noqa: E402
from grammarspec.decoding.windows import attention_windows  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.families import PROMPTS, WIDTH, build, by_generate, random_model, texts  # noqa: E402

pytestmark = pytest.mark.usefixtures("inference")

WINDOW = 6


class Subclass(transformers.MistralForCausalLM):
    """A model of a user's own, in a module that knows nothing of windows."""


class Decoder(transformers.MistralModel):
    """Its decoder, with a pass of its own."""

    def forward(self, *args: Any, **options: Any) -> Any:
        return super().forward(*args, **options)


class SubclassOfBoth(transformers.MistralForCausalLM):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.model = Decoder(config)
        self.post_init()


class SubclassOfGemma(transformers.Gemma3ForCausalLM):
    pass


class Adapter(torch.nn.Module):
    """The structure of PEFT's models: a model in a tuner, whose attributes are looked up from the inside out."""

    def __init__(self, model: Any, *, prompt_learning: bool = False) -> None:
        super().__init__()
        self.base_model = Tuner(model)
        self.active_peft_config = SimpleNamespace(is_prompt_learning=prompt_learning)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.base_model, name)

    def get_base_model(self) -> Any:
        return self.base_model.model

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.base_model(*args, **options)


class Tuner(torch.nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(name) if name == "model" else getattr(self.model, name)

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.model(*args, **options)


def with_images(kind: str, text: str, **options: Any) -> Any:
    """A model for images and texts, whose text decoder has windows; it is given texts only."""
    decoder = build(text, sliding_window=WINDOW, **options).config
    vision: dict[str, Any] = {
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "image_size": 8, "patch_size": 4, "head_dim": 8,
    }  # fmt: skip
    config = transformers.AutoConfig.for_model(kind, text_config=decoder, vision_config=None)
    for name, value in vision.items():
        setattr(config.vision_config, name, value)
    config.image_token_index = config.image_token_id = WIDTH - 1
    return random_model(transformers.AutoModelForImageTextToText, config)


GEMMA = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
MODELS: dict[str, Callable[[], Any]] = {
    "Mistral": lambda: build("mistral", sliding_window=WINDOW),
    "a subclass": lambda: random_model(Subclass, build("mistral", sliding_window=WINDOW).config),
    "a subclass with its own decoder": lambda: random_model(
        SubclassOfBoth, build("mistral", sliding_window=WINDOW).config
    ),
    "a subclass of Gemma": lambda: random_model(
        SubclassOfGemma, build("gemma3_text", sliding_window=WINDOW, **GEMMA).config
    ),
    "within PEFT": lambda: Adapter(build("mistral", sliding_window=WINDOW)),
    "within PEFT, several kinds": lambda: Adapter(build("gemma2", sliding_window=WINDOW)),
    "LLaVA": lambda: with_images("llava", "mistral"),
    "Mistral 3": lambda: with_images("mistral3", "mistral"),
    "Gemma 3": lambda: with_images("gemma3", "gemma3_text", **GEMMA),
    "Gemma 3 within PEFT": lambda: Adapter(with_images("gemma3", "gemma3_text", **GEMMA)),
}


@pytest.mark.combined
@pytest.mark.parametrize("drafted", ["nothing", "text and a model", "early exit"])
@pytest.mark.parametrize("name", MODELS)
def test_texts_are_those_of_generate(name: str, drafted: str) -> None:
    model = MODELS[name]()
    expected = by_generate(model, PROMPTS)
    assert any(len(text) > 2 * WINDOW for text in expected)
    runner = ModelRunner(model, 1)
    assert runner._windows["sliding_attention"] == WINDOW
    proposers: dict[str, list[Proposer]] = {
        "nothing": [],
        "text and a model": [Lookup(), DraftModel(build("llama"))],
        "early exit": [EarlyExit(model, 1)],
    }
    assert texts(model, PROMPTS, proposers[drafted]) == expected
    for prompt, text in tiers.some([*zip(PROMPTS, expected, strict=True)]):
        assert texts(model, [prompt], proposers[drafted]) == [text]


def test_windows_decide_these_texts() -> None:
    """Without its window, a model says something else: the tests above would see it."""
    narrow, wide = (build("mistral", sliding_window=size) for size in (WINDOW, None))
    assert by_generate(narrow, PROMPTS) != by_generate(wide, PROMPTS)


def test_windows_that_the_code_does_not_know_are_refused() -> None:
    """Configurations of converted models may name a window. Transformers' cache has it then, but no mask has."""
    for model in (build("llama", sliding_window=WINDOW), Adapter(build("llama", sliding_window=WINDOW))):
        with pytest.raises(gs.UnsupportedModel, match=r"LlamaModel names a window \(sliding_window=6\), but") as error:
            ModelRunner(model, 1)
        assert "sliding_window = None" in error.value.hint
    model.config.sliding_window = None
    assert ModelRunner(model, 1)._windows == {"full_attention": 0}


def test_configurations_of_other_parts_decide_nothing() -> None:
    """A model that holds a decoder may have a configuration of its own beside the decoder's."""
    model = with_images("llava", "mistral")
    model.config.text_config = build("mistral", sliding_window=None).config
    assert attention_windows(model) == {"sliding_attention": WINDOW}


def test_kinds_without_a_size_are_refused() -> None:
    model = build("gemma2", sliding_window=WINDOW)
    model.config.sliding_window = None
    with pytest.raises(gs.UnsupportedModel, match="'sliding_attention', and for them none of sliding_window"):
        attention_windows(model)


def test_windows_of_different_sizes_are_refused() -> None:
    model = build("mistral", sliding_window=WINDOW)
    model.config.per_layer_config = {0: {"sliding_window": 3}}
    with pytest.raises(gs.UnsupportedModel, match="'sliding_attention', and for them several of sliding_window"):
        attention_windows(model)


def test_adapters_with_tokens_of_their_own_are_refused() -> None:
    with pytest.raises(gs.UnsupportedModel, match="SimpleNamespace puts tokens of its own before the prompt"):
        texts(Adapter(build("mistral"), prompt_learning=True), PROMPTS, [])
