"""Inputs that were made to hurt, what each call on them costs, and servers that must bear them."""
