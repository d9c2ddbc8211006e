"""Training of a head: texts with the target's hidden states come in, weights that are kept in files go out.

The head learns the target's masked distributions over the tokens that it can draft, and its hidden states, behind the
target's own states and behind its own predictions, as in a draft.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from benchmarks.distillation.texts import Text, bits, read_texts, side_by_side
from grammarspec.decoding.proposers.eagle import Eagle
from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead

__all__ = ["save", "steps_of", "train"]


def steps_of(
    head: EagleHead, embedded: torch.Tensor, hidden: torch.Tensor, depth: int, start: int = 0
) -> Iterator[torch.Tensor]:
    """What the head predicts behind each token, after reading more and more of its own predictions before it.

    The ``k``-th step at a position reads the target's hidden states up to ``k - 1`` positions before, and its own from
    there on, as in a draft of ``k`` tokens.

    Args:
        head: the head.
        embedded: ``[rows, length, hidden size]``, embeddings of the tokens.
        hidden: ``[rows, length, hidden size]``, the target's hidden states behind the tokens before.
        depth: the number of steps.
        start: the first position that is asked for; what is yielded for the next ``depth - 1`` is of no use, too.

    Yields:
        ``[rows, length - start, hidden size]``, hidden states behind the tokens.
    """
    places = torch.arange(embedded.shape[1])
    keys: list[torch.Tensor] = []
    values: list[torch.Tensor] = []
    reached = places
    for step in range(depth):
        joined = head.joined(embedded, hidden)
        query, key, value = head.heads(joined, reached[None].expand(len(embedded), -1))
        keys.append(key)
        values.append(value)
        # Keys of the first step up to where predictions begin, and one of each later step.
        seen = [places[None] <= reached[:, None] - step]
        seen += [reached[None] == reached[:, None] - step + back for back in range(1, step + 1)]
        mask = torch.cat(seen, -1)
        # Near the beginning nothing is seen: such places are of no use, and see themselves.
        mask[:step, -len(reached) :] |= torch.eye(len(reached), dtype=torch.bool)[:step]
        found = head.finish(joined, query, torch.cat(keys, 2), torch.cat(values, 2), mask[None, None])
        if step == 0:
            reached, embedded, hidden, found = (places[start:], *(x[:, start:] for x in (embedded, hidden, found)))
        yield found
        hidden = torch.cat((hidden[:, :1], found[:, :-1]), 1).to(hidden.dtype)


def select_tokens(texts: Sequence[Text], model: Any, count: int) -> torch.Tensor:
    """The tokens that the head can draft: three quarters by the model's own use, the others of the shortest merges.

    Args:
        texts: the texts to be trained on.
        model: the target.
        count: how many.

    Returns:
        ``int64[count]``, ascending.
    """
    rows = model.get_output_embeddings().weight
    score = torch.zeros(len(rows))
    for text in texts:
        score += torch.bincount(text.tokens[text.prompt :], minlength=len(rows))
    for text in texts[:: max(len(texts) // 200, 1)]:
        score += functional.linear(text.hidden[text.prompt - 1 :].float(), rows).softmax(-1).sum(0)
    best = score.topk(count * 3 // 4).indices.tolist()
    known = set(best)
    first = [token for token in range(len(rows)) if token not in known]
    return torch.tensor(sorted([*best, *first[: count - len(best)]]))


def new_head(model: Any, width: int) -> EagleHead:
    """A head that at first hands on the hidden state that it reads."""
    config = EagleConfig.like(model, width)
    head = EagleHead(config)
    norm = model.get_decoder().norm.weight.detach().float()
    with torch.no_grad():
        for layer in (head.join, head.query, head.key, head.value, head.gate, head.up):
            layer.weight.normal_(std=0.02)
        for layer in (head.output, head.down):
            layer.weight.normal_(std=0.002)
        head.join.weight[:, config.hidden_size :] += torch.eye(config.hidden_size)
        head.final_norm.weight.copy_(norm)
        size = norm.abs().clamp(min=float(norm.abs().median()) / 10)
        head.hidden_norm.weight.copy_(norm.sign() / size * float(size.mean()))
    return head


def train(options: argparse.Namespace, model: Any, folder: Path) -> None:
    """Train a head on the texts, and keep the last state in ``head.safetensors``."""
    torch.manual_seed(options.seed)
    embedding, rows = model.get_input_embeddings(), model.get_output_embeddings().weight.detach()
    texts, _, table = read_texts(folder, (len(rows) + 31) // 32)
    if options.resume:
        saved = Eagle.load(options.resume)
        head, tokens = saved.head, saved.tokens
    else:
        head, tokens = new_head(model, options.width), select_tokens(texts, model, options.selected)
    allowed = bits(table, tokens)
    free = bits(table, torch.arange(len(rows))).sum(-1) > 1
    # Nothing can be learnt where the head knows none of the tokens.
    learnt = free & (allowed.sum(-1) > 1)
    rows = rows[tokens]
    count = sum(weight.numel() for weight in head.parameters())
    answers = sum(len(text.tokens) - text.prompt + 1 for text in texts)
    print(f"{len(texts)} texts, {answers} tokens of answers; {len(table)} masks; {count} weights", flush=True)
    decayed = [weight for weight in head.parameters() if weight.ndim > 1]
    others = [weight for weight in head.parameters() if weight.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.95))
    draw = random.Random(options.seed * 1000 + options.share[0])
    waiting: list[list[Text]] = []
    begin, step, seen, losses = time.perf_counter(), 0, 0, [0.0] * options.depth
    card: dict[str, Any] = {"texts": len(texts), "tokens": answers, "selected": len(tokens), "weights": count}
    while (progress := (time.perf_counter() - begin) / (options.train_minutes * 60)) < 1:
        if not waiting:
            # Texts with prompts of similar lengths are read together.
            order = sorted(texts, key=lambda text: text.prompt * draw.uniform(0.9, 1.1))
            waiting = [order[place : place + options.batch] for place in range(0, len(order), options.batch)]
            draw.shuffle(waiting)
        part = waiting.pop()
        examples, start = side_by_side(part, learnt), max(min(text.prompt for text in part) - 2 - options.depth, 0)
        counted, depth = examples.counted, min(options.depth, 1 + int(1.5 * progress * options.depth))  # drafts grow
        rate = options.rate * min(1, (step + 1) / 50) * (0.02 + 0.98 * (1 + math.cos(math.pi * progress)) / 2)
        for group in optimiser.param_groups:
            group["lr"] = rate
        with torch.autocast("cpu", torch.bfloat16):
            embedded, hidden = embedding(examples.tokens).float().detach(), examples.hidden
            # Behind what other proposers have drafted, hidden states are not known.
            missing = (torch.rand(len(hidden), 1) < 0.25) & _spans(*counted.shape)
            hidden = torch.where(missing[..., None], head.unknown, hidden)
            mask = allowed[examples.masks[counted]]
            with torch.no_grad():
                scores = functional.linear(examples.following[counted], rows).float()
                target = scores.masked_fill_(~mask, -torch.inf).softmax(-1).to(torch.bfloat16)
            total = torch.zeros(())
            for place, found in enumerate(steps_of(head, embedded, hidden, depth, start)):
                states = found[counted[:, start:]]
                scores = functional.linear(states, rows).float().masked_fill(~mask, -1e4)
                loss = -(target * scores.log_softmax(-1)).sum(-1).mean()
                near = functional.smooth_l1_loss(states.float(), examples.following[counted])
                total = total + (loss + options.regression * near) * 0.8**place
                losses[place] += loss.item()
        optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        step, seen = step + 1, seen + int(counted.sum())
        if step % 50 == 0:
            seconds = time.perf_counter() - begin
            means = ", ".join(f"{loss / 50:.3f}" for loss in losses)
            print(f"step {step}, {seconds:.0f} s, {seen} tokens: {means}; near {near.item():.3f}", flush=True)
            losses = [0.0] * options.depth
        if step % options.every == 0:
            _average(head, tokens, card, options.work, *options.share)
    trained = {"steps": step, "passes over each token": round(seen / answers, 1)}
    trained["seconds of training"] = round(time.perf_counter() - begin)
    _average(head, tokens, card | trained, options.work, *options.share)


def _average(head: EagleHead, tokens: torch.Tensor, card: dict[str, Any], work: Path, share: int, shares: int) -> None:
    """Keep a head, and train on with the mean of all that are trained side by side (local SGD: Stich 2019).

    Where cores are shared with others, several processes of one thread each wait less than one of several threads.
    """
    save(work / f"head-{share}.safetensors", head, tokens, card)
    others = [work / f"head-{number}.safetensors" for number in range(shares) if number != share]
    heads = [Eagle.load(path).head.state_dict() for path in others if path.exists()]
    mean = {
        name: sum((other[name] for other in heads), mine) / (len(heads) + 1) for name, mine in head.state_dict().items()
    }
    head.load_state_dict(mean)
    save(work / "head.safetensors", head, tokens, card)


def _spans(rows: int, length: int) -> torch.Tensor:
    """``bool[rows, length]``, spans of one to eight tokens, some one in eight tokens of a text."""
    begins = torch.rand(rows, length) < 0.03
    lengths = torch.randint(1, 9, (rows, length))
    found = torch.zeros(rows, length, dtype=torch.bool)
    for back in range(8):
        found[:, back:] |= (begins & (lengths > back))[:, : length - back]
    return found


def save(path: Path, head: EagleHead, tokens: torch.Tensor, card: dict[str, Any]) -> None:
    """Write a file with a head; whoever reads it meanwhile sees the old one or the new one."""
    part = path.with_suffix(f".{os.getpid()}")
    Eagle.save(part, head, tokens, card)
    part.rename(path)
