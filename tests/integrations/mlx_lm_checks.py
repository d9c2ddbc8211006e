"""MLX-LM itself with masks: ``python -m tests.integrations.mlx_lm_checks MODEL_DIRECTORY``, with MLX on the path.

The last line printed is a report as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mlx.core as mx
import mlx_lm
from mlx_lm.generate import BatchGenerator
from mlx_lm.sample_utils import make_sampler

import grammarspec as gs
from grammarspec.integrations.logits import SequenceLogitsProcessor
from tests.integrations.small_answers import PERSON, SUM

DATE = gs.regex("[0-9]{4}-[0-9]{2}-[0-9]{2}")


def chat(question: str) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def main(path: str) -> None:
    mx.random.seed(4)
    model, tokenizer = mlx_lm.load(path)
    size = model(mx.array([[1]])).shape[-1]
    ends = tokenizer.eos_token_ids
    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer._tokenizer, eos_token_ids=ends, size=size)

    def processor(grammar: Any) -> SequenceLogitsProcessor:
        return SequenceLogitsProcessor(gs.compile(grammar, vocabulary), vocabulary)

    def ask(grammar: Any, prompt: str, **options: Any) -> dict[str, Any]:
        mask = processor(grammar)
        text = mlx_lm.generate(model, tokenizer, chat(prompt), max_tokens=60, logits_processors=[mask], **options)
        mask.check()
        return {"text": text, "matches": grammar.matches(text)}

    report = [
        ask(PERSON, "A person as JSON."),
        ask(PERSON, "A person as JSON.", sampler=make_sampler(temp=1.5)),
        ask(DATE, "A date."),
        ask(SUM, "A sum."),
    ]

    # A batch: each sequence has processors of its own.
    grammars = [PERSON, DATE, gs.regex("yes|no")]
    batch = BatchGenerator(model, max_tokens=60, stop_tokens=[[end] for end in ends])
    prompts = [tokenizer.encode(chat(prompt)) for prompt in ("A person as JSON.", "A date.", "Is it late?")]
    numbers = batch.insert(prompts, logits_processors=[[processor(grammar)] for grammar in grammars])
    found: dict[int, list[int]] = {number: [] for number in numbers}
    while answers := batch.next_generated():
        for one in answers:
            if one.finish_reason != "stop":
                found[one.uid].append(one.token)
    for number, grammar in zip(numbers, grammars, strict=True):
        text = tokenizer.decode(found[number])
        report.append({"text": text, "matches": grammar.matches(text)})

    # A limit that is exceeded is raised out of generate.
    limited = gs.compile(gs.regex("[a-z]{40}"), vocabulary, limits=gs.Limits(max_states=4))
    try:
        mlx_lm.generate(model, tokenizer, "a", logits_processors=[SequenceLogitsProcessor(limited, vocabulary)])
    except gs.LimitExceeded:
        pass
    else:
        raise AssertionError("the limit was not exceeded")

    # The model as its own draft model: at the higher temperature, most drafts are rejected.
    for options in ({}, {"sampler": make_sampler(temp=1.5)}):
        report.append(ask(PERSON, "A person as JSON.", draft_model=model, num_draft_tokens=3, **options))
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1])
