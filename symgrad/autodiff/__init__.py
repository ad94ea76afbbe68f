"""Floor 7: derivatives, as graphs made from graphs."""
