"""Lowering: turns the conjunctions that the package ``meaning`` gathers into nodes of a grammar builder."""
