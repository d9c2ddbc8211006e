"""Random grammars, vocabularies and texts over a tiny alphabet, small enough for oracles to enumerate."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from grammarspec.grammars.builder import GrammarBuilder
from tests.oracles.recording import RecordingBuilder

LETTERS = b"abc"


@dataclass
class Drawn:
    """A grammar under construction and the node it starts with."""

    builder: RecordingBuilder = field(default_factory=RecordingBuilder)
    start: int = 0


def texts(max_size: int = 3) -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from(LETTERS), max_size=max_size).map(bytes)


def _valid_text(builder: GrammarBuilder) -> int:
    return builder.repeat(builder.bytes_in([(97, 99)]), 0, None)


@st.composite
def _regular(draw: st.DrawFn, builder: GrammarBuilder, depth: int, *, looks: bool) -> int:
    kinds = ["literal", "class", "words"]
    if depth > 0:
        kinds += ["seq", "seq", "alt", "repeat", "both", "minus", "terminal", "chars"]
        kinds += ["ahead", "behind"] if looks else []
    kind = draw(st.sampled_from(kinds))

    def below(**changed: bool) -> int:
        return draw(_regular(builder, depth - 1, looks=changed.get("looks", looks)))

    match kind:
        case "literal":
            return builder.literal(draw(texts(3)))
        case "class":
            low = draw(st.sampled_from(LETTERS))
            return builder.bytes_in([(low, draw(st.integers(low, 99)))])
        case "chars":
            return builder.codepoints([(97, draw(st.integers(97, 99)))])
        case "words":
            return builder.words(draw(st.lists(texts(4), max_size=4)))
        case "seq":
            return builder.seq(*(below() for _ in range(draw(st.integers(0, 3)))))
        case "alt":
            return builder.alt(*(below() for _ in range(draw(st.integers(0, 3)))))
        case "repeat":
            least = draw(st.integers(0, 3))
            return builder.repeat(below(), least, draw(st.none() | st.integers(least, least + 3)))
        case "both":
            return builder.both(below(looks=False), below(looks=False))
        case "minus":
            return builder.both(_valid_text(builder), builder.complement(below(looks=False)))
        case "terminal":
            return builder.terminal(below())
        case "ahead":
            rest = builder.seq(below(looks=False), _valid_text(builder))
            negated = draw(st.booleans())
            return builder.ahead(builder.complement(rest) if negated else rest)
        case _:
            before = builder.seq(_valid_text(builder), below(looks=False))
            negated = draw(st.booleans())
            return builder.behind(builder.complement(before) if negated else before)


@st.composite
def regular_grammars(draw: st.DrawFn, *, depth: int = 4, looks: bool = True) -> Drawn:
    drawn = Drawn()
    drawn.start = draw(_regular(drawn.builder, depth, looks=looks))
    return drawn


@st.composite
def _context_free(draw: st.DrawFn, builder: GrammarBuilder, made: list[int], depth: int) -> int:
    """``made``: nodes that the grammar has already, which may come again: parts that are alike can get mixed up."""
    kinds = ["regular", "regular", "made", "made", "made"]
    if depth > 0:
        kinds += ["seq", "seq", "seq", "alt", "repeat", "optional"]
    kind = draw(st.sampled_from(kinds))

    def below() -> int:
        node = draw(_context_free(builder, made, depth - 1))
        made.append(node)
        return node

    match kind:
        case "regular":
            return draw(_regular(builder, 1, looks=False))
        case "made":
            return draw(st.sampled_from(made))
        case "seq":
            return builder.seq(*(below() for _ in range(draw(st.integers(1, 3)))))
        case "alt":
            return builder.alt(*(below() for _ in range(draw(st.integers(1, 3)))))
        case "repeat":
            least = draw(st.integers(0, 2))
            return builder.repeat(below(), least, draw(st.none() | st.integers(least, least + 2)))
        case _:
            return builder.optional(below())


@st.composite
def context_free_grammars(draw: st.DrawFn) -> Drawn:
    """Left, right and mutual recursion, nullable and cyclic rules, ambiguity: whatever comes up."""
    drawn = Drawn()
    builder = drawn.builder
    rules = [builder.rule(f"r{i}") for i in range(draw(st.integers(1, 4)))]
    made = [builder.call(rule) for rule in rules]
    drawn.start = made[0]
    for rule in rules:
        builder.define(rule, draw(_context_free(builder, made, draw(st.integers(1, 3)))))
    return drawn


@st.composite
def _with_parameters(draw: st.DrawFn, builder: GrammarBuilder, rules: list[int], depth: int, *, guarded: bool) -> int:
    """As ``_context_free``, with conditions, and with calls that hand a parameter on. ``guarded``: after some text."""
    kinds = ["regular", "when", "call", "call"] if guarded else ["regular", "regular", "when", "step", "step"]
    if depth > 0:
        kinds += ["seq", "seq", "seq", "alt", "alt", "alt", "repeat"]

    def below(guarded: bool = guarded) -> int:
        return draw(_with_parameters(builder, rules, depth - 1, guarded=guarded))

    match draw(st.sampled_from(kinds)):
        case "regular":
            return draw(_regular(builder, 1, looks=False))
        case "when":
            return draw(_conditions(builder))
        case "call":
            return draw(_calls(builder, rules))
        case "step":
            return draw(_steps(builder, rules))
        case "seq":
            return builder.seq(below(), builder.bytes_in([(97, draw(st.integers(97, 99)))]), below(guarded=True))
        case "alt":
            return builder.alt(*(below() for _ in range(draw(st.integers(1, 3)))))
        case _:
            least = draw(st.integers(0, 2))
            return builder.repeat(below(), least, draw(st.none() | st.integers(least, least + 2)))


_BITS = st.lists(st.integers(0, 2), max_size=2)
_COUNTERS = [(4, 1), (4, 2), (5, 1)]  # they overlap: a counter is nothing but bits


def _conditions(builder: GrammarBuilder) -> st.SearchStrategy[int]:
    return st.one_of(
        _BITS.map(builder.when_clear),
        _BITS.map(builder.when_set),
        st.builds(builder.when_count, st.sampled_from(_COUNTERS), st.integers(0, 2), st.integers(1, 2)),
    )


def _calls(builder: GrammarBuilder, rules: list[int]) -> st.SearchStrategy[int]:
    counting = st.none() | st.sampled_from(_COUNTERS)
    return st.builds(
        lambda rule, setting, counting, fresh: builder.call_with(rule, setting=setting, counting=counting, fresh=fresh),
        st.sampled_from(rules), _BITS, counting, st.booleans(),
    )  # fmt: skip


def _steps(builder: GrammarBuilder, rules: list[int]) -> st.SearchStrategy[int]:
    """Like the transition of an automaton with memory: a condition, a letter, a call."""
    letters = st.sampled_from(LETTERS).map(lambda letter: builder.literal(bytes([letter])))
    return st.builds(builder.seq, _conditions(builder), letters, _calls(builder, rules))


@st.composite
def parametric_grammars(draw: st.DrawFn) -> Drawn:
    """Rules that depend on a parameter, among them mutually recursive ones, below rules that do not."""
    drawn = Drawn()
    builder = drawn.builder
    rules = [builder.rule(f"r{i}") for i in range(draw(st.integers(1, 3)))]
    for rule in rules:
        steps = draw(st.lists(_steps(builder, rules), min_size=1, max_size=4))
        endings = draw(st.lists(_conditions(builder), min_size=1, max_size=2))
        other = draw(_with_parameters(builder, rules, 2, guarded=False)) if draw(st.booleans()) else builder.nothing
        builder.define(rule, builder.alt(*steps, *endings, other))
    plain = [builder.rule("p"), builder.rule("q")]
    made = [builder.call(rule) for rule in (*plain, *rules)]
    drawn.start = draw(st.sampled_from(made))
    for rule in plain:
        builder.define(rule, draw(_context_free(builder, made, 2)))
    return drawn


@st.composite
def vocabularies(draw: st.DrawFn) -> tuple[list[bytes | None], list[int]]:
    """Every letter, some longer tokens (duplicates too), tokens that are no text, one or two EOS tokens."""
    tokens: list[bytes | None] = [bytes([letter]) for letter in LETTERS]
    tokens += draw(st.lists(st.lists(st.sampled_from(LETTERS), min_size=2, max_size=4).map(bytes), max_size=12))
    tokens += [None] * draw(st.integers(0, 2))
    order = draw(st.permutations(range(len(tokens))))
    tokens = [tokens[i] for i in order]
    eos = [len(tokens) + i for i in range(draw(st.integers(1, 2)))]
    return tokens + [None] * len(eos), eos
