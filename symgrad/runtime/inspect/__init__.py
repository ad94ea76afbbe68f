"""Looking at a program: why it runs what it runs, where a NaN comes from, what takes time."""
