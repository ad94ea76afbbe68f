"""Floor 9: back ends that run a program elsewhere than NumPy does."""
