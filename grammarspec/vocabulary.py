"""Vocabularies: what every token of a model says, as bytes.

A token's text is taken from the tokenizer's own decoder, step by step, and a decoder that cannot be said token by
token is refused. Special and added tokens are never text, not even those that a tokenizer registers for ordinary
text (runs of spaces, say): what they spell stays spellable by other tokens. Grammars say them by name
(:func:`grammarspec.special`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from grammarspec._compiler import VocabularyIndex
from grammarspec.errors import UnsupportedTokenizer
from grammarspec.grammars import marks

__all__ = ["Vocabulary", "end_token_ids"]

_Text: TypeAlias = bytes  # a name for annotations inside the class, where `bytes` is the constructor

_MAX_SIZE: Final = 1 << 22  # far above any model's, and what is allocated for it stays far below a gigabyte


class Vocabulary:
    """The tokens of a model and the index over them that all its constraints share.

    Building the index takes about a second for 128,000 tokens: make one vocabulary per model and keep it.
    Decoding with a prompt before it is assumed: a sentencepiece token such as ``▁Hello`` says ``" Hello"``, also
    where the tokenizer would strip the blank at the very start of a text.

    Attributes:
        index: what the compiler knows of it.
        special_tokens: the tokens that are no text, those that end texts among them, by their names (``"<|eot|>"``).
    """

    __slots__ = ("_encode", "_special_ids", "index", "special_tokens")

    index: Final[VocabularyIndex]
    special_tokens: Final[Mapping[str, int]]

    def __init__(
        self,
        index: VocabularyIndex,
        encode: Callable[[str], list[int]] | None = None,
        special_tokens: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.index = index
        self.special_tokens = MappingProxyType(dict(special_tokens))
        self._special_ids = frozenset(special_tokens.values())
        self._encode = encode

    def __repr__(self) -> str:
        return f"Vocabulary(size={self.size}, eos_token_ids={self.eos_token_ids})"

    def __len__(self) -> int:
        return self.size

    @property
    def size(self) -> int:
        """The number of logits that masks cover. Ids without a token (padding) are never allowed."""
        return self.index.size

    @property
    def eos_token_ids(self) -> list[int]:
        """The tokens that end a text, in ascending order: allowed exactly where the text so far is whole."""
        return self.index.eos_token_ids

    def token_bytes(self, token: int) -> _Text | None:
        """What a token says, or ``None`` for one that is no text: special, added, empty, padding."""
        return None if token in self._special_ids else self.index.token_bytes(token)

    def marked(self, tokens: Iterable[int]) -> _Text:
        """What a sequence of tokens is to a grammar: its text, with marks for special tokens (but not for ends)."""
        return b"".join(self.index.token_bytes(token) or b"" for token in tokens)

    def decode(self, tokens: Iterable[int]) -> _Text:
        """The text of a sequence of tokens as bytes; tokens that are no text add nothing."""
        return b"".join(self.token_bytes(token) or b"" for token in tokens)

    def spell(self, text: _Text, *, before: _Text = b"") -> list[int]:
        """A text, in which there may be marks, as tokens.

        It is split as the tokenizer splits it behind ``before``, if the vocabulary was made of a tokenizer, a token
        ends where the text begins, and the tokens do say the text. Otherwise each token is the longest that fits.
        """
        tokens: list[int] = []
        for piece, name in marks.split(text) if marks.BEGIN in text else [(text, None)]:
            tokens += self._spell(piece, before) if name is None else [self.special_tokens[name]]
            before = piece
        return tokens

    def _spell(self, text: _Text, before: _Text) -> list[int]:
        _, _, before = before.rpartition(marks.END)
        if self._encode is not None:
            try:
                tokens = self._encode((before + text).decode())
            except UnicodeDecodeError:
                return self.index.spell(text)
            pieces = [self.index.token_bytes(token) or b"" for token in tokens]
            skipped = 0
            while tokens and skipped < len(before):
                skipped += len(pieces[len(pieces) - len(tokens)])
                tokens = tokens[1:]
            if skipped == len(before) and b"".join(pieces)[skipped:] == text:
                return tokens
        return self.index.spell(text)

    def without_caches(self) -> Vocabulary:
        """The same index, but sharing no cache between the grammars compiled on it: for measuring cold compiles."""
        return Vocabulary(self.index.without_caches(), self._encode, self.special_tokens)

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[_Text | None],
        eos_token_ids: Iterable[int],
        *,
        special_tokens: Mapping[str, int] | None = None,
        size: int | None = None,
    ) -> Vocabulary:
        """A vocabulary from plain bytes.

        Args:
            tokens: what token ``i`` says; ``None`` or ``b""`` for a token that is no text.
            eos_token_ids: the tokens that end a text; they may lie past the end of ``tokens``.
            special_tokens: names of tokens that are no text, by which grammars can ask for them; they may lie
                past the end, too. Given any, tokens with bytes above 0xF4, which no text has, are no text either.
            size: the number of logits, where it is not the number of tokens: padding is added, tokens past it dropped.

        Raises:
            TypeError: a token is neither bytes nor ``None``.
            ValueError: no end-of-text token is left below ``size``, an id is negative, or there are over 2**22 tokens.
        """
        ends, named = list(dict.fromkeys(eos_token_ids)), dict(special_tokens or {})
        no_text = [*ends, *named.values()]
        if any(token < 0 for token in no_text):
            raise ValueError(f"negative token in {no_text}")
        width = max([len(tokens), *(token + 1 for token in no_text)]) if size is None else size
        if width > _MAX_SIZE:
            raise ValueError(f"a vocabulary of {width} tokens; at most {_MAX_SIZE} are supported")
        ends = [token for token in ends if token < width]
        if not ends:
            raise ValueError("no end-of-text token below the vocabulary's size: name one with eos_token_ids=[...]")
        texts: list[_Text | None] = [token or None for token in tokens[:width]]
        for token, text in enumerate(texts):
            if text is not None and type(text) is not bytes:
                raise TypeError(f"token {token} must be bytes or None, not {type(text).__name__}")
        for token in ends:
            if token < len(texts):
                texts[token] = None
        special = {name: token for name, token in named.items() if token < width}
        if special:
            texts = [None if text is None or marks.reserved(text) else text for text in texts]
            texts += [None] * (max(special.values()) + 1 - len(texts))
        marked = {token: marks.mark(name) for name, token in special.items() if token not in ends}
        for token, text in marked.items():
            texts[token] = text
        return cls(VocabularyIndex(texts, ends, list(marked), width), special_tokens=special)

    @classmethod
    def bytes(cls) -> Vocabulary:
        """The 256 single bytes, and token 256 to end a text."""
        return cls.from_tokens([bytes([value]) for value in range(256)], [256])

    @classmethod
    def from_tokenizer(
        cls, tokenizer: Any, *, eos_token_ids: Iterable[int] | int | None = None, size: int | None = None
    ) -> Vocabulary:
        """A vocabulary from a tokenizer object of any of these libraries.

        transformers (fast tokenizers), tokenizers, tiktoken, mistral-common (Tekken), sentencepiece.

        Args:
            eos_token_ids: the tokens that end a text; by default those of :func:`end_token_ids`.
            size: the number of logits of the model, where it is not that of the tokenizer.

        Raises:
            UnsupportedTokenizer: the tokenizer is of another kind, or its decoder cannot be said token by token.
            ValueError: no end-of-text token is known and none was given.
        """
        tokenizer = _unwrap(tokenizer)
        if eos_token_ids is None:
            eos_token_ids = end_token_ids(tokenizer)
        elif isinstance(eos_token_ids, int):
            eos_token_ids = [eos_token_ids]
        vocabulary = cls.from_tokens(
            _tokens(tokenizer), eos_token_ids, special_tokens=_special_tokens(tokenizer), size=size
        )
        return cls(vocabulary.index, _encoder(tokenizer), vocabulary.special_tokens)

    @classmethod
    def from_pretrained(
        cls,
        path_or_name: str | Path,
        *,
        eos_token_ids: Iterable[int] | int | None = None,
        size: int | None = None,
        **options: Any,
    ) -> Vocabulary:
        """A vocabulary from a directory with a ``tokenizer.json``, a ``.gguf`` file, or a name on the Hugging Face hub.

        Needs transformers (``pip install 'grammarspec[transformers]'``).

        Args:
            eos_token_ids: the tokens that end a text; by default those of :func:`end_token_ids` together with what
                the model's generation configuration names.
            size: the number of logits of the model, where it is not that of the tokenizer.
            options: passed on to ``AutoTokenizer.from_pretrained`` (``revision``, ``token``, ``cache_dir``, ...).

        Raises:
            OSError: there is no such tokenizer.
            UnsupportedTokenizer, ValueError: as :meth:`from_tokenizer`.
        """
        path = Path(path_or_name)
        if path.suffix == ".gguf":
            if not path.is_file():
                raise FileNotFoundError(f"no such file: {path}")
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, **options)
            return cls.from_tokenizer(tokenizer, eos_token_ids=eos_token_ids, size=size)
        if (path / "tokenizer.json").is_file() and not options:
            # That file has it all: for which class it was made need not be found out, which would load torch.
            from transformers import PreTrainedTokenizerFast

            tokenizer = PreTrainedTokenizerFast.from_pretrained(path)
        else:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(path_or_name, **options)
        if eos_token_ids is None:
            eos_token_ids = [*_configured_ends(path_or_name, options), *end_token_ids(tokenizer)]
        return cls.from_tokenizer(tokenizer, eos_token_ids=eos_token_ids, size=size)


def end_token_ids(tokenizer: Any) -> list[int]:
    """The tokens that end a text, as far as the tokenizer knows them.

    That is its EOS token and, where it has a chat template, the token that the template puts behind an answer.
    A model's generation configuration may name more.
    """
    tokenizer = _unwrap(tokenizer)
    if hasattr(tokenizer, "backend_tokenizer"):
        candidates = [tokenizer.eos_token_id, _end_of_turn(tokenizer)]
    elif hasattr(tokenizer, "token_byte_values"):
        try:
            candidates = [tokenizer.eot_token]
        except KeyError:
            candidates = []
    elif hasattr(tokenizer, "id_to_byte_piece"):
        candidates = [tokenizer.eos_id]
    elif hasattr(tokenizer, "serialized_model_proto"):
        candidates = [tokenizer.eos_id()]
    else:
        candidates = []
    return [token for token in dict.fromkeys(candidates) if token is not None and token >= 0]


def _end_of_turn(tokenizer: Any) -> int | None:
    """The added token that the chat template writes directly behind what the assistant says."""
    if not getattr(tokenizer, "chat_template", None):
        return None
    answer = "the answer"
    conversation = [{"role": "user", "content": "a question"}, {"role": "assistant", "content": answer}]
    try:
        text = tokenizer.apply_chat_template(conversation, tokenize=False)
    except Exception:  # A template is a program of the model's author and raises what it likes.
        return None
    behind = str(text).rpartition(answer)[2].lstrip()
    added = tokenizer.backend_tokenizer.get_added_tokens_decoder()
    found = [(len(token.content), number) for number, token in added.items() if behind.startswith(token.content)]
    return max(found)[1] if found else None


def _configured_ends(path_or_name: str | Path, options: dict[str, Any]) -> list[int]:
    """What ``generation_config.json``, or else ``config.json``, names as end-of-text tokens."""
    ends = None
    folder = Path(path_or_name)
    if folder.is_dir():
        for file in (folder / "generation_config.json", folder / "config.json"):
            if ends is None and file.is_file():
                ends = json.loads(file.read_text(encoding="utf-8")).get("eos_token_id")
    else:
        from transformers import GenerationConfig, PreTrainedConfig

        where = {key: options[key] for key in ("cache_dir", "local_files_only", "revision", "token") if key in options}
        try:
            ends = GenerationConfig.from_pretrained(path_or_name, **where).eos_token_id
        except OSError:
            try:
                ends = PreTrainedConfig.get_config_dict(path_or_name, **where)[0].get("eos_token_id")
            except OSError:
                ends = None
    if ends is None:
        return []
    return [ends] if isinstance(ends, int) else list(ends)


def _unwrap(tokenizer: Any) -> Any:
    """Undo the wrappings of mistral-common: transformers' backend for it, and its own chat tokenizer."""
    if hasattr(getattr(tokenizer, "tokenizer", None), "instruct_tokenizer"):
        tokenizer = tokenizer.tokenizer
    return tokenizer.instruct_tokenizer.tokenizer if hasattr(tokenizer, "instruct_tokenizer") else tokenizer


def _tokens(tokenizer: Any) -> list[bytes | None]:
    """What each token says, by the kind of the tokenizer. Each kind is known by a method that only it has."""
    if hasattr(tokenizer, "backend_tokenizer"):
        return _from_tokenizers(tokenizer.backend_tokenizer, tokenizer.all_special_ids)
    if hasattr(tokenizer, "get_added_tokens_decoder"):
        return _from_tokenizers(tokenizer, ())
    if hasattr(tokenizer, "token_byte_values"):
        return _from_tiktoken(tokenizer)
    if hasattr(tokenizer, "id_to_byte_piece"):
        return _from_tekken(tokenizer)
    if hasattr(tokenizer, "serialized_model_proto"):
        return _from_sentencepiece(tokenizer)
    kind = f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__}"
    hint = "of transformers only the fast tokenizers; for others give the bytes to Vocabulary.from_tokens"
    raise UnsupportedTokenizer(f"a tokenizer of type {kind}", hint=hint)


def _special_tokens(tokenizer: Any) -> dict[str, int]:
    """The names of the tokens that are no text; of several tokens with one name, the first has it."""
    named: Iterable[tuple[str, int]]
    if hasattr(tokenizer, "backend_tokenizer"):
        special = zip(
            tokenizer.convert_ids_to_tokens(tokenizer.all_special_ids), tokenizer.all_special_ids, strict=True
        )
        named = [*_added(tokenizer.backend_tokenizer), *special]
    elif hasattr(tokenizer, "get_added_tokens_decoder"):
        named = _added(tokenizer)
    elif hasattr(tokenizer, "token_byte_values"):
        named = ((name, tokenizer.encode_single_token(name)) for name in tokenizer.special_tokens_set)
    elif hasattr(tokenizer, "id_to_byte_piece"):
        named = ((tokenizer.id_to_piece(token), token) for token in sorted(tokenizer.special_ids))
    else:
        texts = _from_sentencepiece(tokenizer)
        named = ((tokenizer.id_to_piece(token), token) for token, text in enumerate(texts) if text is None)
    found: dict[str, int] = {}
    for name, token in named:
        if name:
            found.setdefault(name, token)
    return found


def _added(backend: Any) -> list[tuple[str, int]]:
    return [(token.content, number) for number, token in backend.get_added_tokens_decoder().items()]


def _encoder(tokenizer: Any) -> Callable[[str], list[int]]:
    """How a tokenizer of one of the known kinds splits plain text."""
    if hasattr(tokenizer, "backend_tokenizer"):
        tokenizer = tokenizer.backend_tokenizer
    if hasattr(tokenizer, "get_added_tokens_decoder"):
        return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)
    if hasattr(tokenizer, "token_byte_values"):
        return lambda text: list(tokenizer.encode_ordinary(text))
    if hasattr(tokenizer, "id_to_byte_piece"):
        return lambda text: list(tokenizer.encode(text, bos=False, eos=False))
    return lambda text: list(tokenizer.encode(text))


def _from_tiktoken(encoding: Any) -> list[bytes | None]:
    tokens: list[bytes | None] = [None] * encoding.n_vocab
    for text in encoding.token_byte_values():
        tokens[encoding.encode_single_token(text)] = text
    return tokens


def _from_tekken(tekken: Any) -> list[bytes | None]:
    special = tekken.special_ids
    return [None if token in special else tekken.id_to_byte_piece(token) for token in range(tekken.n_words)]


def _from_sentencepiece(processor: Any) -> list[bytes | None]:
    # The processor cannot tell user-defined symbols (added tokens) from text; its serialised model can.
    from sentencepiece import sentencepiece_model_pb2  # pyright: ignore[reportMissingImports]

    model: Any = getattr(sentencepiece_model_pb2, "ModelProto")()  # noqa: B009 (its stub lacks the generated names)
    model.ParseFromString(processor.serialized_model_proto())
    normal, byte = model.SentencePiece.NORMAL, model.SentencePiece.BYTE
    return [
        piece.piece.replace("\u2581", " ").encode()
        if piece.type == normal
        else _fallback_byte(piece.piece)
        if piece.type == byte
        else None
        for piece in model.pieces
    ]


def _from_tokenizers(backend: Any, special: Iterable[int]) -> list[bytes | None]:
    spell = _speller(_component(backend.decoder), _component(backend.pre_tokenizer))
    every = backend.get_vocab(with_added_tokens=True)
    tokens: list[bytes | None] = [None] * (max(every.values(), default=-1) + 1)
    for piece, token in backend.get_vocab(with_added_tokens=False).items():
        tokens[token] = spell(piece)
    unknown = every.get(getattr(backend.model, "unk_token", None))
    for token in (*backend.get_added_tokens_decoder(), *special, *(() if unknown is None else (unknown,))):
        tokens[token] = None
    return tokens


def _component(component: Any) -> dict[str, Any]:
    """The settings of one component of a ``tokenizers.Tokenizer``, as ``tokenizer.json`` has them."""
    return {} if component is None else dict(json.loads(component.__getstate__()))


def _steps(settings: dict[str, Any], parts: str) -> list[dict[str, Any]]:
    if settings.get("type") == "Sequence":
        return [step for part in settings[parts] for step in _steps(part, parts)]
    return [settings] if settings else []


def _speller(decoder: dict[str, Any], pre_tokenizer: dict[str, Any]) -> Callable[[str], bytes]:
    """How a piece of the vocabulary is spelled, by the decoder's steps.

    Raises:
        UnsupportedTokenizer: a step depends on the neighbours of a piece, or is unknown.
    """
    steps = _steps(decoder, "decoders")
    if not steps and any(step["type"] == "ByteLevel" for step in _steps(pre_tokenizer, "pretokenizers")):
        return _byte_level
    if [step["type"] for step in steps] == ["ByteLevel"]:
        return _byte_level
    replacements: list[tuple[str, str]] = []
    byte_fallback = fused = False
    for step in steps:
        match step:
            case {"type": "Replace", "pattern": {"String": old}, "content": new} if len(old) == 1 or not fused:
                replacements.append((old, new))
            case {"type": "Metaspace", "replacement": old}:
                replacements.append((old, " "))
            case {"type": "ByteFallback"}:
                byte_fallback = True
            case {"type": "Fuse"}:
                fused = True
            case {"type": "Strip"} if fused:
                pass  # It trims the ends of a whole text, where a prompt stands before it.
            case _:
                raise UnsupportedTokenizer(f"a tokenizer with the decoder step {json.dumps(step)}", where="decoder")
    if not replacements and not byte_fallback:
        raise UnsupportedTokenizer("a tokenizer whose decoder puts blanks between its tokens", where="decoder")

    def spell(piece: str) -> bytes:
        if byte_fallback and (value := _fallback_byte(piece)) is not None:
            return value
        for old, new in replacements:
            piece = piece.replace(old, new)
        return piece.encode()

    return spell


def _fallback_byte(piece: str) -> bytes | None:
    """The byte that sentencepiece writes as ``<0x0A>``."""
    return bytes.fromhex(piece[3:5]) if re.fullmatch(r"<0x[0-9A-Fa-f]{2}>", piece) else None


def _byte_level(piece: str) -> bytes:
    """The bytes behind GPT-2's printable alphabet; a piece with any other character is its own UTF-8."""
    try:
        return piece.translate(_BYTE_LEVEL).encode("latin-1")
    except UnicodeEncodeError:
        return piece.encode()


def _byte_level_table() -> dict[int, int]:
    """GPT-2's alphabet, reversed: printable Latin-1 stands for itself, the other bytes, in order, for U+0100 on.

    Code points below U+0100 that stand for nothing are sent beyond Latin-1, so that encoding notices them.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [value for value in range(0x100) if value not in printable]
    table = {0x100 + position: value for position, value in enumerate(others)}
    return table | dict.fromkeys(others, 0xFFFF)


_BYTE_LEVEL: Final = _byte_level_table()
