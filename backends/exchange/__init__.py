"""Programs for other compilers: a module of the smelt dialect as StableHLO, and as linalg on tensors."""
