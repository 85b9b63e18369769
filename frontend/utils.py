"""Trees of arrays, under the names of MLX's ``utils``.

Trees are nested dicts, lists, tuples and deques, their subclasses with what they have in attributes, named tuples,
dataclasses that hold arrays, partial functions that hold arrays, and registered classes. All else is a leaf. A leaf
that is no array must not hold arrays: nobody would see them change.
"""

from .lazy.tree import register_class, tree_flatten, tree_map, tree_map_with_path, tree_reduce, tree_unflatten

__all__ = ["register_class", "tree_flatten", "tree_map", "tree_map_with_path", "tree_reduce", "tree_unflatten"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
