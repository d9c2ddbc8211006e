"""May this model draft for that one? Their tokens compared, and why not, if not.

    python examples/tokenizer_compatibility.py
    python examples/tokenizer_compatibility.py TARGET DRAFT

Names are directories, .gguf files, or names on the Hugging Face hub; no weights are read. Without a second name, the
target is compared with vocabularies made from its own. The rules are those of the `draft=` of `gs.Model`: every id has
the same bytes, or is the same special token, and the same ids end texts. The number of logits may differ, where one
model's are padded.

What the usual tutorials get wrong: `config.vocab_size` need not be equal (sizes of one family pad to different
widths), so that `assert target.config.vocab_size == draft.config.vocab_size` refuses good drafts. `get_vocab()` alone
does not say which token ends a text, so that a base model and its chat model pass, and drafts run on where the target
would end. And GPT-4 cannot be paired with GPT-3.5: to verify a draft takes the target's distributions, which an
interface that gives texts does not have.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common import table
from transformers import AutoConfig

import grammarspec as gs
from grammarspec.models.loading import smollm2_path

SHOWN = 3
"""Differing tokens of which the report tells."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a model may draft for another.

    Attributes:
        reasons: why not; empty where it may.
        notes: what differs and does not matter.
        shared: the share of the draft's tokens of text whose bytes are a token of the target, under whatever id.
    """

    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shared: float = 1.0

    @property
    def may_draft(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons


def compare(target: gs.Vocabulary, draft: gs.Vocabulary) -> Verdict:
    """Whether a model with the vocabulary `draft` may draft for one with the vocabulary `target`."""
    reasons, notes = [], []
    named = [{token: name for name, token in one.special_tokens.items()} for one in (target, draft)]
    ends = {*target.eos_token_ids} & {*draft.eos_token_ids}
    differing = [
        (token, ours, theirs)
        for token in range(max(target.size, draft.size))
        if (ours := _meaning(target, named[0], token)) != (theirs := _meaning(draft, named[1], token))
        and token not in ends
    ]
    if differing:
        examples = "; ".join(f"{token}: {ours} for the target, {theirs}" for token, ours, theirs in differing[:SHOWN])
        reasons.append(f"ids that mean something else: {len(differing)} ({examples})")
    if target.eos_token_ids != draft.eos_token_ids:
        reasons.append(f"{target.eos_token_ids} end the target's texts, {draft.eos_token_ids} the draft's")
    if target.size != draft.size:
        notes.append(f"{target.size} and {draft.size} logits")
    texts = {target.token_bytes(token) for token in range(target.size)} - {None}
    own = [text for token in range(draft.size) if (text := draft.token_bytes(token))]
    return Verdict(reasons, notes, sum(text in texts for text in own) / len(own) if own else 0.0)


def _meaning(vocabulary: gs.Vocabulary, named: dict[int, str], token: int) -> str:
    """What an id means: the bytes of its text, the name of a special token, or nothing, as padding does."""
    if token in named:
        return named[token]
    text = vocabulary.token_bytes(token) if token < vocabulary.size else None
    return repr(text) if text else "nothing"


def by_tutorial(target: gs.Vocabulary, draft: gs.Vocabulary) -> bool:
    """What the tutorials ask: as many logits, and the same tokens; which of them end texts is not asked."""
    same = all(target.token_bytes(token) == draft.token_bytes(token) for token in range(min(target.size, draft.size)))
    return target.size == draft.size and same


def vocabulary_named(name: str) -> gs.Vocabulary:
    """The vocabulary of a model, as wide as its logits, without its weights."""
    path = smollm2_path() if name == "smollm2" else Path(name)
    if path.suffix == ".gguf":
        config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    else:
        config = AutoConfig.from_pretrained(name)
    source = path if path.exists() else name
    return gs.Vocabulary.from_pretrained(source, size=config.get_text_config().vocab_size)


def siblings(vocabulary: gs.Vocabulary) -> dict[str, gs.Vocabulary]:
    """Vocabularies made from one: some whose model could draft for its model, and some whose could not."""
    tokens = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
    ends, special = vocabulary.eos_token_ids, vocabulary.special_tokens
    first, second = [token for token, text in enumerate(tokens) if text and text.isalpha()][-2:]
    swapped = list(tokens)
    swapped[first], swapped[second] = tokens[second], tokens[first]
    other = next((token for token in special.values() if token not in ends), first)

    def made(texts: Sequence[bytes | None], end_ids: Sequence[int], size: int) -> gs.Vocabulary:
        return gs.Vocabulary.from_tokens(texts, end_ids, special_tokens=special, size=size)

    return {
        "the same": made(tokens, ends, len(tokens)),
        "padded by 64": made(tokens, ends, len(tokens) + 64),
        "two ids swapped": made(swapped, ends, len(tokens)),
        "a token more": made([*tokens, b"one more"], ends, len(tokens) + 1),
        "another end": made(tokens, [*ends, other], len(tokens)),
        "plain bytes": gs.Vocabulary.bytes(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the tokens of two models, or those of one with siblings of it."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="smollm2", help="(%(default)s)")
    parser.add_argument("draft", nargs="?", help="vocabularies made from the target's, if not given")
    options = parser.parse_args(arguments)
    target = vocabulary_named(options.target)
    drafts = {options.draft: vocabulary_named(options.draft)} if options.draft else siblings(target)
    rows = []
    for name, draft in drafts.items():
        verdict = compare(target, draft)
        said = ["yes" if one else "no" for one in (verdict.may_draft, by_tutorial(target, draft))]
        rows.append([name, *said, f"{verdict.shared:.0%}", "; ".join(verdict.reasons + verdict.notes)])
    print(table(["draft", "may draft", "tutorials say", "texts shared", "why, and what differs"], rows))


if __name__ == "__main__":
    main()
