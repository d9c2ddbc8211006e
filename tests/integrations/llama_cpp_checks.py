"""llama-cpp-python itself with a mask: ``python -m tests.integrations.llama_cpp_checks FILE.gguf``, in its environment.

The last line printed is a report as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import llama_cpp

import grammarspec as gs
from grammarspec.integrations.llama_cpp import vocabulary_of_llama
from grammarspec.integrations.logits import SequenceLogitsProcessor
from tests.integrations.small_answers import PERSON, SUM


def main(path: str) -> None:
    llama = llama_cpp.Llama(path, n_ctx=256, verbose=False)
    vocabulary = vocabulary_of_llama(llama)
    spelled = "Grüße, 12 {\"a\": 'b'} 🙂".encode()
    assert vocabulary.decode(llama.tokenize(spelled, add_bos=False, special=False)) == spelled
    assert vocabulary.special_tokens["<|im_end|>"] in vocabulary.eos_token_ids

    def ask(grammar: Any, prompt: str, **options: Any) -> dict[str, Any]:
        processor = SequenceLogitsProcessor(gs.compile(grammar, vocabulary), vocabulary)
        text = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        processors = llama_cpp.LogitsProcessorList([processor])
        answer = llama.create_completion(text, max_tokens=60, logits_processor=processors, **options)
        processor.check()
        found = answer["choices"][0]
        return {"text": found["text"], "why": found["finish_reason"], "matches": grammar.matches(found["text"])}

    report = [
        ask(PERSON, "A person as JSON.", temperature=0.0),
        ask(PERSON, "A person as JSON.", temperature=1.5, seed=4),
        ask(gs.regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"), "A date.", temperature=0.0),
        ask(SUM, "A sum.", temperature=0.0),
    ]

    # What is raised is passed over by llama.cpp's C code: the text ends, and the error is kept.
    limited = gs.compile(gs.regex("[a-z]{40}"), vocabulary, limits=gs.Limits(max_states=4))
    processor = SequenceLogitsProcessor(limited, vocabulary)
    raised: list[Any] = []
    sys.unraisablehook = raised.append
    processors = llama_cpp.LogitsProcessorList([processor])
    answer = llama.create_completion("a", max_tokens=60, temperature=0.0, logits_processor=processors)
    assert isinstance(processor.failure, gs.LimitExceeded), processor.failure
    assert answer["choices"][0]["finish_reason"] == "stop", answer
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
