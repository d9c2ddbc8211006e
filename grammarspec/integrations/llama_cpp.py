"""For llama-cpp-python: the vocabulary of a model that it has loaded. Masks: :mod:`grammarspec.integrations.logits`."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

from grammarspec.errors import needed_by
from grammarspec.vocabulary import Vocabulary

__all__ = ["vocabulary_of_llama"]


def vocabulary_of_llama(llama: Any) -> Vocabulary:
    """The vocabulary of a model of llama.cpp, as the GGUF file has it; no tokenizer is needed beside it.

    Text are the tokens that llama.cpp calls normal, and those of single bytes. All others (control tokens, those that
    a user defined) are special tokens by their names. A text ends with each token that llama.cpp stops at.

    Args:
        llama: a ``llama_cpp.Llama``.

    Raises:
        MissingPackage: llama-cpp-python is not installed.
        TypeError: ``llama`` is none.
        ValueError: the model has no token that ends a text.
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
    """The bytes of a token, with the blank that it begins with."""
    size = 64
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = api.llama_token_to_piece(vocab, token, buffer, size, 0, True)
        if length >= 0:
            return buffer.raw[:length]
        size = -length
