"""The functions of vLLM that the adapter wraps or calls, with their parameters; other releases are refused.

:data:`ENGINE` has the range of versions for which the adapter was made. The parameters of functions are checked, too,
so that a development build with the same version number but other functions is not patched.
"""

from __future__ import annotations

from typing import Any, Final

from grammarspec.integrations.interfaces import Engine, Expected

__all__ = ["ENGINE", "EXPECTED", "Expected", "check", "found"]

ENGINE: Final = Engine("vLLM", "vllm", first=(0, 32), after=(0, 33))

_SELF = ("self",)
EXPECTED: Final = (
    Expected("vllm.config.structured_outputs", "StructuredOutputsConfig._validate_structured_output_config", _SELF),
    Expected(
        "vllm.sampling_params",
        "SamplingParams._validate_structured_outputs",
        ("self", "model_config", "structured_outputs_config", "tokenizer"),
    ),
    Expected("vllm.sampling_params", "StructuredOutputsParams.__post_init__", _SELF),
    Expected(
        "vllm.v1.engine.input_processor",
        "InputProcessor.__init__",
        ("self", "vllm_config", "renderer", "mm_registry"),
    ),
    Expected("vllm.v1.structured_output", "StructuredOutputManager.__init__", ("self", "vllm_config")),
    Expected("vllm.v1.structured_output", "StructuredOutputManager.grammar_init", ("self", "request")),
    Expected(
        "vllm.v1.structured_output",
        "StructuredOutputManager.grammar_bitmask",
        ("self", "requests", "structured_output_request_ids", "scheduled_spec_decode_tokens"),
    ),
    Expected(
        "vllm.v1.structured_output",
        "StructuredOutputManager._get_constraint_bounds",
        ("self", "request", "spec_tokens", "spec_tokens_committed"),
    ),
    Expected(
        "vllm.v1.structured_output.backend_types",
        "StructuredOutputBackend.compile_grammar",
        ("self", "request_type", "grammar_spec", "stop_token_ids"),
    ),
    Expected(
        "vllm.v1.structured_output.backend_types",
        "StructuredOutputBackend.allocate_token_bitmask",
        ("self", "max_num_seqs"),
    ),
    Expected("vllm.v1.structured_output.backend_types", "StructuredOutputBackend.destroy", _SELF),
    Expected(
        "vllm.v1.structured_output.backend_types",
        "StructuredOutputGrammar.accept_tokens",
        ("self", "request_id", "tokens"),
    ),
    Expected("vllm.v1.structured_output.backend_types", "StructuredOutputGrammar.validate_tokens", ("self", "tokens")),
    Expected("vllm.v1.structured_output.backend_types", "StructuredOutputGrammar.rollback", ("self", "num_tokens")),
    Expected(
        "vllm.v1.structured_output.backend_types",
        "StructuredOutputGrammar.fill_bitmask",
        ("self", "bitmask", "batch_index"),
    ),
    Expected("vllm.v1.structured_output.backend_types", "StructuredOutputGrammar.is_terminated", _SELF),
    Expected("vllm.v1.structured_output.backend_types", "StructuredOutputGrammar.reset", _SELF),
    Expected(
        "vllm.entrypoints.generate.beam_search.offline",
        "BeamSearchOfflineMixin._init_beam_search_structured_output",
        ("self", "structured_outputs", "tokenizer"),
    ),
    Expected("vllm.parser.abstract_parser", "_xgrammar_supports", ("structured_outputs",)),
)
_FIELDS: Final = (
    ("vllm.config.structured_outputs", "StructuredOutputsConfig", ("backend", "disable_any_whitespace")),
    (
        "vllm.sampling_params",
        "StructuredOutputsParams",
        ("json", "regex", "choice", "grammar", "json_object", "whitespace_pattern", "structural_tag", "_backend"),
    ),
)
_OPTIONS: Final = ("JSON", "JSON_OBJECT", "REGEX", "GRAMMAR", "CHOICE", "STRUCTURAL_TAG")


def found(module: str, name: str) -> Any:
    """The value of a name in a module of vLLM.

    Raises:
        UnsupportedFeature: there is no such name.
    """
    return ENGINE.found(module, name)


def check() -> None:
    """Check the version of vLLM, and that all functions and classes that the adapter uses are as expected.

    Raises:
        MissingPackage: vLLM is not installed.
        UnsupportedFeature: it has another version, or a name in it is not as expected; the message says which.
    """
    ENGINE.check_version()
    ENGINE.check_parameters(EXPECTED)
    for module, name, fields in _FIELDS:
        there = tuple(getattr(found(module, name), "__dataclass_fields__", ()))
        missing = [field for field in fields if field not in there]
        if missing:
            raise ENGINE.refused(f"{module}.{name} has no field {missing[0]}")
    kinds = found("vllm.v1.structured_output.backend_types", "StructuredOutputOptions").__members__
    unknown = set(kinds) ^ set(_OPTIONS)
    if unknown:
        raise ENGINE.refused(
            f"the kinds of structured outputs are not those expected: they differ by {', '.join(sorted(unknown))}"
        )
