"""The forms of a graph outside a program: as text, as a file, as an expression in a line."""
