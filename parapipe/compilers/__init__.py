"""Compilers of NPU vendors: what runs on the NPU, what it costs, and the file that runs."""
