"""Adapters for other projects. They are thin, and none is imported unless it is used."""
