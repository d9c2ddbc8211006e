"""What becomes of each keyword of a schema, for people."""
