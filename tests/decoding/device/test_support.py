"""What the loop on the device takes and refuses, by name; when it is taken; constraints that come and go."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from grammarspec.decoding import Request, Sampling, generate, generate_batch, loop  # noqa: E402
from grammarspec.decoding.device import DeviceBatch  # noqa: E402
from grammarspec.decoding.device import shelf as shelf_module  # noqa: E402
from grammarspec.decoding.device.forced import forced_token  # noqa: E402
from grammarspec.decoding.device.shelf import Shelf  # noqa: E402
from grammarspec.decoding.proposers import EarlyExit, Forced, Lookup  # noqa: E402
from grammarspec.errors import LimitExceeded, UnsupportedFeature, UnsupportedModel  # noqa: E402
from tests.oracles.small_llama import small_llama  # noqa: E402

VOCABULARY = gs.Vocabulary.bytes()
WORDS = gs.compile(gs.regex("[a-z]{2,9}"), VOCABULARY)
NESTED = gs.compile(gs.json_schema({}), VOCABULARY)


@pytest.fixture(scope="module")
def model() -> Any:
    return small_llama(1)


def request(constraint: gs.Constraint = WORDS, **options: Any) -> Request:
    return Request(prompt=[1, 2], matcher=constraint.matcher(), sampling=Sampling(**({"max_tokens": 6} | options)))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"on_limit": "close", "max_tokens": 30}, "on_limit='close'"),
        ({"logprobs": True}, "logprobs=True"),
    ],
)
def test_options_are_refused_by_name(model: Any, options: dict[str, Any], name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=name) as caught:
        generate_batch(model, [request(), request(**options)], VOCABULARY, device_loop=True)
    assert caught.value.where == "requests[1]"


def test_other_things_are_refused_by_name(model: Any) -> None:
    with pytest.raises(UnsupportedFeature, match="forced='feed'"):
        generate_batch(model, [request()], VOCABULARY, device_loop=True, forced="feed")

    class Mine(Lookup):
        pass

    with pytest.raises(UnsupportedFeature, match="the proposer Mine"):
        generate_batch(model, [request()], VOCABULARY, proposers=[Mine()], device_loop=True)
    begun = request()
    assert begun.matcher is not None
    begun.matcher.accept_token(ord("a"))
    with pytest.raises(UnsupportedFeature, match="has accepted tokens"):
        generate_batch(model, [begun], VOCABULARY, device_loop=True)
    with pytest.raises(ValueError, match="made of only"):
        generate_batch(model, [request()], VOCABULARY, proposers=[EarlyExit(small_llama(2), 1)], device_loop=True)
    with pytest.raises(ValueError, match="device_loop must be"):
        generate_batch(model, [request()], VOCABULARY, device_loop="cuda")  # type: ignore[arg-type]

    class Target:
        width, context_length, device = 264, None, torch.device("cpu")

        def logits(self, texts: Any, counts: Any) -> Any:
            raise AssertionError

    with pytest.raises(UnsupportedModel, match="model of transformers"):
        generate_batch(Target(), [request()], VOCABULARY, device_loop=True)
    assert generate_batch(model, [], VOCABULARY, device_loop=True) == []


def test_on_the_cpu_it_has_to_be_asked_for(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = loop.DeviceBatch
    monkeypatch.setattr(loop, "DeviceBatch", lambda *args, **options: made.append(1) or real(*args, **options))
    texts = [
        generate(model, [1, 2], WORDS.matcher(), VOCABULARY, proposers=[Forced()], device_loop=where).tokens
        for where in ("auto", False, True)
    ]
    assert texts[0] == texts[1] == texts[2] and len(made) == 1


def test_where_it_refuses_the_host_takes_over(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``"auto"`` on a model that says it is on a CUDA device."""
    monkeypatch.setattr(loop, "on_cuda", lambda inner: True)
    [[text]] = generate_batch(model, [request(logprobs=True)], VOCABULARY)
    [[other]] = generate_batch(model, [request(logprobs=True)], VOCABULARY, device_loop=False)
    assert text.tokens == other.tokens and text.logprobs is not None


def test_without_room_the_host_takes_over(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf_module, "_shelves", WeakKeyDictionary())
    monkeypatch.setattr(shelf_module, "_LARGEST", dict(shelf_module._SIZES))
    monkeypatch.setattr(shelf_module, "STATES", 1 << 11)  # more mask rows than there are
    with pytest.raises(LimitExceeded, match="the arena is full"):
        generate_batch(model, [request(), request(NESTED)], VOCABULARY, device_loop=True)
    monkeypatch.setattr(loop, "on_cuda", lambda inner: True)
    [[text], _] = generate_batch(model, [request(NESTED), request()], VOCABULARY, device_loop="auto")
    [[other]] = generate_batch(model, [request(NESTED)], VOCABULARY, device_loop=False)
    assert text.tokens == other.tokens
    # What was lent before the room ran out was given back.
    [kept] = [
        kept for each in shelf_module._shelves[VOCABULARY].values() for kept in each._kept.values() if kept.frozen
    ]
    assert kept.place is None or not kept.place.users


def test_where_a_round_cannot_be_captured_the_host_takes_over(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that waits for the device, say: that is known when the first round is captured, and not before."""

    def launch(self: DeviceBatch, gamma: int | None) -> None:
        raise UnsupportedFeature("a CUDA graph of a pass of the model cannot be captured")

    monkeypatch.setattr(DeviceBatch, "_launch", launch)
    monkeypatch.setattr(loop, "on_cuda", lambda inner: True)
    [[text]] = generate_batch(model, [request()], VOCABULARY)
    [[other]] = generate_batch(model, [request()], VOCABULARY, device_loop=False)
    assert text.tokens == other.tokens
    with pytest.raises(UnsupportedFeature, match="cannot be captured"):
        generate_batch(model, [request()], VOCABULARY, device_loop=True)


def test_models_on_several_devices_are_left_to_the_host() -> None:
    def model(head: int | str) -> Any:
        return SimpleNamespace(device=torch.device("cuda"), hf_device_map={"model": 0, "lm_head": head})

    assert loop.on_cuda(model(0)) and not loop.on_cuda(model("cpu"))


@pytest.mark.slow
def test_a_compiled_model_writes_the_same(model: Any) -> None:
    compiled = torch.compile(model, backend="aot_eager")
    requests = [request(), request(gs.compile(gs.regex("(yes|no){3}"), VOCABULARY), temperature=1.0, seed=3)]
    fresh = [request(), request(gs.compile(gs.regex("(yes|no){3}"), VOCABULARY), temperature=1.0, seed=3)]
    expected = generate_batch(model, requests, VOCABULARY, device_loop=False)
    found = generate_batch(compiled, fresh, VOCABULARY, proposers=[Forced(), Lookup()], gamma=3, device_loop=True)
    assert [text.tokens for [text] in found] == [text.tokens for [text] in expected]


def test_the_arena_makes_room_and_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"grammars": 4, "states": 64, "transitions": 1 << 12, "rows": 64}
    monkeypatch.setattr(shelf_module, "_SIZES", sizes)
    monkeypatch.setattr(shelf_module, "_BYTES", 0)
    shelf = Shelf(VOCABULARY, 264, torch.device("cpu"), 256)
    first = [gs.compile(gs.regex(f"[a-z]{{{n}}}"), VOCABULARY) for n in (3, 4, 5)]
    held = shelf.lend(first[:1], VOCABULARY)
    before = held.tensors
    for constraint in first * 2:
        shelf.lend([constraint], VOCABULARY).give_back()
    assert shelf.lend(first[:1], VOCABULARY).tensors is before
    # More than there is room for, while one is held: a larger arena, and the old one stays as it is.
    many = [gs.compile(gs.regex(f"[a-z]{{{n}}}[0-9]"), VOCABULARY) for n in range(1, 12)]
    large = shelf.lend(many, VOCABULARY)
    assert large.tensors is not before and len(large.starts) == 11
    state = held.starts[id(first[0])]
    mask = before.pool[before.mask_row[state]]
    assert torch.equal(mask[:9], torch.from_numpy(first[0].freeze().mask(0).copy())[:9])
    gc.collect()


def test_idle_constraints_stay_while_the_arena_may_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"grammars": 4, "states": 64, "transitions": 1 << 12, "rows": 64}
    monkeypatch.setattr(shelf_module, "_SIZES", sizes)
    shelf = Shelf(VOCABULARY, 264, torch.device("cpu"), 256)
    many = [gs.compile(gs.regex(f"[a-z]{{{n}}}[0-9]"), VOCABULARY) for n in range(1, 12)]
    for constraint in 2 * many:
        loan = shelf.lend([constraint], VOCABULARY)
        loan.give_back()
    places = [kept.place for kept in shelf._kept.values()]
    for constraint in many:
        again = shelf.lend([constraint], VOCABULARY)
        again.give_back()
        assert again.tensors is loan.tensors
    assert None not in places and places == [kept.place for kept in shelf._kept.values()]


def test_windows_are_for_one_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf_module, "_KEPT", 2)
    monkeypatch.setattr(shelf_module, "STATES", 64)
    shelf = Shelf(VOCABULARY, 264, torch.device("cpu"), 256)
    empty = shelf._arena.free()
    one, two = (shelf.lend([NESTED, WORDS], VOCABULARY) for _ in range(2))
    first, second = one.windows[id(NESTED)], two.windows[id(NESTED)]
    assert first is not second and list(one.starts) == [id(WORDS)]
    two.give_back()
    assert shelf.lend([NESTED], VOCABULARY).windows[id(NESTED)] is second
    one.give_back()
    wide = shelf.lend([NESTED], VOCABULARY, rows=40)
    assert wide.windows[id(NESTED)].room.states == 80 and first.room.states == 64
    wide.give_back()
    # Constraints that were not lent for the longest time go, with their windows; one that is out goes when it is back.
    others = [gs.compile(gs.regex(f"[a-z]{{{n}}}"), VOCABULARY) for n in (3, 4)]
    loans = [shelf.lend([other], VOCABULARY) for other in others]
    assert id(NESTED) not in shelf._kept and first.room not in shelf._arena._rooms
    for loan in loans:
        loan.give_back()
    shelf._drop_old({})
    for kept in [*shelf._kept.values()]:
        shelf._remove(kept)
    assert shelf._arena.free()["rows"] == empty["rows"] - second.room.states


@pytest.mark.parametrize(
    ("pattern", "tokens", "text", "expected"),
    [
        ("yes", [b"y", b"ye", b"yes", b"e", b"s"], "", b"yes"),
        ("yes|yet", [b"y", b"ye", b"yes", b"yet", b"e", b"s", b"t"], "", b"ye"),
        ("a|b", [b"a", b"b"], "", None),
        ("ab?", [b"a", b"b", b"ab"], "", b"ab"),  # the row is that of "ab": that the text may end is not in it
        ("ab?", [b"a", b"b", b"ab"], "a", None),
        ("ab", [b"a", b"b", b"ab"], "ab", b"<end>"),
    ],
)
def test_forced_tokens(pattern: str, tokens: list[bytes], text: str, expected: bytes | None) -> None:
    vocabulary = gs.Vocabulary.from_tokens([*tokens, None], [len(tokens)])
    constraint = gs.compile(gs.regex(pattern), vocabulary)
    matcher = constraint.matcher()
    for letter in text:
        assert matcher.accept_token(tokens.index(letter.encode()))
    row = gs.allocate_bitmask(1, vocabulary.size)
    matcher.fill_bitmask(row)
    found = forced_token(row[0], vocabulary, len(tokens))
    assert (None if found < 0 else [*tokens, b"<end>"][found]) == expected
