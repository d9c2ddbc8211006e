"""SGLang's own code with the adapter, without a GPU: ``python -m tests.integrations.sglang_checks FOLDER MODEL``.

From its wheel run: the plugins' loader, the choices of arguments, the registry, ``GrammarManager`` (with a scheduler
that has what it reads), ``ReasonerGrammarBackend``, the masks of a batch and of trees of drafts. The last line printed
is a report as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FOLDER, MODEL = Path(sys.argv[1]), sys.argv[2]
sys.path.insert(1, str(FOLDER / "sglang"))
sys.path.append(str(FOLDER / "packages"))

import torch  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

from grammarspec.integrations import sglang as adapter  # noqa: E402

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}


class Requests:
    """SGLang's manager of grammars, in a scheduler that has what it reads."""

    def __init__(self, tokenizer: Any, width: int, serving: dict[str, Any]) -> None:
        from sglang.srt.constrained import base_grammar_backend, grammar_manager

        given = SimpleNamespace(
            reasoning_parser=None,
            enable_strict_thinking=False,
            constrained_json_whitespace_pattern=None,
            constrained_json_disable_any_whitespace=False,
            constrained_json_max_whitespace_cnt=None,
            skip_tokenizer_init=False,
        )
        vars(given).update(serving)
        import sglang.srt.runtime_context as context

        context.get_serving = grammar_manager.get_serving = lambda: given
        kernel = SimpleNamespace(kernel=SimpleNamespace(grammar_backend="grammarspec"))
        base_grammar_backend.get_exec = lambda: kernel
        grammar_manager.get_parallel = lambda: SimpleNamespace(pp_rank=0, pp_size=1)
        group = SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
        config = SimpleNamespace(vocab_size=width, hf_eos_token_id={tokenizer.eos_token_id}, think_end_ids=None)
        scheduler = SimpleNamespace(
            server_args=None,
            tokenizer=tokenizer,
            model_config=config,
            dp_tp_cpu_group=None,
            dp_tp_group=group,
            pp_group=None,
        )
        self.manager = grammar_manager.GrammarManager(scheduler)
        self.count = 0

    def admit(self, reasoning: bool = False, **given: Any) -> Any:
        """A request, when the manager says that it is ready, and whether its grammar was kept."""
        names = ("json_schema", "regex", "ebnf", "structural_tag")
        asked = SimpleNamespace(**{name: given.get(name) for name in names})
        asked.ebnf_full_assistant, asked.custom_params = False, None
        self.count += 1
        request = SimpleNamespace(
            rid=str(self.count),
            sampling_params=asked,
            origin_input_ids=[1],
            require_reasoning=reasoning,
            grammar=None,
            grammar_key=None,
            grammar_wait_ct=0,
            error=None,
        )
        request.set_finish_with_abort = lambda message: setattr(request, "error", message)
        request.finished = lambda: request.error is not None
        request.kept = not self.manager.process_req_with_grammar(request)
        end = time.monotonic() + 60
        while not request.kept and time.monotonic() < end:
            if request in self.manager.get_ready_grammar_requests():
                break
        return request


def decode(requests: list[Any], tokens: list[list[int]], width: int) -> None:
    """Give each request its tokens, by the masks of SGLang's batches."""
    from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo

    for step in range(max(map(len, tokens))):
        batch = SimpleNamespace(
            grammars=[one.grammar for one in requests],
            temperatures=[1.0] * len(requests),
            vocab_size=width,
            device="cpu",
        )
        SamplingBatchInfo.update_regex_vocab_mask(batch)
        logits = torch.zeros(len(requests), width)
        batch.grammar_mask.apply(logits)
        for row, (one, own) in enumerate(zip(requests, tokens, strict=True)):
            if step < len(own):
                assert logits[row, own[step]] == 0, (one.rid, step)
                one.grammar.accept_token(own[step])


def main() -> None:
    from importlib.metadata import EntryPoint
    from unittest.mock import patch

    from sglang.srt import plugins
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    point = EntryPoint("grammarspec", "grammarspec.integrations.sglang:plugin", plugins.GENERAL_PLUGINS_GROUP)
    with patch.object(plugins, "entry_points", lambda group: [point] if group == point.group else []):
        plugins.load_plugins()
    assert GRAMMAR_BACKEND_CHOICES[-1] == "grammarspec", GRAMMAR_BACKEND_CHOICES
    adapter.register()

    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    markers = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
    tokenizer.add_special_tokens({"additional_special_tokens": markers})  # as models have them that reason
    width = len(tokenizer) + 60  # models have more logits than their tokenizers have tokens
    requests = Requests(tokenizer, width, {})
    spell, end = (lambda text: tokenizer.encode(text, add_special_tokens=False)), [tokenizer.eos_token_id]
    schema = json.dumps(SCHEMA)
    first = requests.admit(json_schema=schema)
    batch = [first, requests.admit(json_schema=schema), requests.admit(regex="[a-c]+d?")]
    batch.append(requests.admit(ebnf='root ::= "yes" | "no " [0-9]+'))
    assert [one.kept for one in batch] == [False, True, False, False] and not any(one.error for one in batch)
    texts = ['{"a": 12, "b": "x y"}', '{"a":-3}', "abcd", "no 42"]
    decode(batch, [spell(text) + end for text in texts], width)
    assert all(one.grammar.is_terminated() for one in batch)

    errors = [requests.admit(**one).error for one in _wrong()] + [requests.admit(**one).error for one in _wrong()]
    assert all(error.startswith("Failed to compile ") for error in errors), errors
    nodes = trees(requests.admit(regex="[ab]+c|[a-z]{3} [0-9]+").grammar, tokenizer, width)
    reasons(tokenizer, width, spell, end)
    print(json.dumps({"requests": requests.count, "errors": errors[: len(errors) // 2], "nodes": nodes}))


def _wrong() -> list[dict[str, str]]:
    return [
        {"json_schema": '{"type": "integer", "minimum": 2, "maximum": 1}'},
        {"json_schema": '{"$ref": "#/nowhere"}'},
        {"regex": "("},
        {"ebnf": "root ::= missing"},
        {"structural_tag": "{}"},
    ]


def trees(grammar: Any, tokenizer: Any, width: int) -> int:
    """Random trees of drafts: the rows that SGLang's traversal fills are those of a matcher that went there."""
    from sglang.srt.speculative.spec_utils import generate_token_bitmask

    choose, checked = random.Random(5), 0
    texts = ["a", "b", "ab", "abc", "c", "x", " ", " 12", "7", "cab"]
    pool = [token for text in texts for token in tokenizer.encode(text, add_special_tokens=False)]
    for _ in range(40):
        size = 12
        parents = [-1, *(choose.randrange(node) for node in range(1, size))]
        draft = [0, *(choose.choice([*pool, tokenizer.eos_token_id, width + 5]) for _ in range(size - 1))]
        child, sibling = [-1] * size, [-1] * size
        for node in range(1, size):
            place = child[parents[node]]
            if place == -1:
                child[parents[node]] = node
                continue
            while sibling[place] != -1:
                place = sibling[place]
            sibling[place] = node
        both = [SimpleNamespace(grammar=None), SimpleNamespace(grammar=grammar)]
        tensors = [torch.tensor([row, row]) for row in (child, sibling, draft)]
        mask, _ = generate_token_bitmask(both, *tensors, width)
        assert (mask[:size] == -1).all()
        for node in range(size):
            path, at = [], node
            while at > 0:
                path.append(draft[at])
                at = parents[at]
            matcher = grammar.guarded.matcher.constraint.matcher()
            row = torch.full((1, mask.shape[1]), -1, dtype=torch.int32)
            if matcher.accept_tokens(path[::-1]) == len(path) and not matcher.is_terminated:
                matcher.fill_bitmask(row)
                checked += 1
            assert torch.equal(mask[size + node], row[0]), (path, node)
    return checked


def reasons(tokenizer: Any, width: int, spell: Any, end: list[int]) -> None:
    """A model that reasons: the constraint begins behind the reasoning, which the strict mode bounds."""
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend, ReasonerGrammarObject

    serving = {"reasoning_parser": "qwen3", "enable_strict_thinking": True}
    requests = Requests(tokenizer, width, serving)
    assert isinstance(requests.manager.grammar_backend, ReasonerGrammarBackend)
    for kept in (False, True):
        one, other = requests.admit(reasoning=True, regex="[0-9]+"), requests.admit(reasoning=False, regex="[0-9]+")
        assert (one.kept, other.kept) == (kept, True) and isinstance(one.grammar, ReasonerGrammarObject)
        thought = spell("I think so.</think>")
        decode([one, other], [thought + spell("12") + end, spell("345") + end], width)
        assert one.grammar.is_terminated() and other.grammar.is_terminated()
        one.grammar.rollback(1)
        assert not one.grammar.is_terminated()
    assert requests.admit(reasoning=True, regex="(").error
    assert requests.manager.grammar_backend.init_strict_reasoning_grammar(True) is not None


if __name__ == "__main__":
    main()
