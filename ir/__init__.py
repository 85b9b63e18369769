"""The `smelt` dialect: types, ops with all their rules, builder, text, NumPy interpreter.

This room imports no other. MLIR itself loads on first use (see `mlir.py`), so that importing
the op definitions, and with them `smelt`, stays cheap.
"""
