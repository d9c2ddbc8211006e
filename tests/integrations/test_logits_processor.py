"""The logits processor: against a replay from scratch, and in all the ways in which transformers calls one."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from grammarspec.integrations.transformers import processor as integration  # noqa: E402

ConstraintLogitsProcessor = integration.ConstraintLogitsProcessor
from tests import tiers  # noqa: E402
from tests.counting import examples  # noqa: E402
from tests.oracles.languages import EOS, PAD, SCHEMA, VOCABULARY, matches, satisfies  # noqa: E402

CASES = [
    matches(r"[a-z]{1,12}"),
    matches(r"(19|20)\d\d-\d\d-\d\d"),
    matches(r"(yes|no|maybe)( (yes|no|maybe)){0,3}"),
    matches(r'\{"name": "[A-Zé漢]{1,8}", "age": \d{1,3}\}'),
    satisfies(SCHEMA),
]
CONSTRAINTS = [gs.compile(grammar, VOCABULARY) for grammar, _ in CASES]
cases = pytest.mark.parametrize("case", range(len(CASES)))

# It holds parts of all languages, so that prompt lookup finds drafts in it.
PROMPT = list(b'yes no maybe abcabc 2024-10-12 {"name": "ABBA", "age": 12} {"answer":"no","flags":[true,false]} 20')


def is_member(case: int, tokens: Sequence[int]) -> bool:
    """Whether this is a text of the language, its end, and nothing but ends and padding behind that."""
    end = list(tokens).index(EOS)
    assert set(tokens[end:]) <= {EOS, PAD}
    return bool(CASES[case][1](VOCABULARY.decode(tokens[:end]).decode()))


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(tiny_model_directory, dtype=torch.float32)


@pytest.fixture(scope="module")
def assistants(model: Any) -> dict[str, Any]:
    """Two assistants: the drafts of one are all accepted, those of the other hardly ever."""
    torch.manual_seed(1)
    other = transformers.LlamaForCausalLM(model.config)
    other.generation_config = copy.deepcopy(model.generation_config)
    assistants = {"same": copy.deepcopy(model), "other": other}
    for assistant in assistants.values():
        assistant.generation_config.num_assistant_tokens = 4
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
        assistant.generation_config.assistant_confidence_threshold = 0.0
    return assistants


def generate(model: Any, prompts: Sequence[Sequence[int]], processor: Any, seed: int = 0, **options: Any) -> Any:
    """What is generated behind the prompts, which are padded on the left: a list of tokens per row."""
    width = max(len(prompt) for prompt in prompts)
    ids = torch.tensor([[PAD] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    processors = transformers.LogitsProcessorList([] if processor is None else [processor])
    options = {"max_new_tokens": 60, "pad_token_id": PAD, "do_sample": False} | options
    torch.manual_seed(seed)
    output = model.generate(ids, attention_mask=mask, logits_processor=processors, **options)
    return output[:, width:].tolist()


def greedy(model: Any, prompt: list[int], constraint: gs.Constraint) -> list[int]:
    """A loop without cache, processor or state."""
    tokens: list[int] = []
    while not tokens or tokens[-1] != EOS:
        matcher = constraint.matcher()
        assert matcher.accept_tokens(tokens) == len(tokens)
        rows = gs.allocate_bitmask(1, VOCABULARY.size)
        matcher.fill_bitmask(rows)
        with torch.inference_mode():
            logits = model(torch.tensor([prompt + tokens]), use_cache=False).logits[:, -1]
            gs.apply_bitmask(logits, rows)
        tokens.append(int(logits.argmax()))
    return tokens


SAMPLED = {"do_sample": True, "top_k": 0}
COLD = {"do_sample": True, "temperature": 0.5, "top_k": 5, "top_p": 0.9}


@pytest.mark.combined
@cases
@pytest.mark.parametrize(
    "options",
    [
        {},
        SAMPLED | {"num_return_sequences": 4},
        COLD | {"num_return_sequences": 4},
        {"num_beams": 3, "num_return_sequences": 3},
        {"num_beams": 3, "num_return_sequences": 2, "early_stopping": True, "length_penalty": 2.0},
        SAMPLED | {"num_beams": 3, "num_return_sequences": 3},
    ],
)
def test_output_is_in_the_language(model: Any, case: int, options: dict[str, Any]) -> None:
    outputs = generate(model, [PROMPT], ConstraintLogitsProcessor(CONSTRAINTS[case]), **options)
    assert len(outputs) == options.get("num_return_sequences", 1)
    assert all(is_member(case, tokens) for tokens in outputs)
    if not options:
        assert outputs == [greedy(model, PROMPT, CONSTRAINTS[case])]


@pytest.mark.combined
@cases
@pytest.mark.parametrize("help", ["same", "other", "lookup"])
@pytest.mark.parametrize("prompt_length", [None, len(PROMPT)])
@pytest.mark.property
def test_assisted(model: Any, assistants: dict[str, Any], case: int, help: str, prompt_length: int | None) -> None:
    options = {"prompt_lookup_num_tokens": 4} if help == "lookup" else {"assistant_model": assistants[help]}

    def processor() -> Any:
        return ConstraintLogitsProcessor(CONSTRAINTS[case], prompt_length=prompt_length)

    assert generate(model, [PROMPT], processor(), **options) == [greedy(model, PROMPT, CONSTRAINTS[case])]
    for seed in range(tiers.draws(3)):
        for sampling in (SAMPLED, COLD):
            (tokens,) = generate(model, [PROMPT], processor(), seed, **options, **sampling)
            assert is_member(case, tokens)


def test_drafts_are_made_and_rejected(model: Any, assistants: dict[str, Any]) -> None:
    """The tests of assistance test something: calls with tokens that are not kept, and inputs that get shorter."""
    for options in ({"prompt_lookup_num_tokens": 4}, {"assistant_model": assistants["other"]}):
        for case in (1, 4):
            seen: list[list[int]] = []

            class Spy(ConstraintLogitsProcessor):
                def __call__(self, input_ids: Any, scores: Any) -> Any:
                    seen.append(input_ids[0].tolist())  # noqa: B023
                    return super().__call__(input_ids, scores)

            (tokens,) = generate(model, [PROMPT], Spy(CONSTRAINTS[case]), **options)
            assert seen[0] == PROMPT
            assert any(ids != (PROMPT + tokens)[: len(ids)] for ids in seen)
            assert any(len(after) < len(before) for before, after in itertools.pairwise(seen))


@pytest.mark.parametrize(
    ("options", "per_prompt"),
    [
        ({}, 1),
        (SAMPLED | {"num_return_sequences": 3}, 3),
        ({"num_beams": 3, "num_return_sequences": 3}, 3),
        ({"num_beams": 4, "num_return_sequences": 2}, 2),
        (SAMPLED | {"num_beams": 3}, 1),
    ],
)
def test_batch(model: Any, options: dict[str, Any], per_prompt: int) -> None:
    prompts = [PROMPT, PROMPT[:7], PROMPT[4:40], PROMPT[:11], PROMPT[50:]]
    order = [3, None, 0, 4, 2]
    chosen = [None if case is None else CONSTRAINTS[case] for case in order]
    outputs = generate(model, prompts, ConstraintLogitsProcessor(chosen), **options)
    assert len(outputs) == per_prompt * len(prompts)
    for row, tokens in enumerate(outputs):
        case = order[row // per_prompt]
        assert case is None or is_member(case, tokens)
    if not options:
        free = generate(model, prompts, None)
        longest = max(len(tokens) for tokens in outputs)
        for row, constraint in enumerate(chosen):
            expected = free[row] if constraint is None else greedy(model, prompts[row], constraint)
            assert outputs[row] == (expected + [PAD] * longest)[:longest]


def test_one_constraint_for_a_batch(model: Any) -> None:
    prompts = [PROMPT[:9], PROMPT, PROMPT[3:7]]
    for options in ({}, {"num_beams": 2, "num_return_sequences": 2}):
        outputs = generate(model, prompts, ConstraintLogitsProcessor(CONSTRAINTS[2]), **options)
        assert all(is_member(2, tokens) for tokens in outputs)


@pytest.mark.parametrize("texts", [["yes"], ["aaaa", "b"], ["a", "ab", "abc"]])
@pytest.mark.parametrize("options", [{}, SAMPLED, {"early_stopping": True}])
def test_more_beams_than_texts(model: Any, texts: list[str], options: dict[str, Any]) -> None:
    """Beam search then goes on behind the ends of texts; what it returns decodes to texts all the same."""
    processor = ConstraintLogitsProcessor(gs.compile(gs.choice(texts), VOCABULARY))
    options = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 12} | options
    for tokens in generate(model, [PROMPT], processor, **options):
        assert VOCABULARY.decode(tokens).decode() in texts
        assert set(tokens[tokens.index(EOS) :]) <= {EOS, PAD}


@pytest.mark.slow
def test_beam_search_equals_a_processor_without_state(model: Any) -> None:
    class Stateless(transformers.LogitsProcessor):
        def __init__(self, constraint: gs.Constraint) -> None:
            self.constraint = constraint

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            return ConstraintLogitsProcessor(self.constraint, prompt_length=len(PROMPT))(input_ids, scores)

    for constraint in CONSTRAINTS:
        options = {"num_beams": 4, "num_return_sequences": 4}
        plain = generate(model, [PROMPT], ConstraintLogitsProcessor(constraint), **options)
        assert plain == generate(model, [PROMPT], Stateless(constraint), **options)


# Against a replay from scratch.

SMALL = [
    gs.compile(gs.regex(pattern), VOCABULARY) for pattern in (r"(yes|no)+", r"a?b?c?[ab]{0,4}", r"(aab|aba)(no|12)*")
]
ALPHABET = [*b"abcyesno12", EOS, PAD, *range(258, 264), 300, -1]


def expected(constraint: gs.Constraint | None, tokens: Sequence[int], scores: Any) -> Any:
    """The scores of one row, by the documented rules."""
    if constraint is None:
        return scores
    matcher = constraint.matcher()
    allowed = None
    for token in tokens:
        if not 0 <= token < VOCABULARY.size or not matcher.accept_token(token):
            return scores
        if matcher.is_terminated:
            allowed = {token}
            break
    if allowed is None:
        rows = gs.allocate_bitmask(1, VOCABULARY.size)
        matcher.fill_bitmask(rows)
        allowed = {token for token in range(VOCABULARY.size) if rows.view("uint32")[0, token // 32] >> token % 32 & 1}
    keep = torch.tensor([token in allowed for token in range(len(scores))])
    return torch.where(keep, scores, float("-inf"))


@st.composite
def texts(draw: st.DrawFn, constraint: gs.Constraint | None, length: int) -> list[int]:
    """Mostly of the language, but for a few tokens."""
    matcher, tokens = (constraint or SMALL[0]).matcher(), []
    while len(tokens) < length:
        fitting = [token for token in ALPHABET if 0 <= token < VOCABULARY.size and matcher.validate_tokens([token])]
        token = draw(st.sampled_from(fitting if fitting and draw(st.integers(0, 9)) else ALPHABET))
        tokens.append(token)
        if token in fitting:
            matcher.accept_token(token)
    return tokens


def check(processor: Any, constraints: Sequence[gs.Constraint | None], prompt: Any, rows: Any, scores: Any) -> None:
    before = scores.clone()
    result = processor(torch.tensor([prompt + tokens for tokens in rows], dtype=torch.int64), scores)
    assert torch.equal(scores, before)
    assert (result.dtype, result.shape, result.device) == (scores.dtype, scores.shape, scores.device)
    assert result.untyped_storage().data_ptr() != scores.untyped_storage().data_ptr()
    for row, tokens in enumerate(rows):
        constraint = constraints[row * len(constraints) // len(rows)]
        assert torch.equal(result[row], expected(constraint, tokens, scores[row]))


def draw_scores(data: st.DataObject, rows: int) -> Any:
    dtype = data.draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.float64]))
    width = data.draw(st.sampled_from([40, 256, 257, 264, 300]))
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(0), dtype=torch.float32).to(dtype)


@examples(150)
@given(data=st.data(), constraints=st.lists(st.none() | st.sampled_from(SMALL), min_size=1, max_size=3))
def test_any_prefixes_equal_a_replay(data: st.DataObject, constraints: list[gs.Constraint | None]) -> None:
    """Any rows in any order: longer by several tokens, shorter, others."""
    per_prompt, length = data.draw(st.integers(1, 3)), 10
    processor = ConstraintLogitsProcessor(constraints, prompt_length=2)
    texts_of = [st.lists(texts(each, length), min_size=1, max_size=3) for each in constraints]
    pools = [data.draw(some) for some in texts_of for _ in range(per_prompt)]
    for _ in range(data.draw(st.integers(1, 8))):
        reach = data.draw(st.integers(0, length))
        rows = [data.draw(st.sampled_from(pool))[:reach] for pool in pools]
        check(processor, constraints, data.draw(st.sampled_from([[1, 2], [3, 4]])), rows, draw_scores(data, len(rows)))


@examples(150)
@given(data=st.data(), constraints=st.lists(st.none() | st.sampled_from(SMALL), min_size=1, max_size=2))
def test_prefixes_as_in_generate_equal_a_replay(data: st.DataObject, constraints: list[gs.Constraint | None]) -> None:
    """Each row begins with a row of the call before, of the same prompt, and has at most one further token."""
    per_prompt = data.draw(st.integers(1, 3))
    processor = ConstraintLogitsProcessor(constraints)
    rows: list[list[int]] = [[] for _ in constraints for _ in range(per_prompt)]
    for _ in range(data.draw(st.integers(1, 12))):
        check(processor, constraints, [7, 8, 9], rows, draw_scores(data, len(rows)))
        reach = max(0, len(rows[0]) + data.draw(st.sampled_from([1, 1, 1, 0, -1, -3])))
        for start in range(0, len(rows), per_prompt):
            beams = rows[start : start + per_prompt]
            for row in range(start, start + per_prompt):
                tokens = data.draw(st.sampled_from(beams))[:reach]
                rows[row] = tokens + ([data.draw(st.sampled_from(ALPHABET))] if len(tokens) < reach else [])


def test_rows_change_places_among_other_constraints() -> None:
    constraints = [SMALL[1], SMALL[2]]
    processor = ConstraintLogitsProcessor(constraints)
    scores = torch.zeros(4, 264)
    for rows in (["", "", "", ""], ["b", "a", "a", "a"], ["ba", "ab", "aa", "ab"], ["aab", "bac", "aab", "aba"]):
        check(processor, constraints, [], [list(row.encode()) for row in rows], scores)


def test_inputs_may_be_overwritten() -> None:
    processor = ConstraintLogitsProcessor(SMALL[0])
    ids, scores = torch.tensor([[5]]), torch.zeros(1, 264)
    processor(ids, scores)
    ids[:] = 6
    ids = torch.tensor([[5, *b"yes"]])
    processor(ids, scores)
    ids[:] = torch.tensor([[5, *b"noy"]])
    result = processor(ids, scores)
    assert torch.equal(result[0], expected(SMALL[0], list(b"noy"), scores[0]))


def test_finished_and_strayed_rows_have_finite_scores() -> None:
    constraint = gs.compile(gs.choice(["ab"]), VOCABULARY)
    processor = ConstraintLogitsProcessor(constraint)
    rows = [[*b"ab", EOS, PAD, PAD], [*b"ax", EOS, 0, 0], [*b"ab", PAD, PAD, PAD]]
    for length in range(6):
        ids = torch.tensor([row[:length] for row in rows], dtype=torch.int64)
        result = processor(ids, torch.zeros(3, 264))
        assert torch.isfinite(result).any(-1).all()
    assert torch.isfinite(result).sum(-1).tolist() == [1, 264, 264]
    assert result[0, EOS] == 0


# One object, several texts.


def test_reuse(model: Any) -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINTS[2])
    first = generate(model, [PROMPT], processor)
    assert generate(model, [PROMPT], processor) == first
    for prompts in ([PROMPT[:-1]], [[*PROMPT[:-1], 1]], [PROMPT, PROMPT]):
        with pytest.raises(ValueError, match=r"reset\(\)"):
            generate(model, prompts, processor)
        processor.reset()
        assert generate(model, prompts, processor)[0] == greedy(model, prompts[0], CONSTRAINTS[2])
        processor.reset()
        assert generate(model, [PROMPT], processor) == first
    # The next turn of a conversation begins with the prompt, too.
    for turn in ([*first[0], *b"and now?"], [*first[0][:-1], *b"and now?"], [*first[0], EOS, EOS]):
        with pytest.raises(ValueError, match=r"reset\(\)"):
            generate(model, [PROMPT + turn], processor)
        assert generate(model, [PROMPT], processor) == first


def test_a_text_that_was_cut_off_goes_on(model: Any) -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINTS[3])
    (begin,) = generate(model, [PROMPT], processor, max_new_tokens=6)
    (end,) = generate(model, [PROMPT + begin], processor)
    assert begin + end == greedy(model, PROMPT, CONSTRAINTS[3])


def test_reuse_with_prompt_length(model: Any) -> None:
    processor = ConstraintLogitsProcessor(CONSTRAINTS[3], prompt_length=20)
    for start in range(4):
        prompt = PROMPT[start : start + 20]
        assert generate(model, [prompt], processor) == [greedy(model, prompt, CONSTRAINTS[3])]
    outputs = generate(model, [PROMPT[:20], PROMPT[5:20]], processor, num_beams=2)
    assert all(is_member(3, tokens) for tokens in outputs)
    with pytest.raises(ValueError, match="19 tokens is shorter than prompt_length=20"):
        generate(model, [PROMPT[:19]], processor)


def test_an_interrupted_call_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    processor = ConstraintLogitsProcessor(SMALL[0])
    scores = torch.zeros(1, 264)
    processor(torch.tensor([[1]]), scores)
    follow = integration.FollowedText.follow

    def interrupted(row: Any, tokens: Any) -> None:
        row.matcher.accept_tokens(tokens.tolist())
        raise KeyboardInterrupt

    monkeypatch.setattr(integration.FollowedText, "follow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        processor(torch.tensor([[1, *b"y"]]), scores)
    monkeypatch.setattr(integration.FollowedText, "follow", follow)
    check(processor, [SMALL[0]], [1], [list(b"y")], scores)


def test_refuses() -> None:
    constraint = SMALL[0]
    for wrong in ([constraint, "a"], [constraint.matcher()], [gs.choice(["a"])]):
        with pytest.raises(TypeError, match="expected a Constraint or None, not"):
            ConstraintLogitsProcessor(wrong)
    with pytest.raises(ValueError, match="no constraint"):
        ConstraintLogitsProcessor([])
    with pytest.raises(ValueError, match="prompt_length must not be negative"):
        ConstraintLogitsProcessor(constraint, prompt_length=-1)
    processor = ConstraintLogitsProcessor([constraint, None])
    with pytest.raises(ValueError, match="3 rows for 2 constraints"):
        processor(torch.zeros(3, 1, dtype=torch.int64), torch.zeros(3, 264))
    free = ConstraintLogitsProcessor([None, None])
    assert (free(torch.zeros(2, 1, dtype=torch.int64), torch.ones(2, 264)) == 1).all()
