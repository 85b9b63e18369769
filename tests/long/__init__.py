"""Campaigns: many random programs, mutated files, threads and signals.

`make test-long` runs them, `pytest tests/long/test_x.py` one of them; `make test` runs none. SMELT_LONG_SCALE scales
their amounts. The fixture `campaign` of conftest.py says how much to do and prints what was done.
"""
