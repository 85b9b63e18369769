"""Trees of arrays, under the names of MLX's ``utils``."""

from .tree import register_class as register_class
from .tree import tree_flatten as tree_flatten
from .tree import tree_map as tree_map
from .tree import tree_map_with_path as tree_map_with_path
from .tree import tree_reduce as tree_reduce
from .tree import tree_unflatten as tree_unflatten
