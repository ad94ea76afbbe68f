"""Training: the loop, its batches, its history and progress, and checkpoints."""
