"""Modules, losses and optimizers: against formulas in NumPy, and in programs that train."""
