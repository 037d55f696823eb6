"""Export for ARM Compute Library: a folder that `runtimes/armcl` runs."""
