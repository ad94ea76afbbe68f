"""Floor 10: programs that run piece by piece along a named dimension, on any executor."""
