"""Grammars written in other notations: the compiler's form of a language goes in, a text and what it lacks come out.

:mod:`.graph` reads the form, :mod:`.notation` writes it as rules, with names for what is used more than once, and
:mod:`.gbnf` and :mod:`.llguidance` say how each node is spelled. What a notation cannot say is left out of the text so
that no text of the language is lost (a superset), and told (:class:`Converted`). Regular parts that use operators which
a notation lacks are written as automata (:mod:`.automata`), if these are small.
"""

from __future__ import annotations

from grammarspec.grammars.writing.converted import Converted, Lost

__all__ = ["Converted", "Lost"]
