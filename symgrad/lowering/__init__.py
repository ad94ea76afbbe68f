"""Floor 7: from what is computed to how: the order, the memory, the plan."""
