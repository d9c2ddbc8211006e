"""What the loop costs beside the model's passes: ``python -m benchmarks.loop``.

The loop without drafts is compared with bare calls of the model's ``forward`` that read the same numbers of tokens,
in turns, for each way to choose tokens; masks and sampling are included. Texts are JSON of the prompts in
``prompts.json``, or free.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from transformers import DynamicCache

import grammarspec as gs
from grammarspec.decoding import Request, Sampling, generate_batch
from grammarspec.models.loading import encode_prompt, load_model, vocabulary_of

PROMPTS = Path(__file__).with_name("prompts.json")
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "drawn": {"temperature": 0.8},
    "top-p": {"temperature": 0.8, "top_p": 0.9},
    "seed": {"temperature": 0.8, "seed": 1},
    "seed, top-p": {"temperature": 0.8, "seed": 1, "top_p": 0.9},
    "penalties": {"temperature": 0.8, "repetition_penalty": 1.1, "presence_penalty": 0.2},
}
OURS = ("mask", "verify", "commit", "draft")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each way to choose tokens, at each batch size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="as for grammarspec generate (%(default)s)")
    parser.add_argument("--batch", type=int, action="append", help="rows side by side; may be given again (1, 8)")
    parser.add_argument("--tokens", type=int, default=32, help="of each text (%(default)s)")
    parser.add_argument("--turns", type=int, default=7, help="how often all of it is measured (%(default)s)")
    options = parser.parse_args(arguments)
    model, tokenizer = load_model(options.model)
    vocabulary = vocabulary_of(model, tokenizer)
    entries = json.loads(PROMPTS.read_text("utf-8"))
    for rows in options.batch or [1, 8]:
        prompts = [encode_prompt(tokenizer, entry["prompt"]) for entry in entries[:rows]]
        for constrained in (True, False):
            constraints = [
                gs.compile(gs.json_schema(entry["schema"]), vocabulary) if constrained else None
                for entry in entries[:rows]
            ]
            for name, way in WAYS.items():
                ratios, beside = [], []
                for _ in range(options.turns):
                    sampling = Sampling(max_tokens=options.tokens, **way)
                    requests = [
                        Request(prompt=prompt, matcher=each and each.matcher(), sampling=sampling)
                        for prompt, each in zip(prompts, constraints, strict=True)
                    ]
                    texts = [text for [text] in generate_batch(model, requests, vocabulary)]
                    # Rows that end leave the batch: the rounds that all rows took part in are compared.
                    shared = min(len(text.tokens) for text in texts) - 1
                    latencies = [seconds for seconds, _ in texts[0].statistics.latencies[:shared]]
                    last = max((text.statistics for text in texts), key=lambda found: found.target_passes)
                    beside.append(1e3 * sum(last.phase_seconds[phase] for phase in OURS) / last.target_passes)
                    ratios.append(bare(model, prompts, shared) / sum(latencies))
                what = "JSON" if constrained else "free text"
                speed = f"{median(ratios):.3f} of bare calls' speed [{min(ratios):.3f}, {max(ratios):.3f}]"
                milliseconds = f"{median(beside):.2f} ms beside a pass"
                print(f"batch {rows}  {what:9}  {name:12} {speed}  {milliseconds}", flush=True)


def bare(model: Any, prompts: Sequence[Sequence[int]], steps: int) -> float:
    """Seconds of bare passes that read one token of each row, behind prompts as long as these."""
    cache, longest = DynamicCache(), max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    with torch.inference_mode():
        model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        begin = perf_counter()
        for _ in range(steps):
            model(input_ids=ids[:, -1:], past_key_values=cache, use_cache=True, logits_to_keep=1)
        return perf_counter() - begin


if __name__ == "__main__":
    main()
