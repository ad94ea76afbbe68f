"""Proof of equality: normal forms, searches among rules, counterexamples."""
