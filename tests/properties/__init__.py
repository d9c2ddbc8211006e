"""Properties of the engine, tested with Hypothesis against independent oracles."""
