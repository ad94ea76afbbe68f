"""Equations, minima and differential equations, solved when a program runs."""
