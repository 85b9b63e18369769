"""Reductions along rows and columns, with what stands between them."""
