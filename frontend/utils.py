"""Trees of arrays, under the names of MLX's ``utils``."""

from .tree import register_class, tree_flatten, tree_map, tree_map_with_path, tree_reduce, tree_unflatten

__all__ = ["register_class", "tree_flatten", "tree_map", "tree_map_with_path", "tree_reduce", "tree_unflatten"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
