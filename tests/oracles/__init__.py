"""Slow, plain implementations that the tests compare the real ones with."""
