"""Files of frozen constraints: what is written is read, and what is damaged is refused."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import grammarspec as gs
from grammarspec.errors import GrammarError
from tests import tiers

BYTES = gs.Vocabulary.bytes()
OTHER = gs.Vocabulary.from_tokens([bytes([255 - value]) for value in range(256)], [256])
Parts = tuple[dict[str, Any], dict[str, str]]


@pytest.fixture(scope="module")
def frozen() -> gs.FrozenConstraint:
    schema = {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "type": "object"}
    return gs.compile(gs.json_schema(schema, additional_properties=False), BYTES).freeze()


def parts(frozen: gs.FrozenConstraint) -> Parts:
    """What a file holds: arrays, which may be changed, and what it says of them."""
    said = {"format": "grammarspec.frozen", "version": "1"}
    said |= {"terminated": str(frozen.terminated), "vocabulary": frozen.vocabulary}
    return {name: array.copy() for name, array in frozen.arrays().items()}, said


def test_what_is_saved_is_loaded(frozen: gs.FrozenConstraint, tmp_path: Path) -> None:
    path = tmp_path / "frozen.safetensors"
    frozen.save(path)
    again = gs.FrozenConstraint.load(path, BYTES)
    for name, array in frozen.arrays().items():
        read = again.arrays()[name]
        assert read.dtype == array.dtype and np.array_equal(read, array) and not read.flags.writeable
    assert (again.terminated, again.vocabulary) == (frozen.terminated, frozen.vocabulary)
    with pytest.raises(GrammarError, match=r"another vocabulary(.|\n)*frozen\.safetensors"):
        gs.FrozenConstraint.load(path, OTHER)


def _set(name: str, place: Any, value: Any) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        parts[0][name][place] = value

    return change


def _replace(name: str, made: Callable[[Any], Any]) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        parts[0][name] = made(parts[0][name])

    return change


def _say(name: str, value: str) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        parts[1][name] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set("class_of", 5, 30_000), "class_of has numbers from 0 to 30000"),
        (_set("class_of", 5, -1), "class_of has numbers from -1"),
        (_set("next", (1, 0), 1_000_000), "next has numbers from -1 to 1000000"),
        (_set("next", (1, 0), -2), "next has numbers from -2"),
        (_set("mask_row", 3, 1_000), "mask_row has numbers from 0 to 1000"),
        (_set("mask_row", 3, -1), "mask_row has numbers from -1"),
        (_set("pool", (0, 0), -1), "mask row 0 is not of the tokens"),
        (_set("pool", (0, -1), -2), "mask row 0 is not of the tokens"),
        (_set("mask_row", slice(None), 0), "states of one mask row"),
        (_replace("class_of", lambda array: array.astype(np.int32)), "class_of is I32 of 1 dimensions"),
        (_replace("class_of", lambda array: array[:-40]), "pool has the shape"),
        (_replace("next", lambda array: array[:-1]), "mask_row has the shape"),
        (_replace("next", lambda array: array[:, :-1].copy()), "class_of has numbers"),
        (_replace("next", lambda array: array.reshape(-1)), "next is I32 of 1 dimensions"),
        (_replace("next", lambda array: array[:0]), "no states"),
        (_replace("pool", lambda array: array[:0]), "mask_row has numbers"),
        (_replace("accepting", lambda array: array[1:]), "accepting has the shape"),
        (lambda parts: parts[0].pop("accepting"), "no array accepting"),
        (_say("terminated", "100000"), "the terminated state is '100000'"),
        (_say("terminated", "-2"), "the terminated state is '-2'"),
        (_say("terminated", "last"), "the terminated state is 'last'"),
        (_say("version", "2"), "version '2', not '1'"),
        (_say("format", "pt"), "holds no frozen constraint"),
    ],
)
def test_damaged_files(change: Callable[[Parts], Any], said: str, frozen: gs.FrozenConstraint, tmp_path: Path) -> None:
    path = tmp_path / "frozen.safetensors"
    held = parts(frozen)
    change(held)
    save_file(held[0], path, metadata=held[1])
    with pytest.raises(GrammarError, match=said) as raised:
        gs.FrozenConstraint.load(path)
    assert raised.value.where == str(path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no such format at all",
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 80) + json.dumps({"next": {"dtype": "I32", "shape": [9], "data_offsets": [0, 36]}}).encode(),
    ],
)
def test_files_of_another_kind(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "frozen.safetensors"
    path.write_bytes(data)
    with pytest.raises(GrammarError):
        gs.FrozenConstraint.load(path)


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "U64"])
def test_dtypes_that_numpy_may_not_know(dtype: str, tmp_path: Path) -> None:
    said = {"__metadata__": {"format": "grammarspec.frozen", "version": "1"}}
    size = {"BF16": 2, "F8_E4M3": 1, "U64": 8}[dtype]
    arrays = {"class_of": {"dtype": dtype, "shape": [4], "data_offsets": [0, 4 * size]}}
    header = json.dumps(said | arrays).encode()
    path = tmp_path / "frozen.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 * size))
    with pytest.raises(GrammarError, match=f"class_of is {dtype} of 1 dimensions, not I16"):
        gs.FrozenConstraint.load(path)


def test_files_that_are_not_there(tmp_path: Path, frozen: gs.FrozenConstraint) -> None:
    with pytest.raises(OSError, match="none"):
        gs.FrozenConstraint.load(tmp_path / "none.safetensors")
    with pytest.raises(OSError, match="nowhere"):
        frozen.save(tmp_path / "nowhere" / "frozen.safetensors")


@pytest.mark.property
def test_changed_bytes_never_lead_out_of_an_array(frozen: gs.FrozenConstraint, tmp_path: Path) -> None:
    """Whatever is changed, a file is refused, or its steps and masks stay within the arrays and agree."""
    path = tmp_path / "frozen.safetensors"
    frozen.save(path)
    data, rng, refused = path.read_bytes(), random.Random(tiers.seed(0)), 0
    for _ in range(tiers.draws(1000)):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            # many in the part that says what the file holds
            changed[rng.randrange(600 if rng.random() < 0.3 else len(data))] = rng.randrange(256)
        path.write_bytes(changed)
        try:
            read = gs.FrozenConstraint.load(path)
        except GrammarError:
            refused += 1
            continue
        state = read.start
        for _ in range(20):
            token = rng.randrange(read.vocab_size)
            there = read.step(state, token)
            assert (there is not None) == bool(read.mask(state)[token // 32] >> token % 32 & 1)
            state = read.start if there is None else there
    assert refused > tiers.draws(1000) // 4
