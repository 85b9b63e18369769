"""Elementary functions expanded into arithmetic (see the modules of this package)."""
