"""Programs on a device beside other frameworks there: ``python -m benchmarks device``."""
