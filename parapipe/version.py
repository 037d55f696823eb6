"""The version of parapipe."""

__version__ = "0.1.0"
