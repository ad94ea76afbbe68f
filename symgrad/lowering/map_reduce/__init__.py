"""A program split along a named dimension: rounds of pieces, and what is computed between them."""
