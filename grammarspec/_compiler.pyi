"""The Rust crate in compiler/: grammars, vocabularies, and the automata over tokens that they make together.

``make lint`` compares this file with the compiled module.
"""

from collections.abc import Sequence
from typing import Any, final

__all__ = [
    "FEW",
    "ITEMS",
    "NAMES",
    "OPENS",
    "OP_AHEAD",
    "OP_ALT",
    "OP_BEHIND",
    "OP_BOTH",
    "OP_BYTES",
    "OP_CALL",
    "OP_CALL_WITH",
    "OP_CODEPOINTS",
    "OP_COMPLEMENT",
    "OP_LITERAL",
    "OP_NOTHING",
    "OP_REPEAT",
    "OP_SEQ",
    "OP_TERMINAL",
    "OP_WHEN",
    "OP_WORDS",
    "PART",
    "UNBOUNDED",
    "WHEN_ALL_SET",
    "WHEN_CLEAR",
    "WHEN_WITHIN",
    "CancelToken",
    "Constraint",
    "Grammar",
    "Matcher",
    "Pin",
    "VocabularyIndex",
    "compile",
    "fill_bitmasks",
]

# The numbers of the arrays that ``Grammar`` takes (compiler/src/ir/codes.rs). A node is its operation, the number of
# its operands, and the operands.
OP_NOTHING: int
OP_LITERAL: int
OP_BYTES: int
OP_CODEPOINTS: int
OP_SEQ: int
OP_ALT: int
OP_REPEAT: int
OP_BOTH: int
OP_COMPLEMENT: int
OP_AHEAD: int
OP_BEHIND: int
OP_TERMINAL: int
OP_CALL: int
OP_WORDS: int
OP_WHEN: int
OP_CALL_WITH: int

# Conditions, the first operand of OP_WHEN.
WHEN_CLEAR: int
WHEN_ALL_SET: int
WHEN_WITHIN: int

# Marks of rules, as bits: what must be distinct in a JSON text.
OPENS: int
ITEMS: int
NAMES: int
PART: int
FEW: int

UNBOUNDED: int
"""The number for "no upper bound" of a repetition, and for the body of a rule that has none yet."""

@final
class Grammar:
    """A grammar, independent of any vocabulary: hash-consed, immutable, picklable."""

    def __new__(
        cls, ops: bytes, rules: bytes, blob: bytes, names: Sequence[str], kinds: bytes, start: int
    ) -> Grammar: ...
    def arrays(self, nodes: int, rules: int, blob: int) -> tuple[bytes, bytes, bytes, list[str], bytes, int, int]:
        """What ``__new__`` takes, for a builder that holds so much already, and how many nodes that is."""
    def literals_with(self, byte: int) -> list[bytes]:
        """The literals that hold a byte."""

    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Grammar: ...
    def __reduce__(self) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class VocabularyIndex:
    """The index over a vocabulary's tokens that every constraint on it shares.

    ``tokens[i]`` is the text of token ``i`` as bytes, or ``None`` for a token that is no text (unused); of those in
    ``special_token_ids``, the mark (:mod:`grammarspec.grammars.marks`). ``size`` is the number of logits; at least
    ``len(tokens)``.
    """

    def __new__(
        cls,
        tokens: Sequence[bytes | None],
        eos_token_ids: Sequence[int],
        special_token_ids: Sequence[int],
        size: int,
    ) -> VocabularyIndex: ...
    def without_caches(self) -> VocabularyIndex: ...
    @property
    def size(self) -> int: ...
    @property
    def eos_token_ids(self) -> list[int]: ...
    def token_bytes(self, token: int) -> bytes | None: ...
    def spell(self, text: bytes) -> list[int]: ...

@final
class CancelToken:
    """Cancels work that was started with it, from any thread."""

    def __new__(cls) -> CancelToken: ...
    def cancel(self) -> None: ...

@final
class Constraint:
    """A grammar on a vocabulary: a lazily built automaton over tokens. Thread-safe, made to be shared."""

    @property
    def start(self) -> int: ...
    def is_for(self, vocabulary: VocabularyIndex) -> bool:
        """The constraint was compiled for this vocabulary, or for one of the same tokens."""

    def matcher(self) -> Matcher: ...
    def step(self, state: int, token: int) -> int | None: ...
    def mask(self, state: int) -> bytes: ...
    def fill_bitmask(self, state: int, rows: Any, row: int = 0) -> None: ...
    def is_accepting(self, state: int) -> bool: ...
    def tokens_to_end(self, state: int) -> int: ...
    def shortest_completion(self, state: int) -> list[int]: ...
    def pin(self, states: Sequence[int]) -> Pin: ...
    def collect(self) -> int: ...
    def stats(self) -> dict[str, int]: ...

@final
class Pin:
    """Keeps states from being collected until it is released or dropped."""

    def release(self) -> None: ...

@final
class Matcher:
    """A cursor in a constraint: the path of states of one sequence."""

    def fill_bitmask(self, rows: Any, row: int = 0) -> None: ...
    def fill_draft_bitmasks(self, tokens: Sequence[int], rows: Any, row: int = 0) -> int:
        """Fill the masks of a draft: row ``row + i`` with what is allowed after the first ``i`` of its tokens.

        ``len(tokens) + 1`` rows are written, whatever the draft; those behind a token that is not allowed are the one
        before it once more. Nothing is accepted.

        Returns:
            how many of the tokens, from the first on, are allowed.

        Raises:
            IndexError, ValueError, TypeError: there are too few rows, they are too narrow, or no int32 memory.
        """

    def accept_token(self, token: int) -> bool: ...
    def accept_tokens(self, tokens: Sequence[int]) -> int: ...
    def validate_tokens(self, tokens: Sequence[int]) -> int: ...
    def rollback(self, n: int) -> None: ...
    def fork(self) -> Matcher: ...
    def reset(self) -> None: ...
    @property
    def is_accepting(self) -> bool: ...
    @property
    def is_terminated(self) -> bool: ...
    def forced_bytes(self, after: bytes = b"") -> bytes:
        """What every completion goes on with behind ``after``, 64 kB of it at most; nothing if it is not allowed.

        Special tokens stand in it as marks (:mod:`grammarspec.grammars.marks`).
        """

    def forced_tokens(self) -> list[int]:
        """The forced bytes as tokens, longest first; the last is left out where a longer one may still cover it."""

    def next_bytes(self, after: bytes = b"") -> tuple[bytes, bool]:
        """The bytes that may come behind ``after``, in ascending order, and whether the text may end there."""

    @property
    def state(self) -> int: ...
    @property
    def constraint(self) -> Constraint: ...

def compile(
    grammar: Grammar,
    vocabulary: VocabularyIndex,
    max_states: int,
    max_memory: int,
    max_steps: int,
    max_depth: int,
    timeout: float | None,
    cancel: CancelToken | None,
) -> Constraint: ...
def fill_bitmasks(matchers: Sequence[Matcher], rows: Any, threads: int = 0) -> None: ...
