"""Every token's bytes against what the tokenizer itself makes of the token, on real tokenizers."""

from __future__ import annotations

import base64
import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grammarspec
from grammarspec import UnsupportedFeature, Vocabulary
from grammarspec.vocabulary import end_token_ids
from tests.data import package_file

TEXT = """{"name": "Zoë", "tags": ["a b", "c\\td"], "π": 3.14159, "emoji": "👩‍👩‍👧 🇫🇷", "n": -1.5e-10}
\tdef f(x):\n\t\treturn x  # 漢字かな交じり文, Привет, مرحبا, नमस्ते\r\n\r\n        indented    by\u00a0eight\u3000
SELECT * FROM t WHERE a <= 'it''s' AND b != 0xFF; \x00\x01\x7f ÿ \ufeff \U0010ffff <|im_end|> <0x0A> ▁ Ġ Ċ
"""


@pytest.fixture(scope="module")
def qwen() -> Any:
    """Qwen's vocabulary (151,643 tokens of text) as a tiktoken encoding."""
    tiktoken = pytest.importorskip("tiktoken")
    lines = package_file("dashscope", "resources/qwen.tiktoken").read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{number}|>" for number in range(205))]
    return tiktoken.Encoding(
        "qwen",
        pat_str=r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+",
        mergeable_ranks=ranks,
        special_tokens={token: len(ranks) + position for position, token in enumerate(special)},
    )


def is_no_text(text: bytes) -> bool:
    """It has a byte that UTF-8 never has, and that marks are made of."""
    return any(byte > 0xF4 for byte in text)


def check_fast(tokenizer: Any, vocabulary: Vocabulary, added: set[int]) -> None:
    """A fast tokenizer decodes what is UTF-8 by itself; for the rest there is transformers' own byte-level alphabet."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    alphabet = {character: value for value, character in bytes_to_unicode().items()}
    assert vocabulary.size == len(tokenizer)
    whole = 0
    for token in range(vocabulary.size):
        text = vocabulary.token_bytes(token)
        bytes_of = bytes(
            alphabet[character] for character in tokenizer.convert_ids_to_tokens(token) if token not in added
        )
        if token in added or is_no_text(bytes_of):
            assert text is None
            continue
        assert text
        own = tokenizer.backend_tokenizer.decode([token], skip_special_tokens=False)
        assert own == text.decode(errors="replace")
        assert bytes_of == text
        whole += "\ufffd" not in own
    assert whole > 0.95 * vocabulary.size
    tokens = tokenizer.encode(TEXT * 3, add_special_tokens=False, split_special_tokens=True)
    assert vocabulary.decode(tokens).decode() == TEXT * 3


def test_smollm2(smollm2_tokenizer: Any) -> None:
    vocabulary = Vocabulary.from_tokenizer(smollm2_tokenizer)
    assert vocabulary.size == 49_152
    assert vocabulary.eos_token_ids == [2]
    assert vocabulary.special_tokens["<|im_end|>"] == 2
    check_fast(smollm2_tokenizer, vocabulary, set(range(17)))


def test_llama3(llama3_directory: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    vocabulary = Vocabulary.from_pretrained(llama3_directory)
    assert vocabulary.size == 128_256
    assert vocabulary.eos_token_ids == [128_009]
    assert vocabulary.special_tokens["<|python_tag|>"] == 128_010
    tokenizer = PreTrainedTokenizerFast.from_pretrained(llama3_directory)
    check_fast(tokenizer, vocabulary, set(range(128_000, 128_256)))


def test_qwen(qwen: Any) -> None:
    vocabulary = Vocabulary.from_tokenizer(qwen, eos_token_ids=[151_645, 151_643], size=151_936)
    assert vocabulary.size == 151_936
    assert vocabulary.eos_token_ids == [151_643, 151_645]
    for token in range(151_643):
        text = qwen.decode_single_token_bytes(token)
        assert vocabulary.token_bytes(token) == (None if is_no_text(text) else text)
    assert all(vocabulary.token_bytes(token) is None for token in range(151_643, 151_936))
    assert vocabulary.decode(qwen.encode_ordinary(TEXT * 3)).decode() == TEXT * 3
    assert end_token_ids(qwen) == [151_643]
    assert vocabulary.special_tokens["<|im_start|>"] == 151_644


def test_tekken(tekken: Any) -> None:
    vocabulary = Vocabulary.from_tokenizer(tekken)
    assert vocabulary.size == 131_072
    assert vocabulary.eos_token_ids == [2]
    assert vocabulary.special_tokens["[TOOL_CALLS]"] == 9
    for token in range(131_072):
        text = b"" if token < 1000 else tekken.id_to_byte_piece(token)
        assert vocabulary.token_bytes(token) == (None if token < 1000 or is_no_text(text) else text)
    assert vocabulary.decode(tekken.encode(TEXT * 3, bos=True, eos=True)).decode() == TEXT * 3


def test_sentencepiece() -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = package_file("mistral_common", "data/tokenizer.model.v1")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    vocabulary = Vocabulary.from_tokenizer(processor)
    assert vocabulary.size == 32_000
    assert vocabulary.eos_token_ids == [2]
    assert [vocabulary.token_bytes(token) for token in range(3)] == [None, None, None]
    assert vocabulary.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert [vocabulary.token_bytes(3 + value) for value in range(245)] == [bytes([value]) for value in range(245)]
    assert all(vocabulary.token_bytes(3 + value) is None for value in range(245, 256))
    # The tokenizer puts a blank before a text, which its own decoder takes away again, and cannot tell U+2581 from one.
    text = TEXT.replace("\u2581", "")
    assert vocabulary.decode(processor.encode(text)).decode() == " " + text
    a = processor.piece_to_id("a")
    for token in range(259, 32_000):
        text = vocabulary.token_bytes(token)
        assert text
        assert "a" + text.decode() == processor.decode([a, token])


def byte_fallback_tokenizer() -> Any:
    """A fast tokenizer of the kind that Llama 2 has, over a handful of pieces."""
    from tokenizers import Tokenizer, decoders, models

    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{value:02X}>" for value in range(256)), "▁", "a", "b", "▁a", "é", "<0x0>"]
    model = models.BPE({piece: token for token, piece in enumerate(pieces)}, [("▁", "a")], byte_fallback=True)
    backend = Tokenizer(model)
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.add_special_tokens(["<unk>", "<s>", "</s>"])
    backend.add_tokens(["bb", "  "])
    return backend


def test_byte_fallback() -> None:
    pytest.importorskip("tokenizers")
    backend = byte_fallback_tokenizer()
    vocabulary = Vocabulary.from_tokenizer(backend, eos_token_ids=2)
    assert [vocabulary.token_bytes(token) for token in range(3)] == [None, None, None]
    assert vocabulary.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2, "bb": 265, "  ": 266}
    assert [vocabulary.token_bytes(3 + value) for value in range(245)] == [bytes([value]) for value in range(245)]
    rest = [vocabulary.token_bytes(token) for token in range(259, vocabulary.size)]
    assert rest == [b" ", b"a", b"b", b" a", "é".encode(), b"<0x0>", None, None]
    a = backend.token_to_id("a")
    for token in range(259, 265):
        assert backend.decode([a, token]).encode() == b"a" + (vocabulary.token_bytes(token) or b"")


def test_metaspace() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    backend = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), ("▁x", -1.0), ("y▁", -1.0)], unk_id=0))
    backend.decoder = tokenizers.decoders.Metaspace()
    backend.add_special_tokens(["<unk>", "</s>"])
    vocabulary = Vocabulary.from_tokenizer(backend, eos_token_ids=3)
    assert [vocabulary.token_bytes(token) for token in range(4)] == [None, b" x", b"y ", None]


def unsayable() -> Iterator[Any]:
    from tokenizers import decoders as d

    yield d.WordPiece()
    yield d.BPEDecoder()
    yield d.CTC()
    yield d.Sequence([d.Strip(" ", 1, 0), d.ByteFallback(), d.Fuse()])
    yield d.Sequence([d.Fuse(), d.Replace("ab", "c")])
    yield None


def test_decoders_that_cannot_be_said_token_by_token() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    for decoder in unsayable():
        backend = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
        if decoder is not None:
            backend.decoder = decoder
        with pytest.raises(UnsupportedFeature, match="decode"):
            Vocabulary.from_tokenizer(backend, eos_token_ids=1)


def test_unknown_kind_of_tokenizer() -> None:
    with pytest.raises(UnsupportedFeature, match=r"builtins\.dict"):
        Vocabulary.from_tokenizer({}, eos_token_ids=0)


@pytest.mark.parametrize(
    ("template", "ends"),
    [
        (None, [2]),
        ("{% for m in messages %}<s>{{ m.role }}: {{ m.content }}<turn>\n{% endfor %}", [2, 3]),
        ("{% for m in messages %}{{ m.content }} {{ eos_token }}{% endfor %}", [2]),
        ("{% for m in messages %}{{ m.content }}\n{% endfor %}", [2]),
        ("{% for m in messages %}<START>{{ m.content }}<END><turn>{% endfor %}", [2, 3]),
        ("{% for m in messages %}<b>{{ m.content }}</b>\n<turn>\n{% endfor %}", [2, 3]),
        ("{% for m in messages %}{{ m.content }}<END>{% endfor %}", [2, 6]),
        ("{% for m in messages %}{{ m.content }}<turn>message</s>{% endfor %}", [2]),
        ("{% for m in messages %}{{ m.content }} done<turn>{% endfor %}", [2]),
        ("{{ raise_exception('no') }}", [2]),
    ],
)
def test_end_of_turn(template: str | None, ends: list[int]) -> None:
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models

    backend = Tokenizer(models.BPE({"a": 0, "<s>": 1}, []))
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<s>", "</s>", "<turn>", "<turn", "<START>", "<END>", "<b>", "</b>"])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")
    tokenizer.chat_template = template
    assert end_token_ids(tokenizer) == ends


def test_directory_with_generation_config(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models

    backend = Tokenizer(models.BPE({"a": 0, "Ġ": 1, "Ġa": 2}, [("Ġ", "a")]))
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<end>", "<stop>"])
    backend.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match="eos_token_ids"):
        Vocabulary.from_pretrained(tmp_path)
    assert Vocabulary.from_pretrained(tmp_path, eos_token_ids=4).eos_token_ids == [4]
    (tmp_path / "config.json").write_text('{"model_type": "llama", "eos_token_id": 3}')
    assert Vocabulary.from_pretrained(tmp_path).eos_token_ids == [3]
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [4, 3]}')
    vocabulary = Vocabulary.from_pretrained(tmp_path, size=8)
    assert vocabulary.eos_token_ids == [3, 4]
    assert [vocabulary.token_bytes(token) for token in range(8)] == [b"a", b" ", b" a", None, None, None, None, None]


def test_missing_gguf(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(FileNotFoundError, match=r"none\.gguf"):
        Vocabulary.from_pretrained(tmp_path / "none.gguf")


def test_plain_bytes() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"", None, b"bc"], [5, 1, 5])
    assert len(vocabulary) == vocabulary.size == 6
    assert vocabulary.eos_token_ids == [1, 5]
    assert [vocabulary.token_bytes(token) for token in range(6)] == [b"a", None, None, b"bc", None, None]
    assert vocabulary.decode([3, 5, 0]) == b"bca"
    assert repr(vocabulary) == "Vocabulary(size=6, eos_token_ids=[1, 5])"


def test_an_end_token_is_no_text() -> None:
    assert Vocabulary.from_tokens([b"a", b"b"], [1]).token_bytes(1) is None


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_sizes(size: int) -> None:
    vocabulary = Vocabulary.from_tokens([None, b"a", b"b"], [0, 3], size=size)
    assert vocabulary.size == size
    assert vocabulary.eos_token_ids == ([0, 3] if size > 3 else [0])
    assert [vocabulary.token_bytes(token) for token in range(size)] == [None, b"a", b"b", None, None, None, None][:size]


def test_refused_tokens() -> None:
    with pytest.raises(ValueError, match="no end-of-text token"):
        Vocabulary.from_tokens([b"a"], [])
    with pytest.raises(ValueError, match="no end-of-text token"):
        Vocabulary.from_tokens([b"a"], [3], size=3)
    with pytest.raises(ValueError, match="at most"):
        Vocabulary.from_tokens([b"a"], [2**31])
    with pytest.raises(ValueError, match="negative"):
        Vocabulary.from_tokens([b"a"], [-1])
    with pytest.raises(TypeError, match="token 1 must be bytes or None, not str"):
        Vocabulary.from_tokens([b"a", "b"], [0])  # type: ignore[list-item]


def test_bytes() -> None:
    vocabulary = Vocabulary.bytes()
    assert vocabulary.size == 257
    assert vocabulary.eos_token_ids == [256]
    assert vocabulary.decode(range(257)) == bytes(range(256))


def test_without_caches() -> None:
    vocabulary = Vocabulary.bytes()
    cold = vocabulary.without_caches()
    assert cold.index is not vocabulary.index
    assert cold.size == vocabulary.size
    assert cold.eos_token_ids == vocabulary.eos_token_ids


def test_pickles(smollm2_tokenizer: Any) -> None:
    for vocabulary in (
        Vocabulary.bytes(),
        Vocabulary.from_tokens([b"a", None, b"", b"bc"], [1], special_tokens={"<x>": 2, "<end>": 1, "<y>": 9}, size=12),
        Vocabulary.from_tokenizer(smollm2_tokenizer),
    ):
        again = pickle.loads(pickle.dumps(vocabulary))
        assert repr(again) == repr(vocabulary)
        assert again.special_tokens == vocabulary.special_tokens
        every = range(vocabulary.size)
        assert [again.token_bytes(token) for token in every] == [vocabulary.token_bytes(token) for token in every]
        assert again.marked(every) == vocabulary.marked(every)
        assert again.spell(b"abc a") == vocabulary.spell(b"abc a") if vocabulary.size > 12 else True
        special = grammarspec.special("<x>") if "<x>" in vocabulary.special_tokens else grammarspec.literal("bc")
        constraint = grammarspec.compile("a" + special, again)
        assert constraint.is_for(vocabulary.index)


def test_automata_cannot_be_pickled() -> None:
    constraint = grammarspec.compile(grammarspec.literal("a"), Vocabulary.bytes())
    for value, name in ((constraint, "Constraint"), (constraint.matcher(), "Matcher")):
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"a {name} cannot be pickled or copied\n  hint: pickle the gs.Grammar"):
                copied(value)
    assert re.fullmatch(r"<Constraint: \d+ states, 0 masks, \d+ bytes>", repr(constraint))
