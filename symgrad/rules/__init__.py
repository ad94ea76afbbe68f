"""Floor 5: the rewrite rules, by what they are about."""
