"""Transformations of functions: compile, derivatives, vectorization, control flow."""
