"""Relaxing: leaves out of a schema the keywords that cannot be enforced (``unsupported="warn"``)."""
