"""Ranges of values: intervals through ops, and what they decide."""
