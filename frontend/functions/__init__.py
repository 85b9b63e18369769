"""The array functions, a file a family: each checks its arguments and records ops."""
