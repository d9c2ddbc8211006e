"""Adapters to other projects, without logic of their own. None is imported unless it is asked for."""
