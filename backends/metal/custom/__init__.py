"""Kernels that users write in Metal Shading Language: `smelt.fast.metal_kernel`."""
