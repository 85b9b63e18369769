"""Named workloads, timed side by side with other frameworks: ``python -m benchmarks --help``."""
