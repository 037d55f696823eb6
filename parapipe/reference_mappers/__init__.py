"""Mappers to compare with, for tests and benchmarks, which `map` takes when asked by name."""
