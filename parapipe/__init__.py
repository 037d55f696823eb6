"""parapipe: exact mapping of neural networks onto the unequal processors of a system-on-chip."""

from __future__ import annotations

__version__ = "0.1.0"
