"""Contractions: products of matrices and vectors, and what follows them."""
