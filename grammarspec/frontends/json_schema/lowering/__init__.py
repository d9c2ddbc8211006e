"""Lowering: turns the shapes of the room ``normal_form`` into nodes of a grammar builder."""
