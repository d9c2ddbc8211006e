"""The Rust crate in compiler/: grammars, vocabularies, and the automata over tokens that they make together.

``make lint`` compares this file with the compiled module.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self, final

from typing_extensions import disjoint_base

from grammarspec.errors import GrammarspecError
from grammarspec.frozen import FrozenConstraint

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
    "OP_LEXEME",
    "OP_LEXEMES",
    "OP_LITERAL",
    "OP_NOTHING",
    "OP_PARSER",
    "OP_REPEAT",
    "OP_SEQ",
    "OP_TERMINAL",
    "OP_TEXT",
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
    "IrBuilder",
    "Matcher",
    "Pin",
    "VocabularyIndex",
    "compile",
    "fill_bitmasks",
    "fill_each",
]

# The operations of nodes (compiler/src/ir/codes.rs).
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
OP_LEXEME: int
OP_LEXEMES: int
OP_TEXT: int
OP_PARSER: int

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

    def arrays(self) -> tuple[bytes, bytes, bytes, list[str], bytes, int]:
        """The nodes and rules as numbers of 32 bits in the byte order of the machine, for code that looks at them.

        Returns:
            The nodes, each as its operation, the number of its operands, and these; the body of each rule; the texts
            that operands of ``OP_LITERAL`` and ``OP_WORDS`` are places in; the name and the kinds of each rule; the
            node of the whole text.
        """

    def literals_with(self, byte: int) -> list[bytes]:
        """The literals that hold a byte."""

    def to_bytes(self) -> bytes:
        """The grammar in a portable form that carries its version."""

    @staticmethod
    def from_bytes(data: bytes) -> Grammar:
        """Read what :meth:`to_bytes` wrote.

        Raises:
            GrammarError: ``data`` is damaged, or of a version that this release cannot read.
        """

    def __reduce__(self) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class IrBuilder:
    """The nodes and rules of a grammar that is being described, as a base of :class:`.GrammarBuilder`.

    A node is the number of nodes that were described before it. The arguments of ``__new__`` are those of a subclass.
    """

    def __new__(cls, *_arguments: Any, **_options: Any) -> Self: ...
    @property
    def size(self) -> int:
        """How much has been described so far: for each node, its operation, the number of its operands, and these."""

    def take_over(self, other: IrBuilder) -> None:
        """Hold what another one holds, instead of what was described so far."""

    def node(self, op: int, operands: Sequence[int]) -> int:
        """The node of an operation (one of ``OP_...`` but ``OP_LITERAL`` and ``OP_WORDS``) on these operands.

        Raises:
            GrammarError: there is no such operation, or it cannot have these operands.
        """

    def literal(self, text: str | bytes) -> int:
        """Exactly this text; a ``str`` is encoded as UTF-8.

        Raises:
            UnicodeEncodeError: the text holds a lone surrogate.
        """

    def words(self, texts: Iterable[str | bytes]) -> int:
        """Any one of these texts, also of very many: they become a minimised trie.

        Raises:
            UnicodeEncodeError: a text holds a lone surrogate.
        """

    def seq(self, *nodes: int) -> int:
        """One after the other."""

    def alt(self, *nodes: int) -> int:
        """Any of them; of none, the empty language."""

    def repeat(self, node: int, least: int, most: int | None) -> int:
        """``least`` to ``most`` times (``None``: no upper bound). Counts are never expanded.

        Raises:
            OverflowError: a count is negative, or 2**32 - 1 or more.
        """

    def optional(self, node: int) -> int:
        """Once or not at all."""

    def both(self, *nodes: int) -> int:
        """Intersection: the texts that every one of these regular nodes has."""

    def complement(self, node: int) -> int:
        """Every byte string that this regular node does not have. Intersect it with valid text."""

    def terminal(self, node: int) -> int:
        """This regular node as a lexical unit of its own.

        It does not change the language. It tells the compiler where to cut: masks are cached per terminal and
        shared by all places and grammars that use an equal one, so strings, numbers and identifiers should
        be terminals, while punctuation and keys are best left to be joined with their neighbours.
        """

    def rule(self, name: str, kinds: int = 0) -> int:
        """Declare a rule, to be given its body by :meth:`define`. Returns the rule's number, which is no node.

        ``kinds`` is for JSON only. It marks rules about arrays whose items must be distinct, or objects whose names
        must be, so that texts that repeat one are refused although the rule's body has them. It is a sum of

        * ``OPENS``: the first byte of the rule is the bracket of such an array or object;
        * ``ITEMS``: the commas and the bracket in the rule's own body end items of the array, which must all differ;
        * ``NAMES``: the colons in the rule's own body end names of members, which must all differ;
        * ``FEW``: with ``OPENS``, unless every item or name can still become infinitely many values until it ends;
        * ``PART``: none of these, but kept apart from the rules around it, as items must be.

        Values are compared by their spelling without whitespace, members in any order, and ``1.0`` as ``1``. So items
        must have no other spellings, and the names in them must differ. The caller guarantees that there are enough
        different values for all items that must come: the compiler only checks that there is one more.

        Raises:
            GrammarError: there is no such kind.
        """

    def define(self, rule: int, body: int) -> None:
        """Give a declared rule its body.

        Raises:
            GrammarError: there is no such rule.
        """

    def define_others(self, body: int) -> None:
        """Give this body to all declared rules that have none yet."""

    def call(self, rule: int) -> int:
        """What this rule describes. Rules may call themselves and each other in any way.

        Raises:
            GrammarError: there is no such rule.
        """

    def embed(self, grammar: Grammar) -> int:
        """The language of a grammar that was built before."""

    def build(self, start: int) -> Grammar:
        """The grammar, ``start`` being the node that describes the whole text.

        Raises:
            GrammarError: a rule has no body, or the compiler refuses how a node is used (a Boolean operator on a
                context-free node, say).
        """

@final
class VocabularyIndex:
    """The index over a vocabulary's tokens that every constraint on it shares.

    ``tokens[i]`` is the text of token ``i`` as bytes, or ``None`` for a token that is no text (unused); of those in
    ``special_token_ids``, the mark (:mod:`grammarspec.grammars.marks`). ``size`` is the number of logits; at least
    ``len(tokens)``.

    Raises:
        ValueError: ``size`` is too large.
    """

    def __new__(
        cls,
        tokens: Sequence[bytes | None],
        eos_token_ids: Sequence[int],
        special_token_ids: Sequence[int],
        size: int,
    ) -> VocabularyIndex: ...
    def without_caches(self) -> VocabularyIndex:
        """The same index, but sharing no cache between the grammars compiled on it, and no constraints."""

    def keep(self, constraints: int, memory: int) -> None:
        """Bound what waits for its next user: so many constraints, with so many bytes together.

        Raises:
            ValueError: the index is one without caches, which keeps no constraints.
        """

    def stats(self) -> dict[str, int]:
        """Numbers by name: constraints that can be found, those of them that nobody uses, and the bytes of these."""

    @property
    def size(self) -> int:
        """The number of logits that masks cover."""

    @property
    def eos_token_ids(self) -> list[int]:
        """The tokens that end a text, in ascending order."""

    @property
    def fingerprint(self) -> str:
        """What tells vocabularies apart, the same in every process: 16 hexadecimal digits.

        It shows mistakes, and is no proof against somebody who wants two vocabularies to have the same.
        """

    def token_bytes(self, token: int) -> bytes | None:
        """The text or the mark of a token; ``None`` if it has neither."""

    def spell(self, text: bytes) -> list[int]:
        """A text as tokens: each is the longest that fits, or they are few where that leads to where none fits."""

@final
class CancelToken:
    """Cancels work that was started with it, from any thread."""

    def __new__(cls) -> CancelToken: ...
    def cancel(self) -> None:
        """Stop the work under way and refuse all later work: both raise :class:`~grammarspec.Cancelled`."""

    @property
    def is_cancelled(self) -> bool:
        """Whether :meth:`cancel` was called."""

@final
class Constraint:
    """A grammar on a vocabulary: a lazily built automaton over tokens. Thread-safe, made to be shared.

    States are integers. What is not held by a matcher or a :meth:`pin` may be collected once the limits are reached.

    Raises:
        StateCollected: (by every method that takes a state) the state was collected.
        LimitExceeded: (by every method that computes something) a limit was hit; the message names which.
        Cancelled: (by the same) the work was cancelled.
        OverflowError: (by every method that takes a state) it is below 0, or above 2**32 - 1.
    """

    @property
    def start(self) -> int:
        """The state before the first token. It is never collected."""

    def is_for(self, vocabulary: VocabularyIndex) -> bool:
        """Whether the constraint was compiled for this vocabulary, or for one of the same tokens."""

    def matcher(self, *, end_token_ids: Sequence[int] = ()) -> Matcher:
        """A matcher at the beginning of a text; each sequence needs its own.

        Args:
            end_token_ids: tokens that end this text beside those of the vocabulary, such as the stop tokens of a
                request. They are allowed where the text may end, and nowhere else, even if they are text.

        Raises:
            ValueError: the vocabulary has no such token.
        """

    def step(self, state: int, token: int) -> int | None:
        """The state after a token; ``None`` if the token is not allowed, as no number is that is none of a token."""

    def mask(self, state: int) -> bytes:
        """The mask row of a state: little-endian ``int32[ceil(size / 32)]``."""

    def fill_bitmask(self, state: int, rows: Any, row: int = 0) -> None:
        """Write the mask row of a state into a row of ``rows``, as :meth:`Matcher.fill_bitmask` does.

        Raises:
            IndexError, ValueError, TypeError: there is no such row, it is too narrow, or no int32 memory.
        """

    def is_accepting(self, state: int) -> bool:
        """Whether the text may end in a state."""

    def tokens_to_end(self, state: int) -> int:
        """The number of tokens of :meth:`shortest_completion`."""

    def shortest_completion(self, state: int) -> list[int]:
        """The shortest ending that a text may have behind a state, as tokens without the one that ends the text.

        Where rules depend on a parameter, or a token has ended inside a character of which not all bytes are tokens,
        the ending is short, but not always the shortest.
        """

    def freeze(
        self,
        *,
        max_states: int = 65_536,
        max_classes: int = 32_768,
        max_table: int = 67_108_864,
        max_pool: int = 268_435_456,
    ) -> FrozenConstraint:
        """All states as flat arrays, which a device can step and mask without the host.

        The work has the limits of the constraint, as one call. Only what has finitely many states can be frozen:
        regular grammars, and those whose rules nest to a depth that the grammar bounds.

        Args:
            max_states: states, at most.
            max_classes: classes of tokens that behave alike, at most; not above 32,768.
            max_table: bytes of the table of transitions, at most.
            max_pool: bytes of the distinct mask rows, at most.

        Raises:
            UnsupportedFeature: there is no end of states, as a rule nests in itself, or values must differ; the message
                names the rule.
            LimitExceeded: a bound or a limit was hit; the message has the bound and what was reached.
            Cancelled: the work was cancelled.
            ValueError: ``max_classes`` is too large.
            MissingPackage: numpy is not installed.
        """

    def successors(self, state: int, most: int) -> tuple[bytes, list[int]]:
        """Where each token leads from a state, all at once.

        Args:
            state: the state.
            most: the greatest number of states to make. The states to which most tokens lead are made. Where values
                must differ, none is made if more tokens than that are allowed.

        Returns:
            little-endian ``int32[size]``, for each token the index of a state; -1 if the token is not allowed, -2 if it
            is allowed, and the state behind it was not made. And these states, each once.
        """

    def pin(self, states: Sequence[int]) -> Pin:
        """Keep states from being collected, for as long as the result lives."""

    def collect(self) -> int:
        """Drop the states that no matcher and no pin holds; returns how many there were.

        Raises:
            InternalError: an earlier call has failed for a defect.
        """

    @property
    def memory(self) -> int | None:
        """Bytes that the automaton holds, or ``None`` while another thread computes with it: this does not wait."""

    def stats(self) -> dict[str, int]:
        """Numbers of states, masks, expressions and bytes, by name."""

@final
class Pin:
    """Keeps states from being collected until it is released or dropped."""

    def release(self) -> None:
        """Let the states be collected."""

@final
class Matcher:
    """A state of a constraint with the path that led to it: what one sequence has accepted.

    Raises:
        LimitExceeded: (by every method that computes something) a limit of the constraint was hit.
        Cancelled: (by the same) the work was cancelled.
    """

    def fill_bitmask(self, rows: Any, row: int = 0) -> None:
        """Write the mask of the next token into a row of ``rows``.

        Args:
            rows: ``int32[n, words]`` or ``int32[words]``, writable: a numpy array, another object with the buffer
                protocol, or a torch tensor on the CPU. Words past those of the vocabulary are cleared.
            row: the number of the row.

        Raises:
            IndexError, ValueError, TypeError: there is no such row, it is too narrow, or no int32 memory.
            Unsatisfiable: the matcher's own end tokens are the only ones that the text could go on with.
        """

    def fill_draft_bitmasks(self, tokens: Sequence[int], rows: Any, row: int = 0) -> int:
        """Fill the masks of a draft: row ``row + i`` with what is allowed after the first ``i`` of its tokens.

        ``len(tokens) + 1`` rows are written, whatever the draft; those behind a token that is not allowed are the one
        before it once more. Nothing is accepted.

        Returns:
            how many of the tokens, from the first on, are allowed.

        Raises:
            IndexError, ValueError, TypeError: there are too few rows, they are too narrow, or no int32 memory.
            Unsatisfiable: as :meth:`fill_bitmask`.
        """

    def accept_token(self, token: int) -> bool:
        """Go on behind a token; ``False``, and nothing changes, if it is not allowed, as no number is that is none."""

    def accept_tokens(self, tokens: Sequence[int]) -> int:
        """Accept tokens up to the first that is not allowed; returns how many were accepted.

        It is one call for limits: beside ``max_steps`` it may take 100 steps for each byte of the tokens that it has
        accepted, more than texts of many thousand bytes need. Where it exceeds a limit, none of the tokens is accepted;
        the error says how far it had come. What takes longer is accepted in parts, by several calls.

        Raises:
            LimitExceeded: a limit was hit; the matcher is where it was.
            Cancelled: the work was cancelled; the matcher is where it was.
        """

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        """How many of the tokens, from the first on, are allowed. Nothing is accepted.

        Limits are those of :meth:`accept_tokens`.
        """

    def accepting_prefixes(self, tokens: Sequence[int]) -> list[int]:
        """The numbers of tokens, from the first on, behind which the text may end, in ascending order: 0 if it may end
        here. Nothing is accepted.

        Limits are those of :meth:`accept_tokens`.
        """

    def rollback(self, n: int) -> None:
        """Take back the last ``n`` tokens.

        Raises:
            ValueError: fewer were accepted.
        """

    def fork(self) -> Matcher:
        """A matcher of its own with the same tokens accepted."""

    def reset(self) -> None:
        """Take back all tokens."""

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here."""

    @property
    def is_terminated(self) -> bool:
        """Whether a token that ends the text was accepted."""

    def forced_bytes(self, after: bytes = b"") -> bytes:
        """The text that every completion goes on with behind ``after``, 64 kB of it at most.

        It is empty if nothing is certain, or if ``after`` is not allowed. Special tokens stand in it as marks
        (:mod:`grammarspec.grammars.marks`).
        """

    def forced_tokens(self) -> list[int]:
        """The forced bytes as tokens, longest first; the last is left out where a longer one may still cover it."""

    def next_bytes(self, after: bytes = b"") -> tuple[bytes, bool]:
        """The bytes that may come behind ``after``, in ascending order, and whether the text may end there."""

    @property
    def state(self) -> int:
        """The state after the accepted tokens."""

    @property
    def constraint(self) -> Constraint:
        """The constraint that made the matcher."""

def compile(
    grammar: Grammar,
    vocabulary: VocabularyIndex,
    max_states: int,
    max_memory: int,
    max_steps: int,
    max_depth: int,
    timeout: float | None,
    cancel: CancelToken | None,
    max_call_steps: int | None = None,
) -> Constraint:
    """Compile a grammar for a vocabulary; see :func:`grammarspec.grammars.engine.compile_ir`.

    Raises:
        Unsatisfiable, UnsupportedFeature, LimitExceeded, Cancelled: as ``compile_ir``.
    """

def fill_bitmasks(matchers: Sequence[Matcher], rows: Any, threads: int = 0) -> None:
    """Write the mask of each matcher into a row: that of ``matchers[i]`` into row ``i``.

    Args:
        matchers: a list of matchers, of one constraint or of several; masks of different constraints are made in
            parallel.
        rows: as for :meth:`Matcher.fill_bitmask`.
        threads: how many threads work; 0: as many as there are cores.

    Raises:
        TypeError: ``matchers`` is no list of matchers, or ``rows`` no int32 memory.
        IndexError, ValueError: there are too few rows, or they are too narrow.
        LimitExceeded, Cancelled: as :class:`Matcher`.
    """

def fill_each(
    matchers: Sequence[Matcher],
    rows: Any,
    firsts: Sequence[int],
    drafts: Sequence[Sequence[int]],
    threads: int,
) -> list[int | GrammarspecError]:
    """What :func:`grammarspec.serving.fill_bitmasks` is made of; all sequences are as long as ``matchers``, a list.

    Raises:
        TypeError, IndexError, ValueError: as there.
    """
