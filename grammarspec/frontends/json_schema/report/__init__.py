"""Reports: how each keyword of a schema is enforced, and what other systems would say to the schema."""
