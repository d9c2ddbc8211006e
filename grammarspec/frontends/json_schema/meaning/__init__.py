"""The meaning of schemas: subschemas gathered to conjunctions, negated, compared, and rid of unevaluated keywords."""
