"""Floor 15: training: the loop, its batches, its history and progress, and checkpoints."""
