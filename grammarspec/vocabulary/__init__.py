"""Vocabularies: the text of every token of a model, as bytes.

A tokenizer (:mod:`grammarspec.vocabulary.adapters`) or plain bytes come in; an index over the tokens goes out, for
which constraints are compiled. Special and added tokens are never text, not even those that a tokenizer registers for
ordinary text (runs of spaces, say): the same text can be written by other tokens. Grammars name such tokens
(:func:`grammarspec.special`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from grammarspec._compiler import VocabularyIndex
from grammarspec.grammars import marks
from grammarspec.imports import importing

__all__ = ["Vocabulary", "end_token_ids"]

_Text: TypeAlias = bytes  # a name for annotations inside the class, where `bytes` is the constructor

_MAX_SIZE: Final = 1 << 22  # far above any model's; the memory for so many tokens is far below a gigabyte


class Vocabulary:
    """The tokens of a model, and the index over them that all constraints on this vocabulary share.

    Building the index takes about a second for 128,000 tokens: make one vocabulary per model and keep it. A pickle has
    the tokens, and the tokenizer if the vocabulary was made of one; the index is built anew when it is read.
    A prompt is assumed to stand before each text: a sentencepiece token such as ``▁Hello`` is ``" Hello"``, although
    the tokenizer would strip the blank at the very beginning of a text.

    Attributes:
        index: the tokens in the compiler's form.
        special_tokens: the tokens that are no text, those that end texts among them, by their names (``"<|eot|>"``).
    """

    __slots__ = ("__weakref__", "_encode", "_special_ids", "index", "special_tokens")

    index: Final[VocabularyIndex]
    special_tokens: Final[Mapping[str, int]]

    def __init__(
        self,
        index: VocabularyIndex,
        encode: Callable[[str], list[int]] | None = None,
        special_tokens: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.index = index
        known = isinstance(special_tokens, MappingProxyType)  # another vocabulary's, to copy which takes long
        self.special_tokens = special_tokens if known else MappingProxyType(dict(special_tokens))
        self._special_ids = frozenset(special_tokens.values())
        self._encode = encode

    def __repr__(self) -> str:
        return f"Vocabulary(size={self.size}, eos_token_ids={self.eos_token_ids})"

    def __reduce__(self) -> tuple[Any, ...]:
        texts = [self.index.token_bytes(token) for token in range(self.size)]
        return _restored, (texts, self.eos_token_ids, dict(self.special_tokens), self._encode)

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
        """The text of a token, or ``None`` for one that is no text: special, added, empty, padding."""
        return None if token in self._special_ids else self.index.token_bytes(token)

    def marked(self, tokens: Iterable[int]) -> _Text:
        """The text of a sequence of tokens, with special tokens marked; tokens that end texts add nothing."""
        return b"".join(self.index.token_bytes(token) or b"" for token in tokens)

    def decode(self, tokens: Iterable[int]) -> _Text:
        """The text of a sequence of tokens as bytes; tokens that are no text add nothing."""
        return b"".join(self.token_bytes(token) or b"" for token in tokens)

    def spell(self, text: _Text, *, before: _Text = b"") -> list[int]:
        """A text as tokens.

        If the vocabulary was made of a tokenizer, the text is split as the tokenizer splits it after ``before``,
        provided that a token ends where the text begins and that the tokens spell the text. Otherwise each token is
        the longest that fits, or they are as few as possible where that leads to where none fits. Of a text that no
        tokens spell, the result is a beginning.

        Args:
            text: in UTF-8; special tokens are marked (:mod:`grammarspec.grammars.marks`).
            before: the text in front of it.

        Raises:
            KeyError: a special token that is marked is not in the vocabulary.
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

    def keep(self, *, constraints: int = 32, memory: int = 64 * 1024 * 1024) -> None:
        """Bound what is kept of constraints that nobody uses any more.

        :func:`grammarspec.compile` finds the automaton of an equal grammar with its states and masks: always while it
        is in use, and afterwards within these bounds. Where they hold more bytes, the least recently used first give up
        what only new masks need, if that is much, and then go.

        Args:
            constraints: how many are kept; 0 for none.
            memory: bytes that they may hold together.

        Raises:
            ValueError: the vocabulary is one of :meth:`without_caches`.
            OverflowError: a bound is below 0.
        """
        self.index.keep(constraints, memory)

    def without_caches(self) -> Vocabulary:
        """The same index, but sharing nothing between what is compiled on it: for measuring cold compiles."""
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
            tokens: the text of each token, by id; ``None`` or ``b""`` for a token that is no text.
            eos_token_ids: the tokens that end a text; they may lie past the end of ``tokens``.
            special_tokens: the ids of tokens that are no text, by the names that grammars have for them; they may lie
                past the end, too. If any are given, tokens with bytes above 0xF4 are taken for no text, since UTF-8 has
                no such bytes.
            size: the number of logits, where it is not the number of tokens: padding is added, or tokens are dropped.

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
        """A vocabulary from a tokenizer object.

        It may be of transformers (fast tokenizers), tokenizers, tiktoken, mistral-common (Tekken) or sentencepiece.

        Args:
            eos_token_ids: the tokens that end a text; by default those of :func:`end_token_ids`.
            size: the number of logits of the model, where it is not that of the tokenizer.

        Raises:
            UnsupportedTokenizer: the tokenizer is of another kind, or a token's text depends on its neighbours.
            ValueError: no end-of-text token is known and none was given.
        """
        with importing:
            from grammarspec.vocabulary.adapters import adapter_of

        adapter = adapter_of(tokenizer)
        if eos_token_ids is None:
            eos_token_ids = end_token_ids(tokenizer)
        elif isinstance(eos_token_ids, int):
            eos_token_ids = [eos_token_ids]
        tokens = adapter.tokens()
        special: dict[str, int] = {}
        for name, token in adapter.special_tokens():
            if name:
                special.setdefault(name, token)
        vocabulary = cls.from_tokens(tokens, eos_token_ids, special_tokens=special, size=size)
        return cls(vocabulary.index, adapter.encode, vocabulary.special_tokens)

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
            MissingPackage: transformers is not installed.
            UnsupportedTokenizer, ValueError: as :meth:`from_tokenizer`.
        """
        with importing:
            from grammarspec.vocabulary.pretrained import configured_ends, load_tokenizer

        tokenizer = load_tokenizer(path_or_name, **options)
        if eos_token_ids is None:
            eos_token_ids = [*configured_ends(path_or_name, **options), *end_token_ids(tokenizer)]
        return cls.from_tokenizer(tokenizer, eos_token_ids=eos_token_ids, size=size)


def _restored(
    texts: list[bytes | None],
    eos_token_ids: list[int],
    special_tokens: dict[str, int],
    encode: Callable[[str], list[int]] | None,
) -> Vocabulary:
    """The vocabulary of a pickle."""
    marked = [token for token in dict.fromkeys(special_tokens.values()) if token not in eos_token_ids]
    return Vocabulary(VocabularyIndex(texts, eos_token_ids, marked, len(texts)), encode, special_tokens)


def end_token_ids(tokenizer: Any) -> list[int]:
    """The tokens that end a text, as far as the tokenizer knows them.

    That is its EOS token and, where it has a chat template, the token that the template puts behind an answer.
    A model's generation configuration may name more.

    Args:
        tokenizer: as for :meth:`Vocabulary.from_tokenizer`; for any other object the list is empty.
    """
    with importing:
        from grammarspec.vocabulary.adapters import find_adapter

    adapter = find_adapter(tokenizer)
    candidates = () if adapter is None else adapter.ends()
    return [token for token in dict.fromkeys(candidates) if token is not None and token >= 0]
