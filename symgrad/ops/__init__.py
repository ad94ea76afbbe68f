"""Floor 3: the ops, each declared once."""
