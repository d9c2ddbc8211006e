"""The normal form of a schema: for each goal a shape, a record of the values that satisfy it, whose parts are goals."""
