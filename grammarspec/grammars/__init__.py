"""Grammars as values: languages of text, and what their texts mean.

From the top down: :mod:`.expressions` has ``Grammar`` and the simple grammars, :mod:`.operators` the expressions that
grammars wrap, :mod:`.reading` makes values of texts, :mod:`.engine` calls the compiler, and :mod:`.builder` describes
languages to it.
"""
