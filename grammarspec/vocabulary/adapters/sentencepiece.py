"""sentencepiece's processors, and its way of writing bytes, which other libraries have taken over."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from grammarspec.vocabulary.adapters.adapter import TokenizerAdapter

__all__ = ["SentencePiece", "fallback_byte"]

_BLANK = "\u2581"
"""How a blank is written in pieces."""


def fallback_byte(piece: str) -> bytes | None:
    """The byte that a piece such as ``<0x0A>`` stands for; ``None`` for any other piece."""
    return bytes.fromhex(piece[3:5]) if re.fullmatch(r"<0x[0-9A-Fa-f]{2}>", piece) else None


class SentencePiece(TokenizerAdapter):
    """A ``sentencepiece.SentencePieceProcessor``."""

    @staticmethod
    def matches(tokenizer: Any) -> bool:
        return hasattr(tokenizer, "serialized_model_proto")

    def tokens(self) -> list[bytes | None]:
        # The processor cannot tell user-defined symbols (added tokens) from text; its serialised model can.
        from sentencepiece import sentencepiece_model_pb2  # pyright: ignore[reportMissingImports]

        model: Any = getattr(sentencepiece_model_pb2, "ModelProto")()  # noqa: B009 (its stub lacks the generated names)
        model.ParseFromString(self.tokenizer.serialized_model_proto())
        normal, byte = model.SentencePiece.NORMAL, model.SentencePiece.BYTE
        return [
            piece.piece.replace(_BLANK, " ").encode()
            if piece.type == normal
            else fallback_byte(piece.piece)
            if piece.type == byte
            else None
            for piece in model.pieces
        ]

    def special_tokens(self) -> Iterable[tuple[str, int]]:
        return ((self.tokenizer.id_to_piece(token), token) for token, text in enumerate(self.tokens()) if text is None)

    def ends(self) -> Iterable[int | None]:
        return [self.tokenizer.eos_id()]

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text))
