"""The formats of strings as regular languages."""
