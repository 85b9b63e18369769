"""Command line tools: `smelt-opt` on IR files, and the commands of `smelt` (see `commands`)."""
