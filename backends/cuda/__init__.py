"""The Metal texts on NVIDIA GPUs."""
