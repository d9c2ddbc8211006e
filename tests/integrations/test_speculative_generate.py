"""Our loop inside ``generate`` of transformers: against ``generate`` itself, and what it refuses."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from grammarspec.decoding import Sampling  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, Forced, Lookup  # noqa: E402
from grammarspec.integrations.transformers import (  # noqa: E402
    ConstraintLogitsProcessor,
    speculative_generate,
)
from grammarspec.integrations.transformers import generate as module  # noqa: E402
from tests import tiers  # noqa: E402
from tests.oracles.languages import EOS, PAD, SCHEMA, VOCABULARY, matches, satisfies  # noqa: E402

CASES = [
    matches(r"[a-z]{1,12}"),
    matches(r"(yes|no|maybe)( (yes|no|maybe)){0,3}"),
    matches(r'\{"name": "[A-Zé漢]{1,8}", "age": \d{1,3}\}'),
    satisfies(SCHEMA),
]
CONSTRAINTS = [gs.compile(grammar, VOCABULARY) for grammar, _ in CASES]

# It holds parts of all languages, so that prompt lookup finds drafts in it.
PROMPT = list(b'yes no maybe abcabc {"name": "ABBA", "age": 12} {"answer":"no","flags":[true,false]} 20')
PROMPTS = [PROMPT, PROMPT[:7], PROMPT[4:40], PROMPT[:11], PROMPT[50:]]
ORDER = [2, None, 0, 3, 1]
MIXED = [None if case is None else CONSTRAINTS[case] for case in ORDER]

pytestmark = pytest.mark.usefixtures("drafts_pay")


def is_member(case: int, tokens: Sequence[int]) -> bool:
    """Whether this is a text of the language, its end, and nothing but padding behind that."""
    end = list(tokens).index(EOS)
    assert set(tokens[end + 1 :]) <= {PAD}
    return bool(CASES[case][1](VOCABULARY.decode(tokens[:end]).decode()))


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(tiny_model_directory, dtype=torch.float32)


@pytest.fixture(scope="module")
def drafts(model: Any) -> dict[str, dict[str, Any]]:
    """Options that say where drafts come from; those of the model itself are all accepted, those of the other not."""
    torch.manual_seed(1)
    other = transformers.LlamaForCausalLM(model.config)
    return {
        "none": {"proposers": ()},
        "default": {},
        "same": {"draft_model": copy.deepcopy(model)},
        "other": {"draft_model": other, "gamma": 3},
        "lookup": {"prompt_lookup_num_tokens": 4},
        "early exit": {"assistant_early_exit": 1},
        "everything": {"draft_model": other, "prompt_lookup_num_tokens": 2, "assistant_early_exit": 1},
        "by hand": {"proposers": [Lookup(2), DraftModel(other, masked=False)], "gamma": 7},
    }


WAYS = ["none", "default", "same", "other", "lookup", "early exit", "everything", "by hand"]
ways = pytest.mark.parametrize("way", WAYS)


def generate(model: Any, prompts: Sequence[Sequence[int]], seed: int = 0, **options: Any) -> Any:
    """The output for prompts that are padded on the left."""
    width = max(len(prompt) for prompt in prompts)
    ids = torch.tensor([[PAD] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    torch.manual_seed(seed)
    return model.generate(ids, **{"attention_mask": mask, "max_new_tokens": 60, "pad_token_id": PAD} | options)


def ours(model: Any, prompts: Any, constraint: Any, **options: Any) -> Any:
    options = {"vocabulary": VOCABULARY, "constraint": constraint} | options
    return generate(model, prompts, custom_generate=speculative_generate, **options)


def theirs(model: Any, prompts: Any, constraint: Any, **options: Any) -> Any:
    if constraint is not None:
        options["logits_processor"] = transformers.LogitsProcessorList([ConstraintLogitsProcessor(constraint)])
    return generate(model, prompts, **options)


@pytest.fixture(scope="module")
def expected(model: Any) -> Any:
    """What transformers gives for all prompts, with options; made once for all that compare something with it."""
    return cache(lambda **options: theirs(model, PROMPTS, MIXED, **options))


def same(left: Any, right: Any) -> bool:
    return left.dtype == right.dtype and torch.equal(left, right)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What our loop is called with, and what it gives."""
    seen: list[dict[str, Any]] = []
    loop = module.generate_batch

    def spy(model: Any, requests: Any, vocabulary: Any, **options: Any) -> Any:
        results = loop(model, requests, vocabulary, **options)
        seen.append({"requests": requests, "results": results} | options)
        return results

    monkeypatch.setattr(module, "generate_batch", spy)
    return seen


# Greedy search: the same tokens, whatever is drafted.


@pytest.mark.combined
@ways
@pytest.mark.parametrize("case", [None, *range(len(CASES))])
@pytest.mark.parametrize(
    "options", [{}, {"repetition_penalty": 1.7}, {"max_new_tokens": 7}, {"max_new_tokens": None, "max_length": 93}]
)
def test_greedy(model: Any, drafts: Any, way: str, case: int | None, options: dict[str, Any]) -> None:
    constraint = None if case is None else CONSTRAINTS[case]
    output = ours(model, [PROMPT], constraint, **drafts[way], **options)
    assert same(output, theirs(model, [PROMPT], constraint, **options))
    if case is not None and options.get("max_new_tokens", 60) == 60:
        assert is_member(case, output[0, len(PROMPT) :].tolist())


@pytest.mark.combined
@ways
@pytest.mark.parametrize("options", [{}, {"repetition_penalty": 1.7}, {"max_new_tokens": 7}])
def test_batch_of_prompts_of_different_lengths(
    model: Any, drafts: Any, expected: Any, way: str, options: dict[str, Any]
) -> None:
    output = ours(model, PROMPTS, MIXED, **drafts[way], **options)
    assert same(output, expected(**options))
    assert output.shape[1] > max(map(len, PROMPTS)) + 6


@pytest.mark.combined
@ways
@pytest.mark.parametrize("case", [1, None])
def test_one_constraint_for_all_prompts(model: Any, drafts: Any, way: str, case: int | None) -> None:
    constraint = None if case is None else CONSTRAINTS[case]
    output = ours(model, PROMPTS[:3], constraint, **drafts[way], max_new_tokens=30)
    assert same(output, theirs(model, PROMPTS[:3], constraint, max_new_tokens=30))


def test_the_comparisons_compare_something(model: Any, expected: Any) -> None:
    plain, short = expected(), expected(max_new_tokens=7)
    assert not same(plain, expected(repetition_penalty=1.7))
    assert not same(plain, theirs(model, PROMPTS, None))
    assert short.shape[1] == len(PROMPT) + 7 < plain.shape[1]
    assert (plain[:, len(PROMPT) :] == PAD).any()


def test_padding_is_the_end_where_there_is_none(model: Any) -> None:
    prompts = [PROMPT[:9], PROMPT[7:16]]
    options = {"pad_token_id": None, "attention_mask": None}
    constraints = [CONSTRAINTS[3], gs.compile(gs.choice(["a"]), VOCABULARY)]
    output = ours(model, prompts, constraints, **options)
    assert same(output, theirs(model, prompts, constraints, **options))
    assert (output[:, -1] == EOS).all()


def test_without_a_mask_padding_is_seen_as_generate_sees_it(model: Any, expected: Any) -> None:
    output = ours(model, PROMPTS, MIXED, attention_mask=None)
    assert same(output, expected())


@pytest.mark.slow
def test_where_drafts_come_from(model: Any, drafts: Any, calls: list[dict[str, Any]]) -> None:
    expected = {
        "none": ([], 16),
        "default": (["forced", "lookup"], 16),
        "same": (["forced", "model"], 16),
        "other": (["forced", "model"], 3),
        "lookup": (["forced", "lookup"], 4),
        "early exit": (["forced", "early-exit"], 16),
        "everything": (["forced", "lookup", "early-exit", "model"], 2),
        "by hand": (["lookup", "model"], 7),
    }
    assert sorted(expected) == sorted(drafts)
    for way, (names, gamma) in expected.items():
        ours(model, [PROMPT, PROMPT], [CONSTRAINTS[3], None], **drafts[way], max_new_tokens=30)
        assert [proposer.name for proposer in calls[-1]["proposers"]] == names
        assert calls[-1]["gamma"] == gamma
        statistics = calls[-1]["results"][0][0].statistics
        assert bool(statistics.accepted) == (way != "none")
        assert set(statistics.proposed) <= {*names, "preferred"}
    ours(model, [PROMPT], None)
    assert calls[-1]["proposers"] == []
    ours(model, [PROMPT], None, prompt_lookup_num_tokens=6, max_matching_ngram_size=4)
    assert [type(proposer) for proposer in calls[-1]["proposers"]] == [Lookup]
    assert max(calls[-1]["proposers"][0].lengths) == 4
    assert calls[-1]["gamma"] == 6


def test_drafts_are_refused_and_save_passes(model: Any, drafts: Any, calls: list[dict[str, Any]]) -> None:
    passes = {}
    for way in ("none", "same", "other"):
        ours(model, [PROMPT], CONSTRAINTS[0], **drafts[way])
        statistics = calls[-1]["results"][0][0].statistics
        passes[way] = statistics.target_passes
        if way == "other":
            assert sum(statistics.accepted.values()) < sum(statistics.proposed.values())
    assert passes["same"] < passes["none"]


# Sampling.


@pytest.mark.combined
@ways
@pytest.mark.parametrize("options", [{"top_k": 0}, {"temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.01}])
def test_sampled_texts(model: Any, drafts: Any, way: str, options: dict[str, Any]) -> None:
    options = drafts[way] | options | {"do_sample": True}
    outputs, cases = [], tiers.some(range(len(CASES)), least=2)
    for seed in (5, 5, 6):
        outputs.append([ours(model, [PROMPT] * 3, CONSTRAINTS[case], seed=seed, **options) for case in cases])
        for case, output in zip(cases, outputs[-1], strict=True):
            for row in output.tolist():
                assert row[: len(PROMPT)] == PROMPT
                assert is_member(case, row[len(PROMPT) :])
    assert all(same(first, again) for first, again in zip(*outputs[:2], strict=True))
    assert not all(same(first, other) for first, other in zip(*outputs[1:], strict=True))


@pytest.mark.parametrize("way", ["none", "default", "other"])
def test_several_texts_of_each_prompt(model: Any, drafts: Any, way: str) -> None:
    options = {"do_sample": True, "top_k": 0, "num_return_sequences": 3, "max_new_tokens": 80}
    output = ours(model, PROMPTS, MIXED, **drafts[way], **options)
    width = len(PROMPT)
    assert output.shape[0] == 3 * len(PROMPTS)
    texts = [row[width:].tolist() for row in output]
    for number, row in enumerate(output):
        prompt = PROMPTS[number // 3]
        assert row[:width].tolist() == [PAD] * (width - len(prompt)) + prompt
        case = ORDER[number // 3]
        assert case is None or is_member(case, texts[number])
    assert any(texts[row] != texts[row + 1] for row in range(0, len(texts), 3))


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}, {"temperature": 1e-4}])
def test_sampling_what_leaves_no_choice_is_greedy_search(model: Any, expected: Any, options: dict[str, Any]) -> None:
    output = ours(model, PROMPTS, MIXED, do_sample=True, **options)
    assert same(output, expected())


STOPS = ["e", "no"]


@pytest.mark.filterwarnings("ignore:Using the model-agnostic default")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"max_new_tokens": 3}, {"max_tokens": 3}),
        ({"max_new_tokens": None, "max_length": 100}, {"max_tokens": 100 - len(PROMPT)}),
        ({"max_new_tokens": None}, {"max_tokens": 20}),
        ({"stopping_criteria": [transformers.MaxLengthCriteria(90)]}, {"max_tokens": 90 - len(PROMPT)}),
        ({"temperature": 0.5, "top_k": 3, "top_p": 0.5, "min_p": 0.5}, {}),
        ({"repetition_penalty": 1.3, "renormalize_logits": True}, {"repetition_penalty": 1.3}),
        ({"do_sample": True}, {"temperature": 1.0, "top_k": 50}),
        ({"do_sample": True, "top_k": 0, "top_p": 1.0}, {"temperature": 1.0}),
        (
            {"do_sample": True, "temperature": 0.5, "top_k": 7, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.3},
            {"temperature": 0.5, "top_k": 7, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.3},
        ),
        (
            {"generation_config": transformers.GenerationConfig(do_sample=True, temperature=2.0, top_k=4)},
            {"temperature": 2.0, "top_k": 4},
        ),
        ({"stop_strings": STOPS}, {"stop": STOPS}),
        ({"stop_strings": "e"}, {"stop": ["e"]}),
    ],
)
def test_settings(model: Any, calls: list[Any], options: dict[str, Any], expected: dict[str, Any]) -> None:
    ours(model, [PROMPT], CONSTRAINTS[1], **options)
    [request] = calls[-1]["requests"]
    assert request.sampling == Sampling(**{"max_tokens": 60, "stop": []} | expected)
    assert (request.prompt, request.n) == (PROMPT, 1)


# Stop texts and streams.


@pytest.fixture(scope="module")
def tokenizer(tiny_model_directory: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(tiny_model_directory)


@pytest.mark.combined
@ways
@pytest.mark.parametrize("stops", ["o", ["e n", "s", "1"], ["answer", "na"], ["never"]])
def test_stop_strings(model: Any, drafts: Any, way: str, stops: Any, tokenizer: Any) -> None:
    criterion = transformers.StopStringCriteria(tokenizer, stops)
    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[EOS])
    prompt, ended = tokenizer.encode(bytes(PROMPT).decode()), 0
    for grammar, _ in CASES:
        constraint = gs.compile(grammar, vocabulary)
        expected = theirs(model, [prompt], constraint, stop_strings=stops, tokenizer=tokenizer)
        for given in ({"stop_strings": stops}, {"stopping_criteria": [criterion]}):
            output = ours(model, [prompt], constraint, vocabulary=vocabulary, **drafts[way], **given)
            assert same(output, expected)
        ended += int(expected[0, -1]) != EOS
    assert bool(ended) == (stops != ["never"])


def test_stop_strings_in_a_batch(model: Any, expected: Any) -> None:
    output = ours(model, PROMPTS, MIXED, stop_strings=["a", '"f'])
    plain = expected()
    stopped = 0
    for row, whole in zip(output[:, len(PROMPT) :].tolist(), plain[:, len(PROMPT) :].tolist(), strict=True):
        kept = row.index(PAD) if PAD in row else len(row)
        assert row[:kept] == whole[:kept]
        text = VOCABULARY.decode(row[:kept])
        at = min((text.index(stop) for stop in (b"a", b'"f') if stop in text), default=None)
        assert (row[kept - 1] == EOS or kept == 60) if at is None else len(text) - at <= 4
        stopped += at is not None
    assert 0 < stopped < len(PROMPTS)


class Recorder(transformers.generation.streamers.BaseStreamer):
    def __init__(self) -> None:
        self.got: list[Any] = []

    def put(self, value: Any) -> None:
        self.got.append(value.tolist())

    def end(self) -> None:
        self.got.append("end")


@pytest.mark.combined
@pytest.mark.parametrize("options", [{}, {"do_sample": True}, {"max_new_tokens": 11}, {"stop_strings": "f"}])
@pytest.mark.parametrize("way", ["none", "default", "same"])
def test_streamer(model: Any, drafts: Any, way: str, options: dict[str, Any]) -> None:
    recorder = Recorder()
    output = ours(model, [PROMPT], CONSTRAINTS[3], token_streamer=recorder, gamma=5, **drafts[way], **options)
    prompt, *pieces, end = recorder.got
    assert (prompt, end) == ([PROMPT], "end")
    assert [token for piece in pieces for token in piece] == output[0, len(PROMPT) :].tolist()
    assert all(pieces)
    assert same(output, ours(model, [PROMPT], CONSTRAINTS[3], **drafts[way], **options))
    assert (max(map(len, pieces)) > 1) == (way != "none")
    assert len(pieces) > 1


def test_streamer_of_transformers(model: Any, tokenizer: Any) -> None:
    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[EOS])
    constraint = gs.compile(gs.choice(["a long answer of some words"]), vocabulary)
    streamer = transformers.TextIteratorStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True, timeout=60)
    ours(model, [PROMPT], constraint, vocabulary=vocabulary, token_streamer=streamer)
    assert "".join(streamer) == "a long answer of some words"


# What is refused.


class Stop(transformers.StoppingCriteria):
    def __call__(self, input_ids: Any, scores: Any, **options: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"num_beams": 2}, "num_beams"),
        ({"num_beams": 2, "num_return_sequences": 2}, "num_beams"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "penalty_alpha"),
        ({"dola_layers": "high"}, "dola_layers"),
        ({"force_words_ids": [[5]], "num_beams": 2}, "force_words_ids"),
        ({"use_mtp": True}, "use_mtp"),
        ({"assistant_ensemble_weight": 0.5}, "assistant_ensemble_weight"),
        ({"speculation_type": "dflash"}, "speculation_type"),
        ({"cache_implementation": "static"}, "cache_implementation"),
        ({"return_dict_in_generate": True}, "return_dict_in_generate"),
        ({"return_dict_in_generate": True, "output_scores": True}, "output_scores"),
        ({"return_dict_in_generate": True, "output_logits": True}, "output_logits"),
        ({"return_dict_in_generate": True, "output_attentions": True}, "output_attentions"),
        ({"return_dict_in_generate": True, "output_hidden_states": True}, "output_hidden_states"),
        ({"guidance_scale": 1.5}, "guidance_scale"),
        ({"sequence_bias": [[[5], 1.0]]}, "sequence_bias"),
        ({"encoder_repetition_penalty": 1.5}, "encoder_repetition_penalty"),
        ({"no_repeat_ngram_size": 2}, "no_repeat_ngram_size"),
        ({"encoder_no_repeat_ngram_size": 2}, "encoder_no_repeat_ngram_size"),
        ({"bad_words_ids": [[5]]}, "bad_words_ids"),
        ({"min_length": 2}, "min_length"),
        ({"min_new_tokens": 2}, "min_new_tokens"),
        ({"prefix_allowed_tokens_fn": lambda batch, ids: [5]}, "prefix_allowed_tokens_fn"),
        ({"forced_bos_token_id": 5}, "forced_bos_token_id"),
        ({"forced_eos_token_id": EOS}, "forced_eos_token_id"),
        ({"remove_invalid_values": True}, "remove_invalid_values"),
        ({"exponential_decay_length_penalty": (5, 1.5)}, "exponential_decay_length_penalty"),
        ({"suppress_tokens": [5]}, "suppress_tokens"),
        ({"begin_suppress_tokens": [5]}, "begin_suppress_tokens"),
        ({"do_sample": True, "top_h": 0.5}, "top_h"),
        ({"do_sample": True, "typical_p": 0.5}, "typical_p"),
        ({"do_sample": True, "epsilon_cutoff": 0.1}, "epsilon_cutoff"),
        ({"do_sample": True, "eta_cutoff": 0.1}, "eta_cutoff"),
        ({"watermarking_config": transformers.WatermarkingConfig()}, "watermarking_config"),
        (
            {"watermarking_config": transformers.SynthIDTextWatermarkingConfig(keys=[1, 2, 3], ngram_len=2)},
            "watermarking_config",
        ),
        ({"max_time": 9.0}, "max_time"),
        ({"stopping_criteria": [Stop()]}, "the stopping criterion Stop"),
        (
            {"logits_processor": [ConstraintLogitsProcessor(CONSTRAINTS[0])]},
            "the logits processor ConstraintLogitsProcessor",
        ),
        # Kinds that are understood, but of which it is not clear what is meant.
        ({"logits_processor": [transformers.TopKLogitsWarper(5)]}, "the logits processor TopKLogitsWarper"),
        (
            {"do_sample": True, "logits_processor": [transformers.TopKLogitsWarper(50)]},
            "the logits processor TopKLogitsWarper",
        ),
        (
            {"logits_processor": [transformers.RepetitionPenaltyLogitsProcessor(1.5, 3)]},
            "the logits processor RepetitionPenaltyLogitsProcessor",
        ),
        (
            {
                "repetition_penalty": 1.5,
                "logits_processor": [transformers.RepetitionPenaltyLogitsProcessor(1.5, prompt_ignore_length=3)],
            },
            "the logits processor RepetitionPenaltyLogitsProcessor",
        ),
        ({"past_key_values": transformers.DynamicCache()}, "(past_key_values|cache)"),  # which it is from 5.24 on
        ({"position_ids": torch.arange(len(PROMPT))[None] + 1}, "position_ids"),
        ({"inputs_embeds": torch.zeros(1, len(PROMPT), 32)}, "inputs_embeds"),
        ({"output_router_logits": True}, "output_router_logits"),
    ],
)
def test_refuses_what_it_does_not_translate(model: Any, options: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=rf"speculative_generate does not support .*\b{name}\b"):
        ours(model, [PROMPT], CONSTRAINTS[0], **options)


def test_names_all_that_it_does_not_translate(model: Any) -> None:
    with pytest.raises(ValueError, match=r"support num_beams, no_repeat_ngram_size, max_time$"):
        ours(model, [PROMPT], CONSTRAINTS[0], num_beams=2, no_repeat_ngram_size=2, max_time=9.0)


def test_takes_settings_that_change_nothing(model: Any) -> None:
    expected = theirs(model, [PROMPT], CONSTRAINTS[2])
    idle = {
        "num_beams": 1,
        "typical_p": 0.5,  # for sampling only
        "no_repeat_ngram_size": 0,
        "return_dict_in_generate": False,
        "cache_implementation": "dynamic",
        "use_cache": False,
        "position_ids": torch.arange(len(PROMPT))[None],
    }
    for name, value in idle.items():
        assert same(ours(model, [PROMPT], CONSTRAINTS[2], **{name: value}), expected)


def test_end_tokens_must_agree(model: Any) -> None:
    endless = copy.deepcopy(model)
    endless.generation_config.eos_token_id = None
    for ends in ([EOS, PAD], [PAD], None):
        with pytest.raises(ValueError, match="generate stops at eos_token_id"):
            ours(endless, [PROMPT], CONSTRAINTS[1], eos_token_id=ends)
    both = gs.Vocabulary.from_tokens([*(bytes([value]) for value in range(256)), None, None], [PAD, EOS])
    twice = gs.compile(gs.regex("[a-z]{1,12}"), both)
    with pytest.raises(ValueError, match=r"stops at eos_token_id=\[256\], but .* end with \[256, 257\]"):
        ours(model, [PROMPT], twice, vocabulary=both)
    options = {"eos_token_id": [EOS, PAD], "pad_token_id": EOS}
    output = ours(model, [PROMPT], twice, vocabulary=both, **options)
    assert same(output, theirs(model, [PROMPT], twice, **options))


def test_refuses_wrong_arguments(model: Any) -> None:
    constraint = CONSTRAINTS[0]
    with pytest.raises(TypeError, match="vocabulary"):
        generate(model, [PROMPT], custom_generate=speculative_generate, constraint=constraint)
    for wrong in ([constraint.matcher()], ["a"]):
        with pytest.raises(TypeError, match="expected a Constraint or None, not"):
            ours(model, [PROMPT], wrong)
    for count in (0, 1, 3, 4):
        with pytest.raises(ValueError, match=f"{count} constraints for 2 prompts"):
            ours(model, [PROMPT] * 2, [constraint] * count, do_sample=True, num_return_sequences=2)
    for options in ({"draft_model": model}, {"prompt_lookup_num_tokens": 3}, {"assistant_early_exit": 1}):
        with pytest.raises(ValueError, match=f"proposers cannot be combined with {next(iter(options))}"):
            ours(model, [PROMPT], constraint, proposers=[Forced()], **options)
    for options in ({}, {"token_streamer": Recorder()}):
        with pytest.raises(ValueError, match="gamma must be at least 0, not -1"):
            ours(model, [PROMPT], constraint, gamma=-1, **options)
    for prompts, options in (([PROMPT] * 2, {}), ([PROMPT], {"do_sample": True, "num_return_sequences": 2})):
        with pytest.raises(ValueError, match="token_streamer takes a single text, but 2"):
            ours(model, prompts, constraint, token_streamer=Recorder(), **options)
    for mask in ([1] * (len(PROMPT) - 1) + [0], [1, 0] + [1] * (len(PROMPT) - 2)):
        with pytest.raises(ValueError, match="padding after tokens"):
            ours(model, [PROMPT], constraint, attention_mask=torch.tensor([mask]))
    with pytest.raises(ValueError, match="at least one token"):
        ours(model, [PROMPT] * 2, constraint, attention_mask=torch.tensor([[0] * len(PROMPT), [1] * len(PROMPT)]))
    with pytest.raises(ValueError, match="tokenizer"):  # transformers' own error: it drops the tokenizer, too
        ours(model, [PROMPT], constraint, generation_config=transformers.GenerationConfig(stop_strings=["a"]))


def test_raises_what_a_constraint_raises(model: Any) -> None:
    narrow = gs.compile(gs.regex("[a-z]{50}"), VOCABULARY, limits=gs.Limits(max_states=20))
    recorder = Recorder()
    with pytest.raises(gs.LimitExceeded, match="max_states"):
        ours(model, [PROMPT], narrow, token_streamer=recorder)
    assert len(recorder.got) > 3 and recorder.got[-1] == "end"
    with pytest.raises(gs.LimitExceeded, match="max_states"):
        ours(model, [PROMPT] * 2, [CONSTRAINTS[0], narrow])
