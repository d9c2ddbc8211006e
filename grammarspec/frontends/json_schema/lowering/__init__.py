"""From what schemas mean to the nodes of a grammar."""
