"""Segments that pnnx converts for ncnn, which runs on CPUs and, by Vulkan, on GPUs."""
