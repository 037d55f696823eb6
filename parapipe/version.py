"""The version of parapipe."""

__version__ = "0.2.0"
