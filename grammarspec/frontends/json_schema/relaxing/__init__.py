"""A schema without what cannot be enforced."""
