"""The formats in which families of models write calls of tools, each as a grammar that enforces and reads it.

A format is a :class:`ToolFormat`. Most are data only: what a call looks like (``call``, with ``$name`` and
``$arguments``), which of its parts may be special tokens (``markers``), and what the chat templates of the family
contain (``signs``). A format whose arguments are not JSON has a function that makes their grammar (``arguments``); one
whose replies are not text and calls overrides ``reply``, as Harmony does. :class:`GrowingCalls` reads calls while they
are written.

To add one, add a value to ``catalogue``, and a chat template of the family and its calls to the tests.
"""

from grammarspec.tools.formats.base import MarkerGrammar, Reply, ToolFormat
from grammarspec.tools.formats.catalogue import FORMATS, JSON, detect_format, tool_format
from grammarspec.tools.formats.growing import CallPiece, GrowingCalls

__all__ = [
    "FORMATS",
    "JSON",
    "CallPiece",
    "GrowingCalls",
    "MarkerGrammar",
    "Reply",
    "ToolFormat",
    "detect_format",
    "tool_format",
]
