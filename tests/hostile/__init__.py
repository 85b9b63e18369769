"""Mutated texts and files: whatever they are, an error of smelt comes back, in time.

`subjects.py` says what is fed with them, `mutate.py` makes them from a seed, `batch.py` runs many of them in a process
of its own, so that a crash is a finding like any other. `test_short.py` runs some in `make test`; the campaign of
tests/long/test_hostile.py runs 100,000 of most. One alone: ``python -m tests.hostile.batch mlir 1234 1``.
"""
