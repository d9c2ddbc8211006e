"""What schemas mean: which values each takes, conjoined, negated and told apart."""
