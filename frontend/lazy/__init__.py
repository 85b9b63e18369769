"""Lazy arrays: nodes, handles on them, their evaluation, printing and export."""
