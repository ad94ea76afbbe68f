"""Floor 4: derivatives, as graphs made from graphs."""
