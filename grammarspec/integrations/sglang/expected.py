"""The functions and classes of SGLang that the adapter uses, with their parameters; other releases are refused."""

from __future__ import annotations

from typing import Any, Final

from grammarspec.integrations.interfaces import Engine, Expected

__all__ = ["BASE", "CHOICES", "ENGINE", "EXPECTED", "REASONER", "check"]

ENGINE: Final = Engine("SGLang", "sglang", first=(0, 5, 23), after=(0, 5, 24))
BASE: Final = "sglang.srt.constrained.base_grammar_backend"
REASONER: Final = "sglang.srt.constrained.reasoner_grammar_backend"
CHOICES: Final = "sglang.srt.arg_groups.choices"

_SELF = ("self",)
EXPECTED: Final = (
    Expected(BASE, "register_grammar_backend", ("name", "init_func")),
    Expected(BASE, "GrammarRow", ("row", "grammar")),
    Expected(BASE, "InvalidGrammarObject", ("error_message",)),
    Expected(BASE, "BaseGrammarObject.__init__", _SELF),
    Expected(BASE, "BaseGrammarObject.maybe_init_reasoning", ("self", "reasoning")),
    Expected(BASE, "BaseGrammarObject.accept_token", ("self", "token")),
    Expected(BASE, "BaseGrammarObject.rollback", ("self", "k")),
    Expected(BASE, "BaseGrammarObject.is_terminated", _SELF),
    Expected(BASE, "BaseGrammarObject.allocate_vocab_mask", ("self", "vocab_size", "batch_size", "device")),
    Expected(BASE, "BaseGrammarObject.fill_vocab_mask", ("self", "vocab_mask", "idx")),
    Expected(BASE, "BaseGrammarObject.fill_vocab_mask_batched", ("entries", "vocab_mask")),
    Expected(BASE, "BaseGrammarObject.reset_vocab_mask", ("vocab_mask",)),
    Expected(BASE, "BaseGrammarObject.move_vocab_mask", ("vocab_mask", "device")),
    Expected(BASE, "BaseGrammarObject.apply_vocab_mask", ("logits", "vocab_mask")),
    Expected(BASE, "BaseGrammarObject.copy", _SELF),
    Expected(BASE, "BaseGrammarObject.try_jump_forward", ("self", "tokenizer")),
    Expected(BASE, "BaseGrammarObject.jump_forward_str_state", ("self", "helper")),
    Expected(BASE, "BaseGrammarObject.jump_and_retokenize", ("self", "old_output_ids", "new_output_ids", "next_state")),
    Expected(BASE, "BaseGrammarBackend.__init__", _SELF),
    Expected(BASE, "BaseGrammarBackend.dispatch_json", ("self", "key_string")),
    Expected(BASE, "BaseGrammarBackend.dispatch_regex", ("self", "key_string")),
    Expected(BASE, "BaseGrammarBackend.dispatch_ebnf", ("self", "key_string")),
    Expected(BASE, "BaseGrammarBackend.dispatch_structural_tag", ("self", "key_string")),
    Expected(BASE, "BaseGrammarBackend._init_value_dispatch", ("self", "key", "require_reasoning")),
    Expected(BASE, "BaseGrammarBackend.get_cached_or_future_value", ("self", "key", "require_reasoning")),
    Expected(BASE, "BaseGrammarBackend.set_cache", ("self", "key", "value")),
    Expected(BASE, "BaseGrammarBackend.reset", _SELF),
    Expected(
        BASE,
        "BaseGrammarBackend.set_token_filter",
        ("self", "vocab_mask", "token_ids", "batch_idx", "is_allowed", "reset_vocab_mask"),
    ),
    Expected(
        REASONER,
        "ReasonerGrammarBackend.__init__",
        ("self", "grammar_backend", "reasoning_parser", "tokenizer", "enable_strict_thinking"),
    ),
    Expected(REASONER, "ReasonerGrammarBackend._init_value_dispatch", ("self", "key", "reasoning")),
    Expected(
        "sglang.srt.parser.reasoning_parser",
        "ReasoningParser.__init__",
        (
            "self",
            "model_type",
            "stream_reasoning",
            "force_reasoning",
            "request",
            "tokenizer",
            "tool_call_parser_active",
            "prefix",
        ),
    ),
    Expected("sglang.srt.runtime_context", "get_serving", ()),
)
_SERVING: Final = (
    "reasoning_parser",
    "enable_strict_thinking",
    "constrained_json_whitespace_pattern",
    "constrained_json_disable_any_whitespace",
    "constrained_json_max_whitespace_cnt",
)


def check() -> None:
    """Check the version of SGLang, and that all functions and classes that the adapter uses are as expected.

    Raises:
        MissingPackage: SGLang is not installed.
        UnsupportedFeature: it has another version, or a name in it is not as expected; the message says which.
    """
    ENGINE.check_version()
    ENGINE.check_parameters(EXPECTED)
    choices: Any = ENGINE.found(CHOICES, "GRAMMAR_BACKEND_CHOICES")
    if not isinstance(choices, list):
        raise ENGINE.refused(f"{CHOICES}.GRAMMAR_BACKEND_CHOICES is not a list")
    ENGINE.found(CHOICES, "add_grammar_backend_choices")
    declared = getattr(ENGINE.found("sglang.srt.arg_groups.fields.serving", "Serving"), "__annotations__", {})
    missing = [name for name in _SERVING if name not in declared]
    if missing:
        raise ENGINE.refused(f"the settings of serving have no {missing[0]}")
