"""What models may be planned in."""

from typing import Literal

Precision = Literal["model", "float16", "int8"]
