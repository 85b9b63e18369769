"""Running sums and the like."""
