"""Backends: fused modules into programs that run on a device."""
