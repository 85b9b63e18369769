"""A folder for ``PYTHONPATH``: what it holds is found in place of the packages of these names (`smelt.compat`)."""
