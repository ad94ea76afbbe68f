"""Equations and minima: solved when a program runs, and differentiated."""
