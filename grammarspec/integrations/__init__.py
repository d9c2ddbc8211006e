"""Adapters to other projects, one file each, with no logic of their own: each is imported by name."""
