"""Hugging Face's tokenizers: those of the library tokenizers, and the fast ones of transformers, which wrap one.

The text of a token follows from the steps of the tokenizer's own decoder. A decoder for which a token's text depends on
its neighbours is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from grammarspec.errors import UnsupportedTokenizer
from grammarspec.vocabulary.adapters.adapter import TokenizerAdapter
from grammarspec.vocabulary.adapters.sentencepiece import fallback_byte

__all__ = ["Tokenizers", "Transformers"]


class Tokenizers(TokenizerAdapter):
    """A ``tokenizers.Tokenizer``."""

    @staticmethod
    def matches(tokenizer: Any) -> bool:
        return hasattr(tokenizer, "get_added_tokens_decoder")

    @property
    def backend(self) -> Any:
        """The ``tokenizers.Tokenizer``."""
        return self.tokenizer

    @property
    def special_ids(self) -> Iterable[int]:
        """Tokens that are no text, beside the added ones."""
        return ()

    def tokens(self) -> list[bytes | None]:
        backend = self.backend
        spell = _speller(_component(backend.decoder), _component(backend.pre_tokenizer))
        every = backend.get_vocab(with_added_tokens=True)
        tokens: list[bytes | None] = [None] * (max(every.values(), default=-1) + 1)
        for piece, token in backend.get_vocab(with_added_tokens=False).items():
            tokens[token] = spell(piece)
        unknown = every.get(getattr(backend.model, "unk_token", None))
        for token in (*backend.get_added_tokens_decoder(), *self.special_ids, *(() if unknown is None else (unknown,))):
            tokens[token] = None
        return tokens

    def special_tokens(self) -> Iterable[tuple[str, int]]:
        return [(token.content, number) for number, token in self.backend.get_added_tokens_decoder().items()]

    def ends(self) -> Iterable[int | None]:
        return []

    def encode(self, text: str) -> list[int]:
        return list(self.backend.encode(text, add_special_tokens=False).ids)


class Transformers(Tokenizers):
    """A fast tokenizer of transformers."""

    @staticmethod
    def matches(tokenizer: Any) -> bool:
        return hasattr(tokenizer, "backend_tokenizer")

    @property
    def backend(self) -> Any:
        return self.tokenizer.backend_tokenizer

    @property
    def special_ids(self) -> Iterable[int]:
        return list(self.tokenizer.all_special_ids)

    def special_tokens(self) -> Iterable[tuple[str, int]]:
        ids = self.tokenizer.all_special_ids
        return [*super().special_tokens(), *zip(self.tokenizer.convert_ids_to_tokens(ids), ids, strict=True)]

    def ends(self) -> Iterable[int | None]:
        return [self.tokenizer.eos_token_id, self._end_of_turn()]

    def _end_of_turn(self) -> int | None:
        """The added token that the chat template writes directly behind an assistant's message.

        It is neither the end of what another token began before the message (Cohere's ``<|END_RESPONSE|>``), nor the
        beginning of a tag (Kimi K3's ``<|close|>``, before the tag's name).
        """
        if not getattr(self.tokenizer, "chat_template", None):
            return None
        answer = "the answer"
        conversation = [{"role": "user", "content": "a question"}, {"role": "assistant", "content": answer}]
        try:
            text = self.tokenizer.apply_chat_template(conversation, tokenize=False)
        except Exception:  # a template is a program, and may raise anything
            return None
        before, _, behind = str(text).rpartition(answer)
        added = {token.content: number for number, token in self.backend.get_added_tokens_decoder().items()}
        longest_first = sorted(added, key=len, reverse=True)
        pieces = re.split(f"({'|'.join(map(re.escape, longest_first))})", behind) if added else []
        for gap, token, rest in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
            if gap.strip():
                return None
            if not _ends(before.rstrip(), token):
                return None if rest and not rest[0].isspace() else added[token]
        return None


def _ends(text: str, token: str) -> bool:
    """Whether a token ends what another one at the end of a text began, by their names."""
    begins = {token.replace("END", "START", 1), token.replace("</", "<", 1)} - {token}
    return any(text.endswith(one) for one in begins)


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
                pass  # it trims the beginning of a whole text, which here is the prompt's
            case _:
                raise UnsupportedTokenizer(f"a tokenizer with the decoder step {json.dumps(step)}", where="decoder")
    if not replacements and not byte_fallback:
        raise UnsupportedTokenizer("a tokenizer whose decoder puts blanks between its tokens", where="decoder")

    def spell(piece: str) -> bytes:
        if byte_fallback and (value := fallback_byte(piece)) is not None:
            return value
        for old, new in replacements:
            piece = piece.replace(old, new)
        return piece.encode()

    return spell


def _byte_level(piece: str) -> bytes:
    """The bytes behind GPT-2's printable alphabet; a piece with any other character is its own UTF-8."""
    try:
        return piece.translate(_BYTE_LEVEL).encode("latin-1")
    except UnicodeEncodeError:
        return piece.encode()


def _byte_level_table() -> dict[int, int]:
    """GPT-2's alphabet, reversed: printable Latin-1 stands for itself, the other bytes, in order, for U+0100 on.

    Code points below U+0100 that stand for no byte are mapped beyond Latin-1, so that encoding to it fails for them.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [value for value in range(0x100) if value not in printable]
    table = {0x100 + position: value for position, value in enumerate(others)}
    return table | dict.fromkeys(others, 0xFFFF)


_BYTE_LEVEL: Final = _byte_level_table()
