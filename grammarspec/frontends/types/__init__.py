"""Python types as grammars, and primitives (numbers, dates, addresses) for texts."""
