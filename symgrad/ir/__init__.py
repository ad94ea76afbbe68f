"""Floor 1: what a graph is."""
