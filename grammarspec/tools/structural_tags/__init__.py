"""Structural tags: XGrammar's JSON notation for answers of free text and tagged parts, which vLLM and SGLang send.

The JSON is checked and read member by member (:mod:`.members`) and becomes nodes of the grammar builder
(:mod:`.formats`); what stands between tags as XML, :mod:`.styles`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from grammarspec._compiler import CancelToken
from grammarspec.errors import GrammarSyntaxError, LimitExceeded
from grammarspec.frontends.json_schema.document.loading import load
from grammarspec.frontends.json_schema.options import check_options
from grammarspec.frontends.json_schema.spelling.options import Whitespace
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call
from grammarspec.positions import lone_surrogate
from grammarspec.tools.structural_tags.formats import Formats
from grammarspec.tools.structural_tags.members import Members

__all__ = ["structural_tag"]


def structural_tag(
    tag: Mapping[str, Any] | str,
    *,
    special_tokens: Mapping[str, int] | Iterable[str] = (),
    whitespace: Whitespace = "flexible",
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[str]:
    """The texts of a structural tag of XGrammar: free text, with parts between tags that follow formats.

    Both notations are read: ``{"type": "structural_tag", "format": ...}`` and the older ``{"structures": [...],
    "triggers": [...]}``. In JSON Schemas, objects that list ``properties`` have no others unless the schema says so.

    Args:
        tag: the JSON, or its text.
        special_tokens: the special tokens of the model (:attr:`.Vocabulary.special_tokens`): where a tag or a constant
            text has the name of one, that token is meant. Only with their numbers are formats of tokens understood.
        whitespace: of JSON, as for :func:`grammarspec.json_schema`.
        limits: what the call may use: ``max_steps`` and ``timeout`` of them.
        cancel: stops the work when it is cancelled.

    Raises:
        GrammarSyntaxError: the text is not JSON, or a member is missing or malformed; or a part is malformed (a schema,
            a pattern, a grammar).
        UnsupportedFeature: a format or option that is not enforced: counts of tokens, tokens that are text, texts that
            JSON must not hold, and styles of XML that are not known; or a part has such.
        LimitExceeded: formats nest too deeply, or the limits are reached.
        Cancelled: ``cancel`` was cancelled.
        ValueError: there is no such ``whitespace``.
    """
    options = {"special_tokens": special_tokens, "whitespace": whitespace}
    spelling = check_options(whitespace=whitespace)
    root = load(tag)
    budget = Budget(limits, cancel)
    builder = GrammarBuilder(budget)
    names = dict(special_tokens) if isinstance(special_tokens, Mapping) else dict.fromkeys(special_tokens)
    try:
        members = Members.of(root, "#", budget)
        budget.allow(lambda: len(tag if isinstance(tag, str) else json.dumps(tag, default=str)) // 8)
        node = Formats(builder, spelling, names).start(members)
    except RecursionError:
        raise LimitExceeded("the nesting depth of the structural tag", "#") from None
    except UnicodeEncodeError as error:
        raise GrammarSyntaxError(lone_surrogate(error)) from None
    return Grammar(builder.build(node), call=Call(structural_tag, (tag,), options))
