"""A program on one page that needs no network: stages with what changed, kernels, costs, memory (``smelt view``)."""
