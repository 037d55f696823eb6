"""Mappers to compare with, for tests and benchmarks, which `map` takes by their names."""
