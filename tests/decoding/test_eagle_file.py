"""Files with heads of the EAGLE kind: what is written is read back, and what is no such file is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import grammarspec as gs  # noqa: E402
from grammarspec.decoding import Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.proposers import Eagle  # noqa: E402
from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.drafting import BYTES, END, WIDTH  # noqa: E402
from tests.oracles.families import build  # noqa: E402

pytestmark = pytest.mark.usefixtures("inference")

CONFIG = EagleConfig(hidden_size=32, intermediate_size=8, heads=4, kv_heads=2, head_dim=8)
TOKENS = torch.arange(60, 200)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a head."""
    torch.manual_seed(0)
    path = tmp_path / "head.safetensors"
    Eagle.save(path, EagleHead(CONFIG), TOKENS, {"texts": 3})
    return path


def test_saved_and_loaded(path: Path) -> None:
    torch.manual_seed(0)
    head, loaded = EagleHead(CONFIG), Eagle.load(path)
    assert loaded.tokens.tolist() == TOKENS.tolist() and loaded.head.config == CONFIG
    for name, weight in head.state_dict().items():
        assert torch.equal(loaded.head.state_dict()[name], weight.half().float()), name
    target = build("llama", vocab_size=WIDTH, bos_token_id=None, eos_token_id=END)
    eagle = Eagle.from_file(path, target)
    assert eagle.card == {"texts": 3}
    what = Request(prompt=b"a prompt", sampling=Sampling(max_tokens=20))
    [[text]] = generate_batch(target, [what], BYTES, proposers=[eagle], gamma=3)
    assert text.statistics.proposed["eagle"]


# ---------------------------------------------------------------------- files that are no head
Parts = tuple[dict[str, Any], dict[str, str]]


def parts_of(path: Path) -> Parts:
    """The tensors and the metadata of a file."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())  # noqa: SIM118


def tensor(name: str, value: Any) -> Callable[[Parts], None]:
    """Puts another tensor into a file; ``None`` takes one out."""

    def change(parts: Parts) -> None:
        parts[0].pop(name, None)
        if value is not None:
            parts[0][name] = value

    return change


def config(**values: Any) -> Callable[[Parts], None]:
    """Changes what the metadata tell of the head's shape; ``None`` takes an entry out."""

    def change(parts: Parts) -> None:
        told = json.loads(parts[1]["eagle"]) | values
        parts[1]["eagle"] = json.dumps({name: value for name, value in told.items() if value is not None})

    return change


def metadata(name: str, text: str) -> Callable[[Parts], None]:
    return lambda parts: parts[1].update({name: text})


HUGE = {"hidden_size": 1 << 20, "intermediate_size": 1 << 20, "heads": 1 << 20, "kv_heads": 1 << 20}
DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts[1].pop("eagle"), "its metadata tell of none"),
        (metadata("eagle", "{"), "eagle of its metadata is no JSON: Expecting property name"),
        (metadata("eagle", DEEP), "eagle of its metadata is no JSON: maximum recursion depth"),
        (metadata("eagle", "[1]"), "eagle of its metadata must be a JSON object"),
        (metadata("card", "nothing"), "card of its metadata is no JSON: Expecting value"),
        (metadata("card", "3"), "card of its metadata must be a JSON object"),
        (config(layers=2), "eagle of its metadata has the unknown entry 'layers'"),
        (config(heads=None), "eagle of its metadata lacks 'heads'"),
        (config(heads="4"), "heads must be a whole number, not '4'"),
        (config(heads=True), "heads must be a whole number, not True"),
        (config(heads=4.0), r"heads must be a whole number, not 4\.0"),
        (config(heads=0), "heads must be from 1 to 1048576, not 0"),
        (config(head_dim=1 << 62), "head_dim must be from 1 to 1048576, not 4611686018427387904"),
        (config(kv_heads=3), "heads must be a multiple of kv_heads, not 4 of 3"),
        (config(heads=8, head_dim=3), "head_dim must be even, not 3"),
        (config(theta=float("nan")), "theta must be above 0 and at most 1e\\+30, not nan"),
        (config(theta=10**400), "theta must be above 0 and at most 1e\\+30, not 1000"),
        (config(epsilon=float("inf")), "epsilon must be above 0 and at most 1, not inf"),
        (config(epsilon=[]), r"epsilon must be a number, not \[\]"),
        (config(**HUGE), r"has the shape .*, which should be .*1048576"),
        (config(intermediate_size=9), r"has the shape \[.*8.*\], which should be \[.*9.*\]"),
        (tensor("tokens", None), "it lacks the tensor 'tokens'"),
        (tensor("unknown", None), "it lacks the tensor 'unknown'"),
        (tensor("other.weight", torch.zeros(2)), r"it has the tensor 'other\.weight', which no such head has"),
        (tensor("unknown", torch.zeros(31)), r"unknown has the shape \[31\], which should be \[32\]"),
        (tensor("unknown", torch.zeros(())), r"unknown has the shape \[\], which should be \[32\]"),
        (tensor("unknown", torch.zeros(32, dtype=torch.int32)), "unknown has the dtype I32, which should be one of"),
        (tensor("unknown", torch.full((32,), torch.nan)), "unknown holds numbers that are not finite"),
        (tensor("tokens", torch.zeros(3)), "tokens has the dtype F32, which should be one of I32, I64"),
        (tensor("tokens", torch.zeros(2, 2, dtype=torch.int32)), r"tokens has the shape \[2, 2\]"),
        (tensor("tokens", torch.zeros(0, dtype=torch.int32)), r"tokens has the shape \[0\]"),
        (tensor("tokens", torch.tensor([3, -1])), "tokens holds a negative number, or the same one twice"),
        (tensor("tokens", torch.tensor([3, 3])), "tokens holds a negative number, or the same one twice"),
    ],
)
def test_odd_files(change: Callable[[Parts], None], message: str, path: Path) -> None:
    parts = parts_of(path)
    change(parts)
    tensors, told = parts
    save_file(tensors, path, told)
    with pytest.raises(gs.DraftMismatch, match=f"head.safetensors has no head of the EAGLE kind: .*{message}"):
        Eagle.load(path)


def test_what_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"no\.safetensors"):
        Eagle.load(tmp_path / "no.safetensors")
    with pytest.raises(gs.DraftMismatch, match="is no file of weights, as it is no regular file"):
        Eagle.load(tmp_path)
    (tmp_path / "text").write_bytes(b"nothing at all")
    with pytest.raises(gs.DraftMismatch, match=r"text is no file of weights: .*header too large"):
        Eagle.load(tmp_path / "text")


@pytest.mark.property
def test_damaged_files(path: Path) -> None:
    """Whatever is wrong with a file is told by the one error."""
    draw, whole = random.Random(tiers.seed(0)), path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    read = refused = 0
    for _ in range(tiers.draws(300)):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            damaged[draw.randrange(header)] = draw.choice([draw.randrange(256), *b'0123456789"{}[],:'])
        if draw.random() < 0.2:
            del damaged[draw.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        try:
            Eagle.load(path)
            read += 1
        except gs.DraftMismatch:
            refused += 1
    print(f"{read} read, {refused} refused")
    assert refused > read
