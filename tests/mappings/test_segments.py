"""How many segments a mapping has: as many as the export makes files of."""

import pytest

from parapipe.api.load import load_graph
from parapipe.plan.segments import segments
