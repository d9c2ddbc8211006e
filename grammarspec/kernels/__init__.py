"""What is done to logits and mask rows, per array library."""
