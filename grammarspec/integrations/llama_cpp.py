"""For llama-cpp-python: the vocabulary of a loaded model. For masks, see :mod:`grammarspec.integrations.logits`."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

from grammarspec.errors import needed_by
from grammarspec.vocabulary import Vocabulary

__all__ = ["vocabulary_of_llama"]


def vocabulary_of_llama(llama: Any) -> Vocabulary:
    """The vocabulary of a model of llama.cpp, as its GGUF file has it; no other tokenizer is needed.

    The tokens that llama.cpp calls normal, and those of single bytes, stand for text. All others (control tokens, and
    tokens that a user has defined) are special tokens, known by their names. The end-of-text tokens are those at which
    llama.cpp stops.

    Args:
        llama: a ``llama_cpp.Llama``.

    Raises:
        MissingPackage: llama-cpp-python is not installed.
        TypeError: ``llama`` is not a ``llama_cpp.Llama``.
        ValueError: the model has no end-of-text token.
    """
    with needed_by("the vocabulary of a model of llama.cpp"):
        api: Any = import_module("llama_cpp")

    if not isinstance(llama, api.Llama):
        raise TypeError(f"expected a llama_cpp.Llama, not {type(llama).__name__}")
    vocab = api.llama_model_get_vocab(llama.model)
    count = api.llama_vocab_n_tokens(vocab)
    texts: list[bytes | None] = []
    special: dict[str, int] = {}
    for token in range(count):
        if api.llama_vocab_get_attr(vocab, token) & (api.LLAMA_TOKEN_ATTR_NORMAL | api.LLAMA_TOKEN_ATTR_BYTE):
            texts.append(_piece(api, vocab, token))
        else:
            texts.append(None)
            name = api.llama_vocab_get_text(vocab, token).decode("utf-8", "replace")
            special.setdefault(name or f"<{token}>", token)
    ends = [token for token in range(count) if api.llama_vocab_is_eog(vocab, token)]
    plain = Vocabulary.from_tokens(texts, ends, special_tokens=special)

    def encode(text: str) -> list[int]:
        return list(llama.tokenize(text.encode(), add_bos=False, special=False))

    return Vocabulary(plain.index, encode, plain.special_tokens)


def _piece(api: Any, vocab: Any, token: int) -> bytes:
    """The bytes of a token, with the space before it, if it has one."""
    size = 64
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = api.llama_token_to_piece(vocab, token, buffer, size, 0, True)
        if length >= 0:
            return buffer.raw[:length]
        size = -length
