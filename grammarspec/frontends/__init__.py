"""Front-ends: from a user's description of a language to the builder's nodes."""
