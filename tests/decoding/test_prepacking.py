"""Packed weights compute what plain ones do, and are unpacked where something else is to be done with them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import nn  # noqa: E402

from grammarspec.decoding import Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.prepacking import PackedLinear, prepack  # noqa: E402
from grammarspec.decoding.proposers import EarlyExit, Lookup  # noqa: E402
from tests.oracles.families import VOCABULARY, WIDTH, build  # noqa: E402

pytestmark = pytest.mark.usefixtures("inference")


def ids(rows: int = 2, count: int = 7) -> Any:
    return torch.randint(3, WIDTH, (rows, count), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("family", ["llama", "gemma3_text", "gpt_neox", "phi3"])
def test_logits_are_the_same(family: str) -> None:
    model = build(family)
    packed = copy.deepcopy(model)
    linears = [module for module in model.modules() if type(module) is nn.Linear]
    assert prepack(packed) == len(linears) > 5
    assert not any(type(module) is nn.Linear for module in packed.modules())
    for count in (1, 5, 7):
        expected, found = (each(ids(count=count)).logits for each in (model, packed))
        assert torch.allclose(expected, found, atol=1e-4)
    assert prepack(packed) == 0, "packed once"


@pytest.mark.parametrize("shape", [(192, 576), (576, 1536), (2000, 300)])
def test_rows_are_rounded_as_without_others_beside_them(shape: tuple[int, int]) -> None:
    packed = PackedLinear(nn.Linear(shape[1], shape[0]))
    rows = torch.randn(70, shape[1], generator=torch.Generator().manual_seed(0))
    alone = torch.cat([packed(row[None]) for row in rows])
    for count in (2, 3, 5, 9, 17, 70):
        assert torch.equal(packed(rows[:count]), alone[:count])


@pytest.mark.slow
def test_texts_are_the_same() -> None:
    model = build("llama")
    packed = copy.deepcopy(model)
    prepack(packed)
    texts = []
    for each in (model, packed):
        for proposers in ([], [Lookup()], [EarlyExit(each, 2)]):
            request = Request(prompt=[5, 6, 7, 5, 6], sampling=Sampling(max_tokens=20))
            [[text]] = generate_batch(each, [request], VOCABULARY, proposers=proposers, adaptive=False)
            texts.append(text.tokens)
    assert all(text == texts[0] for text in texts)


def test_a_layer_stays_a_layer() -> None:
    linear = nn.Linear(6, 4)
    packed = PackedLinear(linear)
    assert torch.equal(packed.weight, linear.weight)
    assert str(packed) == "PackedLinear(in_features=6, out_features=4, bias=True)"
    for shape in [(6,), (0, 6), (3, 6), (2, 3, 6)]:
        assert torch.allclose(packed(torch.ones(shape)), linear(torch.ones(shape)), atol=1e-6)
    wide = torch.randn(3, 12)[:, ::2]  # not contiguous
    assert torch.allclose(packed(wide), linear(wide), atol=1e-6)
    other = copy.deepcopy(packed)
    assert torch.equal(other.weight, packed.weight)
    assert other.bias is not packed.bias
    assert torch.equal(other(wide), packed(wide))
    other.weight = nn.Parameter(torch.zeros(4, 6))
    assert torch.equal(packed.weight, linear.weight)
    wider = nn.Linear(150, 3)  # more than what is unpacked at once
    assert torch.equal(PackedLinear(wider).weight, wider.weight)


@pytest.mark.parametrize("shape", [(), (7,), (1, 7), (2, 8), (1, 5), (6, 5)])
def test_inputs_of_another_width_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError):
        PackedLinear(nn.Linear(6, 4))(torch.ones(shape))


def test_weights_are_saved_in_plain_order() -> None:
    model = build("llama")
    state = {name: value.clone() for name, value in model.state_dict().items()}
    prepack(model)
    packed = model.state_dict()
    assert set(packed) == set(state)
    assert all(torch.equal(packed[name], value) for name, value in state.items())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_another_dtype_is_not_packed(dtype: Any) -> None:
    model = build("llama")
    expected = copy.deepcopy(model).to(dtype)(ids()).logits
    prepack(model)
    model.to(dtype)
    assert torch.allclose(model(ids()).logits, expected, atol=0.05)
    assert prepack(build("llama").to(dtype)) == 0
    model.to(torch.float32)
    assert model.lm_head._kept.is_mkldnn, "packed again"


def test_embeddings_can_be_resized() -> None:
    model = build("llama")
    expected = model(ids()).logits
    prepack(model)
    model.resize_token_embeddings(WIDTH + 8, mean_resizing=False)
    found = model(ids()).logits
    assert found.shape[-1] == WIDTH + 8
    assert torch.allclose(found[..., :WIDTH], expected, atol=1e-4)


def test_a_tied_model_can_be_tied_resized_and_saved(tmp_path: Path) -> None:
    model = build("llama", tie_word_embeddings=True)
    expected = model(ids()).logits
    prepack(model)
    model.tie_weights()
    assert torch.allclose(model(ids()).logits, expected, atol=1e-4)
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    assert torch.allclose(loaded(ids()).logits, expected, atol=1e-4)
    model.resize_token_embeddings(WIDTH + 8, mean_resizing=False)
    found = model(ids()).logits
    assert found.shape[-1] == WIDTH + 8
    assert torch.allclose(found[..., :WIDTH], expected, atol=1e-4)


def test_layers_of_other_kinds_stay() -> None:
    class Adapted(nn.Linear):
        pass

    model = build("llama")
    model.lm_head = Adapted(32, WIDTH, bias=False)
    prepack(model)
    assert type(model.lm_head) is Adapted


def test_a_torch_without_packed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    model = build("llama")
    assert prepack(model) == 0
    assert type(model.lm_head) is nn.Linear
