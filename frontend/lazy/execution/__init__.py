"""Ways in which a graph runs: op by op, by plans, by kernels for all sizes, as a program; and which one pays."""
