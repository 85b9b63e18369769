"""Passes that expand transformations: batch, jvp, linearize, transpose."""
