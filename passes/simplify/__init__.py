"""Passes that keep what a module computes and make it smaller."""
