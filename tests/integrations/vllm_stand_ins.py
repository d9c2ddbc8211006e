"""Modules that stand in for vLLM: what the adapter touches, with the signatures of vLLM 0.32.0."""

from __future__ import annotations

import enum
from abc import ABCMeta
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

from pydantic import model_validator
from pydantic.dataclasses import dataclass as config

__all__ = ["StructuredOutputOptions", "VLLMValidationError", "stand_ins"]


class VLLMValidationError(ValueError):
    def __init__(self, message: str, *, parameter: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class StructuredOutputOptions(enum.Enum):
    JSON = enum.auto()
    JSON_OBJECT = enum.auto()
    REGEX = enum.auto()
    GRAMMAR = enum.auto()
    CHOICE = enum.auto()
    STRUCTURAL_TAG = enum.auto()


def stand_ins() -> dict[str, ModuleType]:
    """Modules with what the adapter touches, as vLLM 0.32.0 has it (its own bodies left out)."""
    names = Literal["auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"]

    @config
    class StructuredOutputsConfig:
        backend: names = "auto"
        disable_any_whitespace: bool = False
        disable_additional_properties: bool = False

        @model_validator(mode="after")
        def _validate_structured_output_config(self) -> Any:
            if self.disable_any_whitespace and self.backend not in ("xgrammar", "guidance"):
                raise ValueError("disable_any_whitespace is only supported for xgrammar and guidance backends.")
            return self

    members: dict[str, Any] = {
        "__annotations__": {"structured_outputs_config": StructuredOutputsConfig},
        "structured_outputs_config": field(default_factory=StructuredOutputsConfig),
    }
    whole: Any = config(type("VllmConfig", (), members))

    @dataclass
    class StructuredOutputsParams:
        json: Any = None
        regex: Any = None
        choice: Any = None
        grammar: Any = None
        json_object: Any = None
        disable_any_whitespace: bool = False
        whitespace_pattern: Any = None
        structural_tag: Any = None
        _backend: Any = field(default=None, init=False)

        def __post_init__(self) -> None:
            asked = (self.json, self.regex, self.choice, self.grammar, self.json_object, self.structural_tag)
            if sum(one is not None for one in asked) != 1:
                raise VLLMValidationError("one kind of structured outputs")

    class SamplingParams:
        def __init__(self, structured_outputs: Any = None) -> None:
            self.structured_outputs = structured_outputs

        def _validate_structured_outputs(
            self, model_config: Any, structured_outputs_config: Any, tokenizer: Any
        ) -> None:
            if self.structured_outputs is not None:
                self.structured_outputs._backend = "xgrammar"

    class InputProcessor:
        def __init__(self, vllm_config: Any, renderer: Any = None, *, mm_registry: Any = None) -> None:
            self.tokenizer = vllm_config.tokenizer

    class Abstract(metaclass=ABCMeta):  # noqa: B024  # only registered at
        """A class that others can be registered at, as vLLM's are."""

    class StructuredOutputBackend(Abstract):
        def compile_grammar(self, request_type: Any, grammar_spec: str, stop_token_ids: Any = None) -> Any: ...
        def allocate_token_bitmask(self, max_num_seqs: int) -> Any: ...
        def destroy(self) -> None: ...

    class StructuredOutputGrammar(Abstract):
        def accept_tokens(self, request_id: str, tokens: list[int]) -> bool: ...
        def validate_tokens(self, tokens: list[int]) -> list[int]: ...
        def rollback(self, num_tokens: int) -> None: ...
        def fill_bitmask(self, bitmask: Any, batch_index: int) -> None: ...
        def is_terminated(self) -> bool: ...
        def reset(self) -> None: ...

    class StructuredOutputManager:
        def __init__(self, vllm_config: Any) -> None:
            self.backend: Any = None
            self.vllm_config = vllm_config
            self.tokenizer = vllm_config.tokenizer

        def grammar_init(self, request: Any) -> None:
            if self.backend is None:
                raise ValueError("Unsupported structured output backend")
            request.grammar = self.backend.compile_grammar(*request.key, stop_token_ids=request.stop_token_ids)

        def _get_constraint_bounds(self, request: Any, spec_tokens: Any, spec_tokens_committed: bool = False) -> Any:
            return SimpleNamespace(grammar_start=0, constraint_start=0 if request.constrained else 1)

        def grammar_bitmask(
            self, requests: Any, structured_output_request_ids: Any, scheduled_spec_decode_tokens: Any
        ) -> Any:
            return "vLLM's own"

    class BeamSearchOfflineMixin:
        def _init_beam_search_structured_output(self, structured_outputs: Any, tokenizer: Any) -> Any:
            raise ValueError("Unsupported structured output backend")

    def _xgrammar_supports(structured_outputs: Any) -> bool:
        return False

    def get_structured_output_key(params: Any) -> Any:
        return StructuredOutputOptions.REGEX, params.regex

    contents: dict[str, dict[str, Any]] = {
        "vllm": {"__version__": "0.32.0+cpu", "__path__": []},
        "vllm.config": {"VllmConfig": whole, "__path__": []},
        "vllm.config.structured_outputs": {
            "StructuredOutputsBackend": names,
            "StructuredOutputsConfig": StructuredOutputsConfig,
        },
        "vllm.exceptions": {"VLLMValidationError": VLLMValidationError},
        "vllm.sampling_params": {"SamplingParams": SamplingParams, "StructuredOutputsParams": StructuredOutputsParams},
        "vllm.v1": {"__path__": []},
        "vllm.v1.engine": {"__path__": []},
        "vllm.v1.engine.input_processor": {"InputProcessor": InputProcessor},
        "vllm.v1.structured_output": {"StructuredOutputManager": StructuredOutputManager, "__path__": []},
        "vllm.v1.structured_output.backend_types": {
            "StructuredOutputBackend": StructuredOutputBackend,
            "StructuredOutputGrammar": StructuredOutputGrammar,
            "StructuredOutputOptions": StructuredOutputOptions,
        },
        "vllm.v1.structured_output.request": {"get_structured_output_key": get_structured_output_key},
        "vllm.entrypoints": {"__path__": []},
        "vllm.entrypoints.generate": {"__path__": []},
        "vllm.entrypoints.generate.beam_search": {"__path__": []},
        "vllm.entrypoints.generate.beam_search.offline": {"BeamSearchOfflineMixin": BeamSearchOfflineMixin},
        "vllm.parser": {"__path__": []},
        "vllm.parser.abstract_parser": {"_xgrammar_supports": _xgrammar_supports},
    }
    modules = {}
    for name, content in contents.items():
        modules[name] = ModuleType(name)
        vars(modules[name]).update(content)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, modules[name])
    return modules
