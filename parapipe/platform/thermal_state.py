"""How warm a chip is."""

from typing import Literal

State = Literal["cold", "sustained"]
"""Cold, or in long runs: then clocks have fallen to what heat allows."""
