"""Command line tools: `smelt-opt` on IR files, `smelt dump|run|opt|view`."""
