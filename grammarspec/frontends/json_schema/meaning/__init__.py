"""The meaning of schemas: conjunctions, negations and disjunctions of subschemas, before any text is described."""
