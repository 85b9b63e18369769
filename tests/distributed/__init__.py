"""Several processes that compute together."""
