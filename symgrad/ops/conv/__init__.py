"""Convolutions, pools and windows that slide along axes, with their kernels."""
