"""The layers of `smelt.nn`, a file a family."""
