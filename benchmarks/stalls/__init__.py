"""Programs that make a compiler wait: lazy steps, changing shapes, growing caches, many small expressions.

``python -m benchmarks stalls`` runs each program in each framework, in a new process each, compile times included.
"""
