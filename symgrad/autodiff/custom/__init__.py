"""A user's own differentiable functions, over nodes or over arrays."""
