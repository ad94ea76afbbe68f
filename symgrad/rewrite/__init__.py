"""Floor 4: the rule language, and the driver that applies rules."""
