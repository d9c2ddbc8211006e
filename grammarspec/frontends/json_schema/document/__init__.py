"""The schema as it was written: dialects, resources, references, and what is malformed in it."""
