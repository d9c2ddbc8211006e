"""Grammars as values: languages of text, what their texts mean, and how the compiler is told of them."""
