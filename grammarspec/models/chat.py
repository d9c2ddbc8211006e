"""Prompts: a text of the user or the messages of a chat go in, the tokens of the rendered prompt come out.

Messages are checked, with JSON pointers in the errors, and rendered by the model's own chat template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grammarspec.errors import PromptError, UnsupportedFeature
from grammarspec.models.messages import to_template_messages

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Prompt", "chat_template", "encode", "messages_of", "render"]

Prompt = str | Sequence[Mapping[str, Any]]
"""A text of the user, or the messages of a chat as in OpenAI's chat completions."""

_TEXTS = ("text", "input_text", "output_text")
_MEDIA = {
    "image": "images", "image_url": "images", "input_image": "images", "audio": "audio", "audio_url": "audio",
    "input_audio": "audio", "video": "videos", "video_url": "videos", "file": "files", "input_file": "files",
}  # fmt: skip


def chat_template(tokenizer: PreTrainedTokenizerBase, *, tools: bool = False) -> str:
    """The Jinja template that renders chats; empty if the tokenizer has none.

    Args:
        tokenizer: the model's.
        tools: whether the chat has tools: some tokenizers have a separate template for such chats.
    """
    if not tokenizer.chat_template:
        return ""
    return str(tokenizer.get_chat_template(tools=[] if tools else None))


def messages_of(prompt: Prompt, system: str | None = None) -> list[dict[str, Any]]:
    """A prompt as messages, whose contents are texts.

    Args:
        prompt: a text of the user, or messages: ``{"role": ..., "content": ...}`` each. A content may be a list of
            parts, ``{"type": "text", "text": ...}``, whose texts are joined. The content of an assistant's message with
            ``tool_calls`` may be missing.
        system: a system message before them.

    Raises:
        PromptError: there is no message, or a message is malformed; the error has a JSON pointer to the place.
        TypeError: the prompt is neither a text nor a sequence of messages, or the system message is not a text.
        UnsupportedFeature: a message has a part that is not text, such as an image.
    """
    if system is not None and not isinstance(system, str):
        raise TypeError(f"system must be a text, not {type(system).__name__}")
    if isinstance(prompt, str):
        if not prompt:
            raise PromptError("the prompt is empty")
        messages = [{"role": "user", "content": prompt}]
    elif isinstance(prompt, Sequence) and not isinstance(prompt, bytes | bytearray):
        if not prompt:
            raise PromptError("the prompt has no messages")
        messages = [_message(message, f"#/{number}") for number, message in enumerate(prompt)]
    else:
        raise TypeError(f"a prompt must be a text or a sequence of messages, not {type(prompt).__name__}")
    return messages if system is None else [{"role": "system", "content": system}, *messages]


def _message(message: Any, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise _malformed(f"a message must have a role and a content, and is of type {type(message).__name__}", where)
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise _malformed("a message must have a role, such as 'user'", f"{where}/role")
    content = message.get("content")
    if content is None and message.get("tool_calls"):
        return dict(message)
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        content = "".join(_text(part, f"{where}/content/{number}") for number, part in enumerate(content))
    if not isinstance(content, str):
        found = "none" if content is None else f"one of type {type(content).__name__}"
        raise _malformed(
            f"a message must have a content, a text or a list of parts, and has {found}", f"{where}/content"
        )
    return {**message, "content": content}


def _text(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise _malformed(f"a part of a content must say its type, and is of type {type(part).__name__}", where)
    kind = part.get("type")
    if kind not in _TEXTS:
        what = _MEDIA.get(str(kind), "such parts")
        raise UnsupportedFeature(f"a message with a part of type {kind!r}", where, f"only texts are read, no {what}")
    text = part.get("text")
    if not isinstance(text, str):
        raise _malformed("a part of type 'text' must have a text", f"{where}/text")
    return text


def _malformed(message: str, where: str) -> PromptError:
    return PromptError(message, where)


def render(
    tokenizer: PreTrainedTokenizerBase,
    prompt: Prompt,
    system: str | None = None,
    variables: Mapping[str, Any] | None = None,
) -> str:
    """Render a prompt as the text that the model continues: by the chat template if there is one, else as it is.

    Args:
        tokenizer: the model's.
        prompt, system: as for :func:`messages_of`. Without a chat template the system message is put before the prompt,
            with a blank line between.
        variables: further variables of the chat template (``enable_thinking``, ``reasoning_effort``, ...).

    Raises:
        PromptError: as :func:`messages_of`; or the chat template refuses the messages; or there are messages, but no
            chat template.
        TypeError: as :func:`messages_of`.
        ValueError: there are variables, but no chat template, or it does not have one of them.
        UnsupportedFeature: as :func:`messages_of`; or the chat template leaves the system message out.
    """
    messages = to_template_messages(messages_of(prompt, system))
    if not tokenizer.chat_template:
        if not isinstance(prompt, str):
            raise PromptError("the tokenizer has no chat template: the prompt must be a text, not messages")
        if variables:
            raise ValueError("the tokenizer has no chat template that variables could be for")
        return "\n\n".join(message["content"] for message in messages)
    template = chat_template(tokenizer, tools=bool(variables and "tools" in variables))
    for name in variables or ():
        if name not in template:
            raise ValueError(f"the model's chat template has no variable {name}")
    from jinja2 import TemplateError

    try:
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, **(variables or {})}
        text = str(tokenizer.apply_chat_template(messages, **options))
    except TemplateError as error:
        known = any(message["role"] == "system" for message in messages) and "system" in str(error).lower()
        hint = "put what the system message says before the first message of the user" if known else ""
        raise PromptError(f"the model's chat template refuses these messages: {error}", hint=hint) from error
    except RecursionError:
        raise PromptError("a message is nested too deeply for the model's chat template") from None
    for message in messages:
        if message["role"] == "system" and message["content"].strip() not in text:
            hint = "put what it says before the first message of the user"
            raise UnsupportedFeature("the model's chat template leaves the system message out", hint=hint)
    return text


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """The tokens of a rendered prompt.

    Args:
        tokenizer: the model's. Without a chat template it adds its special tokens at the beginning; chat templates
            write them themselves.
        text: the rendered prompt.

    Raises:
        PromptError: the prompt has a lone surrogate, which UTF-8 cannot encode.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        lone = f"U+{ord(text[error.start]):04X}"
        raise PromptError(f"the prompt holds a lone surrogate ({lone}), which cannot be spelled in UTF-8") from None
    return list(tokenizer.encode(text, add_special_tokens=not tokenizer.chat_template))
