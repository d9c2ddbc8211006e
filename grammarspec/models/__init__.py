"""Models that answer with values: prompts and types in, values of the types out."""
