"""The `contract` schedule: sums of products in any dtype, with what computes their operands and what follows them."""
