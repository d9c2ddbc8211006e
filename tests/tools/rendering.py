"""Chat templates as transformers renders them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grammarspec.tools.tool import Tool, ToolCall

TEMPLATES = Path(__file__).parent / "templates"
"""Templates written for these tests, by the names of their formats."""

USER = {"role": "user", "content": "What is the weather?"}
ENDS = (
    "\n<|im_end|>\n", "<|im_end|>\n", "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<|eot_id|>", "</s>",
    "<|call|>", "<|return|>", "<turn|>\n", "<end_of_turn>\n", "<|end|>", "<|end_of_text|>\n", "<|tool_response>",
    "[e~[\n", "<|im_end|>", "<|end_of_msg|>", "\n",
)  # fmt: skip
"""What stands behind the text of a turn."""


def message(calls: Sequence[ToolCall], text: str | None = "") -> dict[str, Any]:
    """The message of an assistant that calls tools."""
    told = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": told}


def rendered(template: str, messages: Sequence[Any], tools: Sequence[Tool[..., Any]], *, prompt: bool = False) -> str:
    from transformers.utils.chat_template_utils import render_jinja_template

    [text], _ = render_jinja_template(
        [list(messages)],
        tools=[tool.to_openai() for tool in tools],
        chat_template=template,
        add_generation_prompt=prompt,
        bos_token="<s>",
        eos_token="</s>",
    )
    assert isinstance(text, str)
    return text


def reply(template: str, last: Any, tools: Sequence[Tool[..., Any]]) -> str:
    """The text of the last message, an assistant's, without what begins and ends its turn."""
    begun = rendered(template, [USER], tools, prompt=True)
    whole = rendered(template, [USER, last], tools)
    assert whole.startswith(begun)
    said = whole[len(begun) :]
    return next((said.removesuffix(end) for end in ENDS if said.endswith(end)), said)
