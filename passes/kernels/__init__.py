"""From the simplified graph to kernels: placement, fusion, the plan of buffers."""
